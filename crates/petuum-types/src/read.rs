//! What a reader asks of a shard, and the answer (P10, P12).

use crate::outcome::Fence;
use crate::{Clock, Generation, Incarnation, JobId, LogIndex, MapEpoch, RowId, TableId, Values, WorkerId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows of one table that one shard owns, and how fresh they must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Read {
    /// The job.
    pub job: JobId,
    /// Its generation as the reader knows it.
    pub generation: Generation,
    /// The map the rows were grouped by.
    pub epoch: MapEpoch,
    /// Who reads; `None` without a session.
    pub reader: Option<(WorkerId, Incarnation)>,
    /// The table; ignored when `rows` is empty.
    pub table: TableId,
    /// The rows; none just waits for the clocks.
    pub rows: Vec<RowId>,
    /// The least min clock.
    pub min_clock: Clock,
    /// The reader's own clock in the shard must be at least this.
    pub own_clock: Clock,
    /// The least applied log index.
    pub min_index: LogIndex,
}

/// Rows as of one applied index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// The replica's applied index.
    pub index: LogIndex,
    /// The shard's min clock at that index.
    pub min_clock: Clock,
    /// The reader's clock at that index; 0 without a session.
    pub own_clock: Clock,
    /// The rows, in the order asked.
    pub rows: Vec<RowAnswer>,
}

/// One row of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAnswer {
    /// Which.
    pub row: RowId,
    /// The log index that last changed it; 0 if nothing has.
    pub changed: LogIndex,
    /// All its columns, shared with the replica's state.
    pub values: Arc<Values>,
}

/// Why a read cannot be answered here, now or ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum ReadRefusal {
    /// No such job in this replica's applied state. From a leader: no such job.
    #[error("{job} is unknown here")]
    UnknownJob {
        /// As asked.
        job: JobId,
    },
    /// No such table in this replica's applied state. From a leader: no such table.
    #[error("{table} is unknown here")]
    UnknownTable {
        /// As asked.
        table: TableId,
    },
    /// The table was dropped or belongs to another job.
    #[error("{table} was dropped or belongs to another job")]
    ForeignTable {
        /// As asked.
        table: TableId,
    },
    /// A row of another shard.
    #[error("{table}, {row} does not belong to this shard at this map epoch")]
    WrongShard {
        /// The table.
        table: TableId,
        /// The row.
        row: RowId,
    },
    /// The reader's map is not the shard's; fetch the map.
    #[error("this shard is at {ours}, the read at {theirs}")]
    Epoch {
        /// The shard's.
        ours: MapEpoch,
        /// The read's.
        theirs: MapEpoch,
    },
    /// The reader is fenced.
    #[error(transparent)]
    Fenced(#[from] Fence),
}
