//! Large values, which lie in blob files beside the tables of their keys.

use super::{Opened, copy, files, ignore, small};
use crate::{Error, Store};
use petuum_types::GroupId;
use std::path::{Path, PathBuf};

const ENTRIES: u64 = 60;
const BYTES: usize = 4096;

fn entry(index: u64) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(index);
    std::iter::repeat_with(|| dice.u8(..)).take(BYTES).collect()
}

/// All entries, in tables and blob files: what was left in memory is written there when the store is opened again.
fn filled(dir: &Path) -> PathBuf {
    let opened = Opened::at(dir);
    for index in 0..ENTRIES {
        opened.group(1).append([(index, entry(index))], ignore()).unwrap();
    }
    opened.sync();
    drop(opened);
    drop(Opened::at(dir));
    files(dir, "blob").into_iter().max_by_key(|path| std::fs::metadata(path).unwrap().len()).expect("large values")
}

/// Every entry, or why not.
fn read(dir: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let store = Store::open(dir, small())?;
    let group = store.group(GroupId(1));
    let entries = group.read(0, ENTRIES, usize::MAX)?;
    Ok(entries.into_iter().map(|(_, entry)| entry.to_vec()).collect())
}

#[test]
fn entries_in_blob_files_are_read_back_and_purged() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    assert_eq!(read(dir.path()).unwrap(), (0..ENTRIES).map(entry).collect::<Vec<_>>());
    let opened = Opened::at(dir.path());
    opened.group(1).purge(ENTRIES - 2, b"").unwrap();
    let left = opened.group(1).read(ENTRIES - 1, ENTRIES, usize::MAX).unwrap();
    assert_eq!(left.into_iter().map(|(_, entry)| entry.to_vec()).collect::<Vec<_>>(), [entry(ENTRIES - 1)]);
}

#[test]
fn a_flipped_bit_in_a_blob_file_is_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let file = filled(dir.path());
    let length = std::fs::metadata(&file).unwrap().len();
    let mut dice = fastrand::Rng::with_seed(1);
    let mut refused = 0;
    for _ in 0..30 {
        let copy = copy(dir.path());
        let damaged = copy.path().join(file.file_name().unwrap());
        let mut bytes = std::fs::read(&damaged).unwrap();
        let at = dice.u64(..length);
        bytes[usize::try_from(at).unwrap()] ^= 1 << dice.u8(..8);
        std::fs::write(&damaged, bytes).unwrap();
        match read(copy.path()) {
            Ok(entries) => {
                let wrong = (0..).zip(entries).find(|(index, found)| *found != entry(*index));
                assert!(wrong.is_none(), "byte {at} of {length}: entry {:?}", wrong.map(|(index, _)| index));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20, "most bytes are of values, but only {refused} flipped bits were noticed");
}
