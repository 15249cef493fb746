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
//! prefix contains every write whose callback was called with `Ok`. The WAL is several files, of which a power failure
//! keeps each as far as it likes; that the whole is a prefix all the same, `recovery` sees to at open.
//!
//! So of two writes the later never survives alone, and none that nobody waits for needs a sync of its own:
//!
//! | first, unsynced | then | what a lone second would mean |
//! |---|---|---|
//! | truncation | append | old entries behind new ones: log matching broken, and an acknowledgement of a log that is not |
//! | append | append | a hole in the log |
//! | vote (waited for before it is answered) | append of the term's leader | a second vote in a term whose entries are held |
//! | append | `committed` | a group that applies entries it does not have |
//! | snapshot published (waited for) | purge | neither the entries nor the state they led to |
//! | purge, in one batch with its record | append | a log that begins nowhere |
//! | a peer's snapshot published | purge behind the log's end, then append | a hole between snapshot and log |
//! | pieces of a snapshot | its record | a snapshot that lacks pieces |
//! | the new snapshot's record (waited for) | deletion of the old one's pieces | no whole snapshot |
//! | identity, boot (each waited for) | anything that peers are told | a node that denies what it said |
//!
//! The other way round, a first that survives without its second is always a state that the store was in.
//!
//! This crate does not know Raft: entries, votes and manifests are bytes. It has no async code and one thread, the
//! syncer's, which only [`Store::spawn_sync_thread`] starts; the simulator calls [`Syncer::run_once`] itself.
//!
//! Reading order: `keys` (the layout, byte by byte), `error`, `options`, `queue` and [`syncer`](Syncer), `engine`,
//! `blocks`, `wal`, `files` and `recovery` (what a crash or damage has left of the log), `store`, `group`, `record`, `snapshot`, `snapshot_writer`, `node`.
//! [`testing`] has the check that a store must pass on every disk; unit tests are in `tests/`.

mod blocks;
mod engine;
mod error;
mod files;
mod group;
mod keys;
mod node;
mod options;
mod queue;
mod record;
mod recovery;
mod replay;
mod snapshot;
mod snapshot_writer;
mod store;
mod syncer;
pub mod testing;
#[cfg(test)]
mod tests;
mod wal;

pub use error::Error;
pub use files::LogFiles;
pub use group::GroupStore;
pub use keys::{NodeRecord, Record};
pub use node::Boot;
pub use options::{FreeBytes, StoreOptions};
pub use queue::SyncDone;
pub use snapshot::{Pieces, Snapshot};
pub use snapshot_writer::SnapshotWriter;
pub use store::Store;
pub use syncer::Syncer;

/// The engine's environment, for a disk of one's own ([`StoreOptions::env`]).
pub use rocksdb::Env;
