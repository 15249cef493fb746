//! Damage in the write-ahead log: found if it costs anything acknowledged, never mistaken for a torn tail.

use super::{Opened, append, copy, files, ignore, small};
use crate::{Error, Store};
use petuum_types::GroupId;
use std::path::{Path, PathBuf};

/// A store whose log holds `entries` synced one by one, closed by a kill: nothing is flushed.
fn killed(dir: &Path, entries: u64, bytes: usize) -> PathBuf {
    let opened = Opened::at(dir);
    for index in 0..entries {
        opened.group(1).append([(index, vec![index.to_le_bytes()[0]; bytes])], ignore()).unwrap();
        opened.sync();
    }
    drop(opened);
    newest_wal(dir)
}

fn newest_wal(dir: &Path) -> PathBuf {
    files(dir, "log").pop().unwrap()
}

/// Opens a copy with a changed log: the index of its last entry, or the error, which must come again the next time.
fn open_with(dir: &Path, wal: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Result<Option<u64>, Error> {
    let copy = copy(dir);
    let wal = copy.path().join(wal.file_name().unwrap());
    let mut bytes = std::fs::read(&wal).unwrap();
    change(&mut bytes);
    std::fs::write(&wal, bytes).unwrap();
    match Store::open(copy.path(), small()) {
        Ok(store) => Ok(store.group(GroupId(1)).last().unwrap().map(|(last, _)| last)),
        Err(error) => {
            let again = Store::open(copy.path(), small()).err().expect("a refused store stays refused");
            assert_eq!(again.to_string(), error.to_string());
            Err(error)
        }
    }
}

#[test]
fn a_flipped_bit_never_costs_an_acknowledged_entry_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    // The second log has records that cross blocks, but fits its buffer.
    for (name, entries, bytes) in [("small", 30, 20), ("large", 4, 14_000)] {
        let dir = dir.path().join(name);
        let wal = killed(&dir, entries, bytes);
        let length = std::fs::metadata(&wal).unwrap().len();
        let mut refused = 0;
        let mut dice = fastrand::Rng::with_seed(entries);
        for _ in 0..40 {
            let at = usize::try_from(dice.u64(..length)).unwrap();
            match open_with(&dir, &wal, |bytes| bytes[at] ^= 1 << dice.u8(..8)) {
                Ok(last) => assert_eq!(last, Some(entries - 1), "{name}, byte {at} of {length}: lost without a word"),
                Err(Error::Damaged { what, .. }) => {
                    assert_eq!(what, "the write-ahead log");
                    refused += 1;
                }
                Err(other) => panic!("{name}, byte {at}: {other}"),
            }
        }
        assert!(refused > 20, "{name}: most bytes matter, but only {refused} were noticed");
    }
}

#[test]
fn a_torn_tail_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    append(&opened.group(1), 0..=9);
    opened.sync();
    let wal = newest_wal(dir.path());
    let synced = usize::try_from(std::fs::metadata(&wal).unwrap().len()).unwrap();
    for index in 10..40 {
        append(&opened.group(1), index..=index);
    }
    // As a crash leaves it: the store is open while its files are copied.
    let length = usize::try_from(std::fs::metadata(&wal).unwrap().len()).unwrap();
    let at_least = |last: Result<Option<u64>, Error>, at: usize| {
        let last = last.unwrap_or_else(|error| panic!("byte {at} of {length}: {error}"));
        assert!(last >= Some(9), "byte {at}: {last:?}");
        last
    };
    let mut lost = 0;
    for at in (synced..length).step_by(101) {
        // Cut off; garbled in the middle, while later writes reached the disk; and never written, a hole of zeros.
        at_least(open_with(dir.path(), &wal, |bytes| bytes.truncate(at)), at);
        let last = at_least(open_with(dir.path(), &wal, |bytes| bytes[at] ^= 0x55), at);
        lost += u32::from(last < Some(39));
        at_least(open_with(dir.path(), &wal, |bytes| bytes[at..(at + 300).min(length)].fill(0)), at);
    }
    assert!(lost > 3, "the damage did cost unsynced entries");
}

/// RocksDB alone would read such a log for ever.
#[test]
fn a_tail_with_the_type_of_recycled_logs_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    append(&opened.group(1), 0..=9);
    opened.sync();
    let wal = newest_wal(dir.path());
    append(&opened.group(1), 10..=10);
    let whole = std::fs::read(&wal).unwrap();
    append(&opened.group(1), 11..=11);
    let (record, kind) = (whole.len(), whole.len() + 6);
    for noise in [5, 8, 11, 131] {
        let last = open_with(dir.path(), &wal, |bytes| {
            assert_eq!(bytes[kind], 1, "a whole record begins at {record}");
            bytes[kind] = noise;
        });
        assert_eq!(last.unwrap(), Some(10));
    }
    // The same in what was acknowledged is damage.
    let acknowledged = open_with(dir.path(), &wal, |bytes| {
        assert_eq!(bytes[6], 130, "the first record tells of the log before");
        let kind = 7 + usize::from(bytes[4]) + 6;
        assert_eq!(bytes[kind], 1, "the second is whole");
        bytes[kind] = 5;
    });
    assert!(matches!(acknowledged, Err(Error::Damaged { .. })), "{acknowledged:?}");
}

#[test]
fn a_lost_middle_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let wal = killed(dir.path(), 50, 100);
    let length = std::fs::read(&wal).unwrap().len();
    for at in [0, length / 3, length / 2] {
        let zeroed = open_with(dir.path(), &wal, |bytes| bytes[at..at + 500].fill(0));
        assert!(matches!(zeroed, Err(Error::Damaged { .. })), "{zeroed:?}");
        let cut = open_with(dir.path(), &wal, |bytes| drop(bytes.drain(at..at + 333)));
        assert!(matches!(cut, Err(Error::Damaged { .. })), "{cut:?}");
    }
}
