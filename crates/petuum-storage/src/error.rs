//! What can go wrong with a store. Every error says where; none is retryable on the same store, except that a read of
//! one damaged group does not end the others.

use petuum_types::GroupId;
use std::sync::Arc;

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// RocksDB refused. After a write or a sync the store is poisoned (P22).
    #[error("RocksDB in {dir} failed to {doing}: {reason}")]
    RocksDb {
        /// The data directory.
        dir: Arc<str>,
        /// What was tried.
        doing: &'static str,
        /// RocksDB's own words, with the file.
        reason: String,
    },
    /// The file system refused.
    #[error("{dir}: cannot {doing}: {source}")]
    Io {
        /// The data directory.
        dir: Arc<str>,
        /// What was tried.
        doing: &'static str,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
    /// Another process, or another store of this one, has the directory open.
    #[error("{dir} is in use: its lock is held ({reason}); stop the other node, or give this one its own directory")]
    Locked {
        /// The data directory.
        dir: Arc<str>,
        /// The lock, or RocksDB's own words.
        reason: String,
    },
    /// The directory is not a store that this version can read.
    #[error("{dir} holds {found}; this version reads storage format {supported}: use the version that wrote it")]
    Format {
        /// The data directory.
        dir: Arc<str>,
        /// What was found.
        found: String,
        /// The format of this version.
        supported: u32,
    },
    /// An entry that was asked for is not in the log.
    #[error(
        "{dir}: the log of {group} has no entry {index}; the next one there is {}",
        found.map_or_else(|| "none".to_owned(), |found| found.to_string())
    )]
    Hole {
        /// The data directory.
        dir: Arc<str>,
        /// The group.
        group: GroupId,
        /// The index that is missing.
        index: u64,
        /// The first index found behind it.
        found: Option<u64>,
    },
    /// Entries were appended that do not follow the log's last.
    #[error("{dir}: the log of {group} goes on at index {expected}, but index {got} was appended")]
    OutOfOrder {
        /// The data directory.
        dir: Arc<str>,
        /// The group.
        group: GroupId,
        /// The index that follows the log's last.
        expected: u64,
        /// The index given.
        got: u64,
    },
    /// Something stored is not what was written (G9).
    #[error("{dir}: {what} of {} is damaged: {reason}; leave this node stopped, this version cannot repair it from its \
        peers yet",
        group.map_or_else(|| "the node".to_owned(), |group| group.to_string()))]
    Damaged {
        /// The data directory.
        dir: Arc<str>,
        /// The group, or `None` for a record of the node.
        group: Option<GroupId>,
        /// Which record or piece.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A write or a sync failed earlier. What is durable is unknown, so nothing is written or read any more (P22).
    #[error("{dir} failed and is closed to reads and writes until it is reopened; the first failure: {first}")]
    Poisoned {
        /// The data directory.
        dir: Arc<str>,
        /// The first failure.
        first: Arc<Error>,
    },
    /// The store was closed, by a call or because its last handle went away.
    #[error("{dir} is closed")]
    Closed {
        /// The data directory.
        dir: Arc<str>,
    },
}

impl From<Error> for petuum_types::Error {
    fn from(error: Error) -> Self {
        Self::new(petuum_types::ErrorKind::Storage, error.to_string())
    }
}
