//! RocksDB under everything: the shared log, one syncer, snapshots, identity.
//!
//! One RocksDB per node, with one write-ahead log (WAL) for all its groups. What is written is readable at once and
//! durable after the next sync; one syncer serves every group, so that one fsync makes everything durable that was
//! written before it began:
//!
//! ```text
//!  group 0   group 1 … group n        node records
//!     │ append, put_record, publish …     │
//!     ▼                                   ▼
//!   RocksDB: one write batch each (WAL + memtable, no fsync) ──► readable
//!     │ callback
//!     ▼
//!   queue ──► Syncer::run_once: take ALL callbacks, THEN fsync the WAL, then complete them
//!                 └ error: the store is poisoned, for ever (P22)
//! ```
//!
//! Because there is one WAL, a crash leaves a *prefix* of everything that was written, over all groups alike, and the
//! prefix contains every write whose callback was called with `Ok`.
//!
//! This crate does not know Raft: entries, votes and manifests are bytes. It has no async code and one thread, the
//! syncer's, which only [`Store::spawn_sync_thread`] starts; the simulator calls [`Syncer::run_once`] itself.
//!
//! Reading order: `keys` (the layout, byte by byte), `error`, `options`, `queue` and [`syncer`](Syncer), `engine`,
//! `wal` (damage in the log), `store`, `group`, `record`, `snapshot`, `snapshot_writer`, `node`.
//! [`testing`] has the check that a store must pass on every disk; unit tests are in `tests/`.

mod engine;
mod error;
mod group;
mod keys;
mod node;
mod options;
mod queue;
mod record;
mod snapshot;
mod snapshot_writer;
mod store;
mod syncer;
pub mod testing;
#[cfg(test)]
mod tests;
mod wal;

pub use error::Error;
pub use group::GroupStore;
pub use keys::{NodeRecord, Record};
pub use node::Boot;
pub use options::{FreeBytes, StoreOptions};
pub use queue::SyncDone;
pub use snapshot::{Pieces, Snapshot};
pub use snapshot_writer::SnapshotWriter;
pub use store::Store;
pub use syncer::Syncer;
pub use wal::{CutWal, ReadWals};

/// The engine's environment, for a disk of one's own ([`StoreOptions::env`]).
pub use rocksdb::Env;
