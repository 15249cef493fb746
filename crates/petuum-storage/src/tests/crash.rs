//! The crash check on real files, with a power failure in miniature: of the newest WAL, whatever was not synced is cut
//! off at a random byte.

use super::small;
use crate::StoreOptions;
use crate::testing::{Disk, Report, crashes_keep_what_was_acknowledged};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

struct Files {
    dir: tempfile::TempDir,
    write_buffer_bytes: usize,
    synced: BTreeMap<PathBuf, u64>,
    dice: fastrand::Rng,
    /// Whether what was not synced is lost.
    loses: bool,
}

impl Files {
    fn new(seed: u64, loses: bool, write_buffer_bytes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, write_buffer_bytes, synced: BTreeMap::new(), dice: fastrand::Rng::with_seed(seed), loses }
    }

    /// With their lengths. A WAL may vanish between its being listed and measured: the database deletes those whose writes
    /// have reached tables in the background.
    fn wals(&self) -> BTreeMap<PathBuf, u64> {
        let files = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap());
        let wals = files.filter(|entry| entry.path().extension().is_some_and(|ext| ext == "log"));
        let length = |entry: std::fs::DirEntry| match entry.metadata() {
            Ok(metadata) => Some((entry.path(), metadata.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{}: {error}", entry.path().display()),
        };
        wals.filter_map(length).collect()
    }
}

impl Disk for Files {
    fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    fn options(&self) -> StoreOptions {
        StoreOptions { write_buffer_bytes: self.write_buffer_bytes, ..small() }
    }

    fn synced(&mut self) {
        self.synced = self.wals();
    }

    fn power_on(&mut self) {
        if !self.loses {
            return;
        }
        let Some((newest, length)) = self.wals().pop_last() else { return };
        let synced = self.synced.get(&newest).copied().unwrap_or(0);
        let file = std::fs::OpenOptions::new().write(true).open(&newest).unwrap();
        file.set_len(self.dice.u64(synced..=length)).unwrap();
    }
}

fn run(seeds: std::ops::Range<u64>, loses: bool, write_buffer_bytes: usize) -> Report {
    seeds.fold(Report::default(), |sum, seed| {
        let mut disk = Files::new(seed, loses, write_buffer_bytes);
        let report = crashes_keep_what_was_acknowledged(&mut disk, seed, 8).unwrap();
        Report {
            writes: sum.writes + report.writes,
            acknowledged: sum.acknowledged + report.acknowledged,
            lost: sum.lost + report.lost,
        }
    })
}

#[test]
fn a_killed_process_loses_nothing() {
    let report = run(0..8, false, 1 << 20);
    assert_eq!(report.lost, 0, "what was written reached the operating system");
    assert!(report.writes > 1000 && report.acknowledged > 500, "{report:?}");
}

#[test]
fn a_power_failure_loses_only_what_was_not_acknowledged() {
    let report = run(100..124, true, 1 << 20);
    assert!(report.acknowledged > 1000 && report.lost > 100, "the disk did lose writes: {report:?}");
}

#[test]
fn nor_with_flushes_and_several_wals() {
    let report = run(200..216, true, 64 * 1024);
    assert!(report.acknowledged > 500 && report.lost > 50, "the disk did lose writes: {report:?}");
}
