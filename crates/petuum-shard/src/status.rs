//! What a shard tells operators and tests about itself.

use crate::member::Member;
use crate::shard::Shard;
use petuum_types::{Clock, Incarnation, JobId, Sequence, TableSchema, WorkerId};

/// A worker of a job in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerStatus {
    /// The worker.
    pub worker: WorkerId,
    /// The highest incarnation seen.
    pub incarnation: Incarnation,
    /// Whether its transition is complete here; until then nobody speaks for the worker.
    pub settled: bool,
    /// Whether it counts in the min clock.
    pub live: bool,
    /// Clocks ticked here; of a removed worker, the clock it was removed at.
    pub clock: Clock,
    /// The next sequence taken.
    pub next_sequence: Sequence,
    /// Bytes of staged parts.
    pub staged_bytes: u64,
    /// Clocks with staged parts.
    pub staged_clocks: usize,
    /// Values of its updates that were left out because they, or their sum, were not finite.
    pub non_finite: u64,
}

/// A table in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatus<'a> {
    /// What the table is.
    pub schema: &'a TableSchema,
    /// Rows that an update has reached.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Values left out because they, or their sum, were not finite.
    pub non_finite: u64,
}

impl Shard {
    /// The workers this shard has heard of; none for a job never opened.
    #[must_use]
    pub fn workers(&self, job: JobId) -> Vec<WorkerStatus> {
        let members = self.jobs.get(&job).into_iter().flat_map(|job| &job.members);
        members.map(|(worker, member)| worker_status(*worker, member)).collect()
    }

    /// The tables, by id.
    pub fn tables(&self) -> impl Iterator<Item = TableStatus<'_>> {
        self.tables.live.values().map(|table| TableStatus {
            schema: &table.schema,
            rows: table.rows,
            bytes: table.rows * table.schema.row_bytes() as u64,
            non_finite: table.non_finite,
        })
    }

    /// The jobs opened here.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }
}

fn worker_status(worker: WorkerId, member: &Member) -> WorkerStatus {
    WorkerStatus {
        worker,
        incarnation: member.incarnation,
        settled: member.settled,
        live: member.is_live(),
        clock: member.clock,
        next_sequence: member.next,
        staged_bytes: member.staged.bytes,
        staged_clocks: member.staged.clocks.len(),
        non_finite: member.non_finite,
    }
}
