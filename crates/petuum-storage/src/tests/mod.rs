//! Tests of the store on real files.

mod blobs;
mod crash;
mod log;
mod open;
mod recovery;
mod snapshots;
mod sync;
mod wal;

use crate::{GroupStore, Store, StoreOptions, SyncDone, Syncer};
use petuum_types::GroupId;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

/// A store in its own directory, with its syncer.
struct Opened {
    store: Store,
    syncer: Syncer,
}

impl Opened {
    fn at(dir: &Path) -> Self {
        let store = Store::open(dir, small()).unwrap();
        let syncer = store.syncer();
        Self { store, syncer }
    }

    fn group(&self, group: u32) -> GroupStore {
        self.store.group(GroupId(group))
    }

    fn sync(&self) -> usize {
        self.syncer.run_once().unwrap()
    }
}

/// Buffers so small that tests see flushes and several WAL files.
fn small() -> StoreOptions {
    StoreOptions { write_buffer_bytes: 64 * 1024, max_wal_bytes: 256 * 1024, ..StoreOptions::default() }
}

/// A callback nobody waits for.
fn ignore() -> SyncDone {
    Box::new(|_| ())
}

/// A callback and what it was called with.
fn watched() -> (SyncDone, Receiver<Result<(), crate::Error>>) {
    let (sender, receiver) = channel();
    (Box::new(move |outcome| sender.send(outcome).unwrap()), receiver)
}

/// The files of a directory with this extension, in order.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut found: Vec<_> = paths.filter(|path| path.extension().is_some_and(|is| is == extension)).collect();
    found.sort();
    found
}

/// A copy of a store's directory. If the store is open RocksDB may just be deleting a file of a moment ago: then it is
/// copied anew.
fn copy(from: &Path) -> tempfile::TempDir {
    let try_copy = || -> std::io::Result<tempfile::TempDir> {
        let to = tempfile::tempdir()?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            std::fs::copy(entry.path(), to.path().join(entry.file_name()))?;
        }
        Ok(to)
    };
    let vanished = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let mut copied = try_copy();
    for _ in 0..10 {
        match &copied {
            Err(error) if vanished(error) => copied = try_copy(),
            _ => break,
        }
    }
    copied.unwrap()
}

fn append(group: &GroupStore, range: std::ops::RangeInclusive<u64>) {
    let entries = range.map(|index| (index, format!("entry {index}")));
    group.append(entries, ignore()).unwrap();
}

fn indices(group: &GroupStore, from: u64, end: u64) -> Vec<u64> {
    group.read(from, end, usize::MAX).unwrap().into_iter().map(|(index, _)| index).collect()
}
