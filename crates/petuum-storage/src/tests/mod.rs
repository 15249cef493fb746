//! Tests of the store on real files.

mod crash;
mod log;
mod open;
mod recovery;
mod snapshots;
mod sync;
mod wal;

use crate::{GroupStore, Store, StoreOptions, SyncDone, Syncer};
use petuum_types::GroupId;
use std::sync::mpsc::{Receiver, channel};

/// A store in its own directory, with its syncer.
struct Opened {
    store: Store,
    syncer: Syncer,
}

impl Opened {
    fn at(dir: &std::path::Path) -> Self {
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

fn append(group: &GroupStore, range: std::ops::RangeInclusive<u64>) {
    let entries = range.map(|index| (index, format!("entry {index}")));
    group.append(entries, ignore()).unwrap();
}

fn indices(group: &GroupStore, from: u64, end: u64) -> Vec<u64> {
    group.read(from, end, usize::MAX).unwrap().into_iter().map(|(index, _)| index).collect()
}
