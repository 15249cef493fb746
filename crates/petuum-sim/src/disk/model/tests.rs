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

/// What `outcome` is over many seeds, each once and in order.
fn outcomes<T: Ord>(outcome: impl Fn(u64) -> T) -> Vec<T> {
    (0..300).map(outcome).collect::<BTreeSet<T>>().into_iter().collect()
}

#[test]
fn what_was_synced_with_its_name_survives_every_draw() {
    for seed in 0..300 {
        let mut model = Model::new();
        let a = write(&mut model, "/a", b"durable");
        model.sync(a).unwrap();
        model.sync_directory("/").unwrap();
        model.append(a, b" perhaps").unwrap();
        let lost = model.lose(seed);
        let left = content(&mut model, "/a").unwrap();
        assert!(left.starts_with(b"durable") && lost.bytes <= 8 && lost.files == 0);
    }
}

#[test]
fn a_name_that_was_not_synced_is_kept_or_lost() {
    let names = outcomes(|seed| {
        let mut model = Model::new();
        for name in ["/a", "/b"] {
            let handle = write(&mut model, name, b"synced, but its name is not");
            model.sync(handle).unwrap();
        }
        let lost = model.lose(seed);
        let there = ["/a", "/b"].map(|name| content(&mut model, name).map(|bytes| bytes.len()));
        assert_eq!(lost.files, there.iter().filter(|len| len.is_none()).count() as u64);
        assert_eq!(lost.bytes, 27 * lost.files);
        there
    });
    let (there, gone) = (Some(27), None);
    assert_eq!(names, [[gone, gone], [gone, there], [there, gone], [there, there]], "each by itself");
}

/// A model with `/old` and `/dead`, durable, of which one was renamed and the other deleted.
fn renamed_and_deleted() -> Model {
    let mut model = Model::new();
    for name in ["/old", "/dead"] {
        let handle = write(&mut model, name, name.as_bytes());
        model.sync(handle).unwrap();
    }
    model.sync_directory("/").unwrap();
    model.rename("/old", "/new").unwrap();
    model.remove("/dead").unwrap();
    assert_eq!(content(&mut model, "/dead"), None);
    model
}

#[test]
fn unsynced_renames_and_deletions_are_undone_or_not_and_never_half() {
    let seen = outcomes(|seed| {
        let mut model = renamed_and_deleted();
        let lost = model.lose(seed);
        let [old, new, dead] = ["/old", "/new", "/dead"].map(|name| content(&mut model, name).is_some());
        assert!(old != new, "a renaming is atomic");
        assert_eq!(lost.returned, u64::from(old) + u64::from(dead));
        (old, dead)
    });
    assert_eq!(seen, [(false, false), (false, true), (true, false), (true, true)]);

    let mut model = renamed_and_deleted();
    model.sync_directory("/").unwrap();
    assert_eq!(model.lose(2), Lost::default());
    assert_eq!(content(&mut model, "/old"), None);
    assert_eq!(content(&mut model, "/new").unwrap(), b"/old");
    assert_eq!(content(&mut model, "/dead"), None);
}

#[test]
fn a_name_that_was_replaced_leads_to_the_old_file_or_the_new_one() {
    let seen = outcomes(|seed| {
        let mut model = Model::new();
        let old = write(&mut model, "/CURRENT", b"old");
        model.sync(old).unwrap();
        model.sync_directory("/").unwrap();
        let new = write(&mut model, "/new.dbtmp", b"new");
        model.sync(new).unwrap();
        model.rename("/new.dbtmp", "/CURRENT").unwrap();
        model.lose(seed);
        content(&mut model, "/CURRENT").unwrap()
    });
    assert_eq!(seen, [b"new", b"old"]);
}

#[test]
fn an_unsynced_truncation_is_undone_or_not() {
    let seen = outcomes(|seed| {
        let mut model = Model::new();
        let a = write(&mut model, "/a", b"first");
        model.sync(a).unwrap();
        model.sync_directory("/").unwrap();
        let a = write(&mut model, "/a", b"");
        model.lose(seed);
        assert_eq!(model.sync(a), Err(Refusal::Off), "handles from before the failure are dead");
        content(&mut model, "/a").unwrap()
    });
    assert_eq!(seen, [&b""[..], b"first"]);

    let mut model = Model::new();
    let a = write(&mut model, "/a", b"2");
    model.sync(a).unwrap();
    model.sync_directory("/").unwrap();
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
fn a_file_keeps_a_seeded_part_of_its_tail() {
    let survivors = |seed: u64| {
        let mut model = Model::new();
        let log = write(&mut model, "/000004.log", &[7; 100]);
        model.sync(log).unwrap();
        model.sync_directory("/").unwrap();
        model.append(log, &[8; 1000]).unwrap();
        let lost = model.lose(seed);
        let left = content(&mut model, "/000004.log").unwrap();
        assert_eq!(left[..100], [7; 100]);
        assert!(lost.bytes >= 1100 - left.len() as u64);
        left[100..].to_vec()
    };
    let all: Vec<_> = (0..300).map(survivors).collect();
    assert_eq!(all, (0..300).map(survivors).collect::<Vec<_>>(), "the seed decides");
    let count = |f: &dyn Fn(&[u8]) -> bool| all.iter().filter(|tail| f(tail)).count();
    assert!(count(&|tail| tail.is_empty()) > 40 && count(&|tail| tail.len() == 1000) > 20);
    let whole = |tail: &[u8]| tail.iter().all(|byte| *byte == 8);
    assert!(count(&|tail| whole(tail) && (1..1000).contains(&tail.len())) > 40, "cut off");
    assert!(count(&|tail| tail.last() == Some(&0)) > 20, "zeros at the end");
    assert!(count(&|tail| tail.ends_with(&[8, 8]) && tail.contains(&0)) > 5, "a hole of zeros");
    let noise = |tail: &[u8]| tail.iter().any(|byte| *byte != 8 && *byte != 0);
    assert!(count(&|tail| noise(tail) && !tail.ends_with(&[8])) > 20, "noise at the end");
    assert!(count(&|tail| noise(tail) && tail.ends_with(&[8, 8])) > 5, "a hole of noise");
}

#[test]
fn logs_lose_their_tails_each_by_itself_and_whatever_other_files_there_are() {
    let tails = |seed: u64, others: &[&str]| {
        let mut model = Model::new();
        for name in ["/000004.log", "/000009.log"].iter().chain(others) {
            write(&mut model, name, &[1; 64]);
        }
        model.sync_directory("/").unwrap();
        model.lose(seed);
        ["/000004.log", "/000009.log"].map(|name| content(&mut model, name).unwrap())
    };
    let all: Vec<_> = (0..300).map(|seed| tails(seed, &[])).collect();
    assert!(all.iter().any(|[first, second]| first.is_empty() && second.len() == 64), "the later one alone");
    assert!(all.iter().any(|[first, second]| first.len() == 64 && second.is_empty()));
    for (seed, tail) in (0..).zip(&all) {
        assert_eq!(tails(seed, &["/000007.sst", "/MANIFEST-000005"]), *tail, "seed {seed}");
    }
}

#[test]
fn a_disk_that_lies_about_syncs_keeps_nothing() {
    for seed in 0..50 {
        let mut model = Model::new();
        model.sync_ignored = true;
        let a = write(&mut model, "/a", b"x");
        model.sync(a).unwrap();
        model.sync_directory("/").unwrap();
        model.lose(seed);
        assert_eq!(content(&mut model, "/a"), None);
    }
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
fn half_of_a_read_is_there_and_the_next_time_all() {
    let mut model = Model::new();
    let handle = write(&mut model, "/000001.sst", b"abcdef");
    model.rules.push(Rule::once(Op::Read, FileKind::Sst, Fault::ShortRead));
    let mut bytes = [0; 6];
    assert_eq!((model.read(handle, 0, &mut bytes), &bytes[..3]), (Ok(3), &b"abc"[..]));
    assert_eq!((model.read(handle, 0, &mut bytes), &bytes), (Ok(6), b"abcdef"));
    assert_eq!(model.counters.injected, 1);
}

#[test]
fn a_bit_flipped_in_a_read_is_right_again_and_one_flipped_in_an_append_stays_wrong() {
    let mut model = Model::new();
    let handle = write(&mut model, "/000001.log", b"abc");
    // Counted around: bit 25 of 24 is the second.
    model.rules.push(Rule::once(Op::Read, FileKind::Wal, Fault::FlippedBit(25)));
    assert_eq!(content(&mut model, "/000001.log"), Some(b"cbc".to_vec()));
    assert_eq!(content(&mut model, "/000001.log"), Some(b"abc".to_vec()));
    model.rules.push(Rule::once(Op::Append, FileKind::Wal, Fault::FlippedBit(8)));
    assert_eq!(model.append(handle, b"de"), Ok(()));
    assert_eq!(content(&mut model, "/000001.log"), Some(b"abcdd".to_vec()));
    assert_eq!(content(&mut model, "/000001.log"), Some(b"abcdd".to_vec()));
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
