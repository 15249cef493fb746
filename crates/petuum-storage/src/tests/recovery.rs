//! What is mended at open and what is refused: the manifest's torn end, and logs that are gone.

use super::{Opened, copy, files, ignore, small};
use crate::{Error, Store};
use petuum_types::GroupId;
use std::path::{Path, PathBuf};

const ENTRIES: u64 = 60;

/// A store with tables and several logs, each entry acknowledged.
fn filled(dir: &Path, entries: u64) {
    let opened = Opened::at(dir);
    for index in 0..entries {
        opened.group(1).append([(index, vec![7; 4000])], ignore()).unwrap();
        opened.sync();
    }
}

fn manifest(dir: &Path) -> PathBuf {
    let current = std::fs::read_to_string(dir.join("CURRENT")).unwrap();
    dir.join(current.trim_end())
}

/// The number of entries in the store, all of them whole.
fn entries(dir: &Path) -> Result<u64, Error> {
    let store = Store::open(dir, small())?;
    let group = store.group(GroupId(1));
    Ok(group.read(0, ENTRIES, usize::MAX)?.len() as u64)
}

/// As a power failure inside a flush leaves it. RocksDB alone would refuse to open, or with the types of recycled logs read
/// for ever.
#[test]
fn a_torn_end_of_the_manifest_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), ENTRIES);
    for kind in [0, 1, 5, 8, 131] {
        let copy = copy(dir.path());
        let path = manifest(copy.path());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(&[0x5a, 0x5a, 0x5a, 0x5a, 20, 0, kind, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(entries(copy.path()).unwrap(), ENTRIES, "type {kind}");
    }
}

/// What was durable in the manifest and is no more may not cost an entry unnoticed, nor hang.
#[test]
fn a_flipped_bit_in_the_manifest_costs_nothing_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), ENTRIES);
    let length = std::fs::read(manifest(dir.path())).unwrap().len();
    let (mut refused, mut whole) = (0, 0);
    for at in (0..length).step_by(5).chain((6..length).step_by(13)) {
        for bit in [0x04, 0x01] {
            let copy = copy(dir.path());
            let path = manifest(copy.path());
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at] ^= bit;
            std::fs::write(&path, bytes).unwrap();
            match entries(copy.path()) {
                Ok(found) => assert_eq!(found, ENTRIES, "byte {at} of {length}"),
                Err(_) => refused += 1,
            }
            whole += 1;
        }
    }
    assert!(refused > whole / 2, "{refused} of {whole} were refused");
}

#[test]
fn a_store_that_has_lost_its_logs_is_refused() {
    for entries in [1, ENTRIES] {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), entries);
        let logs = files(dir.path(), "log");
        assert!(!logs.is_empty());
        logs.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        for _ in 0..2 {
            let error = Store::open(dir.path(), small()).err().expect("it must not open");
            assert!(error.to_string().contains("issing"), "{error}");
        }
    }
}
