//! Snapshots: publishing, crashes in between, damage, readers of old ones.

use super::{Opened, ignore};
use crate::keys::{self, Family};
use crate::{Error, GroupStore};
use petuum_types::GroupId;

fn write(group: &GroupStore, manifest: &str, pieces: &[&[u8]]) {
    let mut writer = group.begin_snapshot().unwrap();
    pieces.iter().for_each(|piece| writer.push(piece).unwrap());
    writer.publish(manifest.as_bytes(), ignore()).unwrap();
}

fn read(group: &GroupStore) -> Option<(String, Vec<Vec<u8>>)> {
    let snapshot = group.snapshot().unwrap()?;
    let pieces = snapshot.pieces().map(|piece| piece.unwrap().to_vec()).collect();
    Some((String::from_utf8(snapshot.manifest().to_vec()).unwrap(), pieces))
}

/// (group, snapshot) of every piece on disk.
fn stored(opened: &Opened) -> Vec<(u32, u64)> {
    let mut owners = Vec::new();
    let scan = opened.store.engine().scan(Family::State, (&[], &[0xff; 17]), |key, _| {
        let (group, number) = keys::piece_owner(key).unwrap();
        owners.push((group.0, number));
        Ok(std::ops::ControlFlow::Continue(()))
    });
    scan.unwrap();
    owners
}

#[test]
fn a_snapshot_is_seen_when_published_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    assert!(read(&group).is_none());
    let big = vec![7; 100_000];
    let mut writer = group.begin_snapshot().unwrap();
    writer.push(b"one").unwrap();
    writer.push(&big).unwrap();
    assert!(read(&group).is_none(), "not before it is published");
    writer.publish(b"first", ignore()).unwrap();
    let expected = Some(("first".to_owned(), vec![b"one".to_vec(), big.clone()]));
    assert_eq!(read(&group), expected);
    let snapshot = group.snapshot().unwrap().unwrap();
    assert_eq!((snapshot.piece_count(), snapshot.bytes()), (2, 100_003));
    assert_eq!(snapshot.crc(), crc32c::crc32c_append(crc32c::crc32c(b"one"), &big));
    opened.sync();
    drop((opened, group, snapshot));
    assert_eq!(read(&Opened::at(dir.path()).group(1)), expected);
}

#[test]
fn an_empty_snapshot_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    write(&opened.group(1), "nothing", &[]);
    assert_eq!(read(&opened.group(1)), Some(("nothing".to_owned(), vec![])));
}

#[test]
fn the_old_one_is_deleted_only_when_the_new_one_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    write(&opened.group(1), "old", &[b"a", b"b"]);
    opened.sync();
    write(&opened.group(1), "new", &[b"c"]);
    assert_eq!(stored(&opened), [(1, 1), (1, 1), (1, 2)], "the old one is needed if power fails now");
    opened.sync();
    assert_eq!(stored(&opened), [(1, 2)]);
}

#[test]
fn an_old_snapshot_stays_readable_while_somebody_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    write(&group, "old", &[b"a", b"b"]);
    let old = group.snapshot().unwrap().unwrap();
    let again = group.snapshot().unwrap().unwrap();
    let mut pieces = old.pieces();
    drop(old);
    assert_eq!(pieces.next().unwrap().unwrap(), "a");
    write(&group, "new", &[b"c"]);
    opened.sync();
    assert_eq!(read(&group).unwrap().0, "new");
    assert_eq!(pieces.next().unwrap().unwrap(), "b");
    assert!(pieces.next().is_none());
    assert_eq!(again.clone().piece(0).unwrap(), "a");
    drop(pieces);
    assert_eq!(stored(&opened), [(1, 1), (1, 1), (1, 2)], "one still reads");
    drop(again);
    assert_eq!(stored(&opened), [(1, 2)]);
}

#[test]
fn a_writer_that_gives_up_leaves_nothing_and_harms_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    write(&group, "kept", &[b"a"]);
    let mut writer = group.begin_snapshot().unwrap();
    // More than are deleted one by one.
    (0..200u32).for_each(|number| writer.push(&number.to_be_bytes()).unwrap());
    assert_eq!(stored(&opened).len(), 201);
    drop(writer);
    assert_eq!(stored(&opened), [(1, 1)]);
    assert_eq!(read(&group).unwrap().0, "kept");
}

#[test]
fn pieces_of_a_crash_are_removed_at_open() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    write(&opened.group(2), "kept", &[b"a"]);
    let mut writers = Vec::new();
    for number in [1, 2, u32::MAX] {
        let mut writer = opened.group(number).begin_snapshot().unwrap();
        writer.push(b"half").unwrap();
        writer.push(b"made").unwrap();
        writers.push(writer);
    }
    opened.store.group(GroupId(1)).put_record(crate::Record::Vote, b"", Some(ignore())).unwrap();
    opened.sync();
    assert_eq!(stored(&opened).len(), 7);
    // A crash runs no destructor: after the close, those of the writers no longer reach the disk.
    opened.store.close();
    drop((writers, opened));
    let opened = Opened::at(dir.path());
    assert_eq!(stored(&opened), [(2, 1)]);
    assert_eq!(read(&opened.group(2)).unwrap().0, "kept");
    write(&opened.group(2), "next", &[b"b"]);
    assert_eq!(read(&opened.group(2)), Some(("next".to_owned(), vec![b"b".to_vec()])));
}

#[test]
fn every_damage_of_a_piece_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    write(&group, "m", &[b"first", b"other"]);
    let engine = opened.store.engine();
    let key = |piece| keys::piece(GroupId(1), 1, piece);
    let put = |piece, value: &[u8]| {
        let written = engine.write(|batch| {
            batch.put(Family::State, &key(piece), value);
            Ok(())
        });
        written.unwrap();
    };
    let right = engine.get(Family::State, &key(1)).unwrap().unwrap();
    let other = engine.get(Family::State, &key(0)).unwrap().unwrap();
    let expect_damage = |why: &str| {
        let snapshot = group.snapshot().unwrap().unwrap();
        let read: Vec<_> = snapshot.pieces().collect();
        assert_eq!(read.len(), 2, "{why}: nothing behind the damage is given out");
        assert_eq!(read[0].as_ref().unwrap(), "first");
        match &read[1] {
            Err(Error::Damaged { group, what, .. }) => {
                assert_eq!((*group, what.as_str()), (Some(GroupId(1)), "piece 1 of 2 of snapshot 1"));
            }
            other => panic!("{why}: {other:?}"),
        }
    };
    for byte in 0..right.len() {
        let mut flipped = right.to_vec();
        flipped[byte] ^= 1;
        put(1, &flipped);
        expect_damage("a flipped bit");
    }
    for length in 0..right.len() {
        put(1, &right[..length]);
        expect_damage("cut short");
    }
    put(1, &other);
    expect_damage("another piece in its place");
    put(1, &right);
    assert!(group.snapshot().unwrap().unwrap().pieces().all(|piece| piece.is_ok()));
    engine
        .write(|batch| {
            batch.delete_span(Family::State, (1, 1), |_| key(1));
            Ok(())
        })
        .unwrap();
    expect_damage("missing");
}

#[test]
fn a_damaged_record_of_the_current_snapshot_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    write(&opened.group(1), "m", &[b"first"]);
    let written = opened.store.engine().write(|batch| {
        batch.put(Family::Meta, &keys::current_snapshot(GroupId(1)), b"\x01nonsense");
        Ok(())
    });
    written.unwrap();
    assert!(matches!(opened.group(1).snapshot(), Err(Error::Damaged { group: Some(GroupId(1)), .. })));
    assert!(matches!(opened.group(1).begin_snapshot(), Err(Error::Damaged { .. })));
}

#[test]
fn a_reader_of_a_destroyed_group_never_sees_a_later_ones_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    write(&group, "old", &[b"a"]);
    let old = group.snapshot().unwrap().unwrap();
    group.destroy().unwrap();
    write(&group, "new", &[b"b"]);
    assert!(matches!(old.piece(0), Err(Error::Damaged { .. })));
    assert_eq!(read(&group), Some(("new".to_owned(), vec![b"b".to_vec()])));
}
