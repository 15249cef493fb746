//! Commands of the control group's log and what applying them answers.
//!
//! An entry's bytes are `codec::encode(&command)`, an answer's `codec::encode(&answer)`. Variants are numbered by their
//! order: new ones go to the end.

use petuum_types::command::WorkerKey;
use petuum_types::map::ShardMap;
use petuum_types::{
    Clock, ClusterId, Error, ErrorKind, Incarnation, Initial, JobId, MapEpoch, NonFinite, RequestId, Staleness,
    TableId, ValueType, WorkerId,
};
use serde::{Deserialize, Serialize};

/// One entry of the control group's log.
///
/// The first six are calls of clients and operators; all but `Form` carry a request id, and the same id gets the same
/// answer (P17). The rest are records of drivers; one that is of the past, or was made under another map, changes
/// nothing (P5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ControlCommand {
    /// Forms the cluster. A repeat with an equal map is answered with the id given first.
    Form {
        /// The cluster's name for ever.
        cluster: ClusterId,
        /// The first shard map.
        map: ShardMap,
    },
    /// Creates a job; usable once [`crate::Job::is_open`].
    CreateJob {
        /// Of this call.
        request: RequestId,
        /// Unique in the cluster.
        name: String,
        /// N: no registration is answered before N workers are settled (P18).
        workers: u32,
        /// The rest.
        settings: JobSettings,
    },
    /// Creates a table; usable once [`crate::Table::is_ready`].
    CreateTable {
        /// Of this call.
        request: RequestId,
        /// The job.
        job: JobId,
        /// Unique among the job's tables.
        name: String,
        /// Columns of every row.
        width: u32,
        /// Type of every value.
        value_type: ValueType,
        /// What an untouched row holds.
        initial: Initial,
        /// Seed of `initial`.
        seed: u64,
        /// What to do with NaN and infinities.
        non_finite: NonFinite,
        /// Staleness of reads.
        staleness: Staleness,
    },
    /// Drops a table; done once the table is no longer in the state.
    DropTable {
        /// Of this call.
        request: RequestId,
        /// The job.
        job: JobId,
        /// The table's name.
        name: String,
    },
    /// Registers a process as a worker: a join, or a takeover of the process before it (P5, P15).
    Register {
        /// Of this call. A process uses one id until it has a final answer.
        request: RequestId,
        /// The job.
        job: JobId,
        /// The worker's place in it.
        worker: WorkerId,
        /// Whether a removed worker comes back, at the join clock (P17).
        rejoin: bool,
    },
    /// Removes a worker.
    Evict {
        /// Of this call; not looked at for [`EvictReason::LeaseExpired`], which is nobody's call.
        request: RequestId,
        /// The job.
        job: JobId,
        /// The worker.
        worker: WorkerId,
        /// Only if the worker still is this incarnation; an operator may leave it out.
        incarnation: Option<Incarnation>,
        /// Why.
        reason: EvictReason,
    },
    /// Every shard owns its slots of this map.
    MapReady {
        /// The map's.
        epoch: MapEpoch,
    },
    /// Every shard has opened the job.
    JobReady {
        /// The job.
        job: JobId,
        /// Of the map whose shards confirmed.
        epoch: MapEpoch,
    },
    /// Every shard has the table.
    TableReady {
        /// The table.
        table: TableId,
        /// Of the map whose shards confirmed.
        epoch: MapEpoch,
    },
    /// Every shard has dropped the table.
    TableGone {
        /// The table.
        table: TableId,
        /// Of the map whose shards confirmed.
        epoch: MapEpoch,
    },
    /// Every shard has fenced the transition's worker; C is recorded, once (P5).
    RecordClock {
        /// Whose.
        key: WorkerKey,
        /// The transition's.
        incarnation: Incarnation,
        /// The greatest of the shards' answers; apply raises it to the C of the last removal (P15).
        clock: Clock,
        /// Of the map whose shards answered.
        epoch: MapEpoch,
    },
    /// Every shard has settled the transition at C.
    RecordSettled {
        /// Whose.
        key: WorkerKey,
        /// The transition's.
        incarnation: Incarnation,
        /// Of the map whose shards confirmed.
        epoch: MapEpoch,
    },
}

/// A job's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobSettings {
    /// After this many milliseconds without a heartbeat a live worker is evicted (P16);
    /// [`crate::limits::LEASE_MS_MIN`] to [`crate::limits::LEASE_MS_MAX`].
    pub lease_ms: u64,
}

impl Default for JobSettings {
    /// A lease of 10 s.
    fn default() -> Self {
        Self { lease_ms: 10_000 }
    }
}

/// Why a worker is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EvictReason {
    /// An operator said so.
    Operator,
    /// No heartbeat within the lease (P16).
    LeaseExpired,
    /// The worker itself left.
    Left,
}

/// What applying a [`ControlCommand`] answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ControlAnswer {
    /// The cluster is formed, under this id.
    Formed {
        /// The id given first.
        cluster: ClusterId,
    },
    /// The job is in the state.
    Job {
        /// Its id.
        job: JobId,
        /// Whether by this call; otherwise it was there with the same definition.
        created: bool,
    },
    /// The table is in the state.
    Table {
        /// Its id.
        table: TableId,
        /// Whether by this call; otherwise it was there with the same definition.
        created: bool,
    },
    /// The table is on its way out.
    Dropping {
        /// Its id.
        table: TableId,
    },
    /// The registration is on its way; [`crate::Control::registration`] says how far.
    Registered {
        /// What the process will be.
        incarnation: Incarnation,
    },
    /// The worker is removed or on its way out.
    Removing {
        /// The removal's version.
        incarnation: Incarnation,
    },
    /// A driver's record was taken.
    Recorded,
    /// A driver's record was of the past, or made under another map: nothing changed.
    Ignored,
    /// Refused; nothing changed.
    Refused {
        /// What the caller should do.
        kind: ErrorKind,
        /// Expected, got, where.
        message: String,
    },
}

impl ControlAnswer {
    /// The answer, or the refusal as an error.
    ///
    /// # Errors
    /// The refusal.
    pub fn into_result(self) -> Result<Self, Error> {
        match self {
            Self::Refused { kind, message } => Err(Error::new(kind, message)),
            other => Ok(other),
        }
    }
}

impl ControlCommand {
    /// The eviction that a lease's end asks for (P16). It names the incarnation, so it never touches a successor and a
    /// repeat does nothing.
    #[must_use]
    pub const fn lease_expired(job: JobId, worker: WorkerId, incarnation: Incarnation) -> Self {
        Self::Evict {
            request: RequestId(0),
            job,
            worker,
            incarnation: Some(incarnation),
            reason: EvictReason::LeaseExpired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petuum_types::{Generation, codec};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn golden_commands() {
        let key = WorkerKey { job: JobId(1), generation: Generation(1), worker: WorkerId(2) };
        let register =
            ControlCommand::Register { request: RequestId(7), job: JobId(1), worker: WorkerId(2), rejoin: true };
        let clock =
            ControlCommand::RecordClock { key, incarnation: Incarnation(4), clock: Clock(9), epoch: MapEpoch(1) };
        let golden = [
            (register, "010407010201"),
            (ControlCommand::lease_expired(JobId(1), WorkerId(2), Incarnation(4)), "0105000102010401"),
            (clock, "010a010102040901"),
            (ControlCommand::TableGone { table: TableId(300), epoch: MapEpoch(1) }, "0109fb2c0101"),
        ];
        for (command, expected) in golden {
            let bytes = codec::encode(&command);
            assert_eq!(hex(&bytes), expected);
            assert_eq!(codec::decode::<ControlCommand>(&bytes).unwrap(), command);
        }
    }

    #[test]
    fn golden_answers() {
        let refused = ControlAnswer::Refused { kind: ErrorKind::Evicted, message: "no".into() };
        for (answer, expected) in [
            (ControlAnswer::Job { job: JobId(3), created: true }, "01010301"),
            (ControlAnswer::Registered { incarnation: Incarnation(5) }, "010405"),
            (ControlAnswer::Ignored, "0107"),
            (refused, "010804026e6f"),
        ] {
            let bytes = codec::encode(&answer);
            assert_eq!(hex(&bytes), expected);
            assert_eq!(codec::decode::<ControlAnswer>(&bytes).unwrap(), answer);
        }
    }
}
