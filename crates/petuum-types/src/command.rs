//! What the control group's drivers send to a shard, as log entries of its own (P5, P15, P18). Every one may arrive
//! late, twice, or out of order; the shard answers each without harm.

use crate::{Clock, Generation, Incarnation, JobId, MapEpoch, TableId, TableSchema, WorkerId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One step of a driver in one shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ShardCommand {
    /// The slots this shard owns from this epoch on. A lower or equal epoch changes nothing.
    Own {
        /// The map's epoch.
        epoch: MapEpoch,
        /// `first..end`.
        slots: Range<u16>,
    },
    /// A job exists. A repeat changes nothing; a lower generation is stale.
    OpenJob {
        /// The job.
        job: JobId,
        /// Its generation.
        generation: Generation,
        /// How many workers it has.
        workers: u32,
    },
    /// A table exists. A repeat changes nothing.
    CreateTable(TableSchema),
    /// A table is gone. A repeat, or a table never seen, is done; the id is never reused.
    DropTable(TableId),
    /// First half of a transition: from this entry on only `incarnation` may speak for the worker, and not before the
    /// second half. Answers [`ShardAnswer::Clock`].
    Fence {
        /// Whose.
        worker: WorkerKey,
        /// The version; a lower one than the shard has seen is answered [`ShardAnswer::Stale`].
        incarnation: Incarnation,
        /// A join (P15): a worker that is not live is counted at this shard's min clock. Otherwise (takeover, eviction) a
        /// worker that is not live stays so, and the version is remembered.
        admit: bool,
    },
    /// Second half: the worker's clock is `clock` in every shard. A shard below ticks up from what it holds staged;
    /// staged parts of lower incarnations from `clock` on are dropped. Answers [`ShardAnswer::Done`].
    Settle {
        /// Whose.
        worker: WorkerKey,
        /// As in the fence.
        incarnation: Incarnation,
        /// C, the greatest of the shards' answers, recorded in the control group before.
        clock: Clock,
        /// Whether the worker goes on as `incarnation`, or is removed.
        keep: bool,
    },
}

/// A worker of a job, under the job's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerKey {
    /// The job.
    pub job: JobId,
    /// Its generation.
    pub generation: Generation,
    /// The worker.
    pub worker: WorkerId,
}

/// A shard's answer to a [`ShardCommand`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ShardAnswer {
    /// Applied, now or before.
    Done,
    /// The worker's clock in this shard, as of the fence; 0 for a worker the shard never counted.
    Clock(Clock),
    /// A higher incarnation has been seen: this command is of the past and changed nothing.
    Stale {
        /// The one seen.
        incarnation: Incarnation,
    },
    /// The command does not fit the shard's state; the driver should look at the control group's state again.
    Refused(String),
}
