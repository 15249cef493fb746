//! The model by itself: what survives a power failure, without RocksDB.

use super::*;
use crate::disk::Lost;

fn write(model: &mut Model, path: &str, bytes: &[u8]) -> u64 {
    let handle = model.open(path, Mode::Create).unwrap();
    model.append(handle, bytes).unwrap();
    handle
}

fn content(model: &mut Model, path: &str) -> Option<Vec<u8>> {
    let handle = model.open(path, Mode::Read).ok()?;
    let mut bytes = vec![0; 4096];
    let len = model.read(handle, 0, &mut bytes).unwrap();
    model.close(handle);
    bytes.truncate(len);
    Some(bytes)
}

#[test]
fn only_synced_bytes_with_a_synced_name_survive() {
    let mut model = Model::new();
    let a = write(&mut model, "/a", b"durable");
    model.sync(a).unwrap();
    model.sync_directory("/").unwrap();
    model.append(a, b" lost").unwrap();
    let b = write(&mut model, "/b", b"synced, but its name is not");
    model.sync(b).unwrap();

    let lost = model.lose(1);
    assert_eq!(content(&mut model, "/a").unwrap(), b"durable");
    assert_eq!(content(&mut model, "/b"), None);
    assert_eq!(lost, Lost { bytes: 5 + 27, files: 1, logs: 0, torn: 0 });
}

#[test]
fn unsynced_renames_and_deletions_are_undone() {
    let mut model = Model::new();
    for name in ["/old", "/dead"] {
        let handle = write(&mut model, name, name.as_bytes());
        model.sync(handle).unwrap();
    }
    model.sync_directory("/").unwrap();
    model.rename("/old", "/new").unwrap();
    model.remove("/dead").unwrap();
    assert_eq!(content(&mut model, "/dead"), None);

    model.lose(1);
    assert_eq!(content(&mut model, "/old").unwrap(), b"/old");
    assert_eq!(content(&mut model, "/new"), None);
    assert_eq!(content(&mut model, "/dead").unwrap(), b"/dead");

    model.rename("/old", "/new").unwrap();
    model.remove("/dead").unwrap();
    model.sync_directory("/").unwrap();
    assert_eq!(model.lose(2), Lost::default());
    assert_eq!(content(&mut model, "/old"), None);
    assert_eq!(content(&mut model, "/new").unwrap(), b"/old");
    assert_eq!(content(&mut model, "/dead"), None);
}

#[test]
fn an_unsynced_truncation_is_undone() {
    let mut model = Model::new();
    let a = write(&mut model, "/a", b"first");
    model.sync(a).unwrap();
    model.sync_directory("/").unwrap();
    let a = write(&mut model, "/a", b"2");
    model.lose(1);
    assert_eq!(content(&mut model, "/a").unwrap(), b"first");
    assert_eq!(model.sync(a), Err(Refusal::Off), "handles from before the failure are dead");

    let a = write(&mut model, "/a", b"2");
    model.sync(a).unwrap();
    model.lose(1);
    assert_eq!(content(&mut model, "/a").unwrap(), b"2");
}

#[test]
fn a_failed_sync_is_not_mended_by_the_next() {
    let mut model = Model::new();
    let a = write(&mut model, "/a", b"x");
    model.sync_directory("/").unwrap();
    model.rules.push(Rule::once(Op::Sync, FileKind::Other, Fault::Eio));
    assert_eq!(model.sync(a), Err(Refusal::Io));
    assert_eq!(model.sync(a), Ok(()));
    model.lose(1);
    assert_eq!(content(&mut model, "/a").unwrap(), b"");
}

#[test]
fn a_log_keeps_a_seeded_part_of_its_tail() {
    let survivors = |seed: u64| {
        let mut model = Model::new();
        let log = write(&mut model, "/000004.log", &[7; 100]);
        model.sync(log).unwrap();
        model.sync_directory("/").unwrap();
        model.append(log, &[8; 1000]).unwrap();
        let lost = model.lose(seed);
        let left = content(&mut model, "/000004.log").unwrap();
        assert_eq!(left[..100], [7; 100]);
        assert_eq!(lost.bytes, 1100 - left.len() as u64);
        left
    };
    let all: Vec<_> = (0..200).map(survivors).collect();
    assert_eq!(all, (0..200).map(survivors).collect::<Vec<_>>(), "the seed decides");
    let kept = |f: fn(usize) -> bool| all.iter().filter(|left| f(left.len())).count();
    assert!(kept(|len| len == 100) > 50 && kept(|len| len == 1100) > 5 && kept(|len| 100 < len && len < 1100) > 50);
    assert!(all.iter().any(|left| left[100..].iter().any(|byte| *byte != 8)), "some tails are torn");
}

#[test]
fn later_logs_lose_their_tail_with_an_earlier_one() {
    let tails = |seed: u64| {
        let mut model = Model::new();
        for name in ["/000004.log", "/000009.log"] {
            write(&mut model, name, &[1; 64]);
        }
        model.sync_directory("/").unwrap();
        model.lose(seed);
        ["/000004.log", "/000009.log"].map(|name| content(&mut model, name).unwrap().len())
    };
    let all: Vec<_> = (0..200).map(tails).collect();
    assert!(all.iter().all(|[first, second]| *first == 64 || *second == 0));
    assert!(all.iter().any(|[first, second]| *first == 64 && *second > 0));
}

#[test]
fn a_power_cut_rule_stops_everything() {
    let mut model = Model::new();
    let a = write(&mut model, "/a", b"x");
    model.rules.push(Rule::once(Op::Sync, FileKind::Other, Fault::PowerCut));
    assert_eq!(model.sync(a), Err(Refusal::Off));
    assert_eq!(model.append(a, b"y"), Err(Refusal::Off));
    assert_eq!(model.open("/a", Mode::Read), Err(Refusal::Off));
    assert_eq!(model.stat("/a"), Err(Refusal::Off));
}

#[test]
fn directories_locks_and_links() {
    let mut model = Model::new();
    assert_eq!(model.open("/d/a", Mode::Create), Err(Refusal::NotFound));
    model.make_directory("/d/", true).unwrap();
    assert_eq!(model.make_directory("/d", true), Err(Refusal::Exists));
    assert_eq!(model.make_directory("/d", false), Ok(()));
    assert_eq!(model.make_directory("/e/f/g", false), Ok(()));
    assert_eq!(model.list("/e/f"), Ok(vec!["g".to_owned()]));
    assert_eq!(model.remove_directory("/e/f/g"), Ok(()));
    assert_eq!(model.remove_directory("/e/f"), Ok(()));
    assert_eq!(model.remove_directory("/e"), Ok(()));
    write(&mut model, "/d//a", b"x");
    model.link("/d/a", "/d/b").unwrap();
    assert_eq!(model.link("/d/a", "/d/b"), Err(Refusal::Exists));
    model.remove("/d/a").unwrap();
    assert_eq!(content(&mut model, "/d/b").unwrap(), b"x");
    assert_eq!(model.list("/d").unwrap(), ["b"]);
    assert_eq!(model.list("/").unwrap(), ["d"]);
    assert_eq!(model.remove_directory("/d"), Err(Refusal::NotEmpty));
    model.lock("/d/LOCK").unwrap();
    assert_eq!(model.lock("/d/LOCK"), Err(Refusal::Locked));
    model.unlock("/d/LOCK");
    assert_eq!(model.lock("/d/LOCK"), Ok(()));
}

#[test]
fn files_without_a_name_are_dropped_when_closed() {
    let mut model = Model::new();
    let a = write(&mut model, "/a", b"x");
    model.remove("/a").unwrap();
    let mut byte = [0];
    assert_eq!(model.read(a, 0, &mut byte), Ok(1), "an open file can be read after its deletion");
    model.close(a);
    assert!(model.files.is_empty());
}
