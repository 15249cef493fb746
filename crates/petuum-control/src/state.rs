//! What the control group agrees on.
//!
//! Not here: how commands change it ([`crate::apply`]), what a worker's phases mean ([`crate::worker`]), what drivers make
//! of it ([`crate::duty`]). Heartbeats are not state at all ([`crate::lease`], P16).
//!
//! Invariants: ids of jobs and tables are never reused; a job's incarnations come from one counter and only grow; a job's
//! `started` never goes back; a C, once recorded for an incarnation, never changes.

use crate::answers::Answers;
use crate::command::JobSettings;
use crate::worker::Worker;
use petuum_types::command::WorkerKey;
use petuum_types::map::ShardMap;
use petuum_types::{ClusterId, Generation, Incarnation, JobId, LogIndex, MapEpoch, TableId, TableSchema, WorkerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The control group's state: the same on every member at the same log index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Control {
    /// The entry applied last. A model checker that wants fewer states gives every entry the same index.
    pub(crate) applied: LogIndex,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) tables: BTreeMap<TableId, Table>,
    /// The ids given last; 0 is never given.
    pub(crate) last_job: JobId,
    pub(crate) last_table: TableId,
    pub(crate) answers: Answers,
}

/// A formed cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Cluster {
    pub(crate) id: ClusterId,
    pub(crate) map: ShardMap,
    /// The epoch whose slots every shard has confirmed.
    pub(crate) owned: Option<MapEpoch>,
}

/// A job's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    pub(crate) name: String,
    pub(crate) generation: Generation,
    pub(crate) size: u32,
    pub(crate) settings: JobSettings,
    pub(crate) open: bool,
    pub(crate) started: bool,
    pub(crate) last_incarnation: Incarnation,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
}

impl Job {
    /// Unique in the cluster.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Grows with each restore; 1 until restores exist.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// N.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> JobSettings {
        self.settings
    }

    /// Whether every shard has opened it: the call that created it returns now.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// Whether all N workers have been settled once (P18). Stays so.
    #[must_use]
    pub const fn has_started(&self) -> bool {
        self.started
    }

    /// Every worker that ever registered.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.workers.iter().map(|(id, worker)| (*id, worker))
    }

    /// One worker, if it ever registered.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<&Worker> {
        self.workers.get(&worker)
    }

    /// The next incarnation of this job.
    pub(crate) fn next_incarnation(&mut self) -> Incarnation {
        let next = self.last_incarnation.0.checked_add(1).expect("fewer than 2^64 registrations");
        self.last_incarnation = Incarnation(next);
        self.last_incarnation
    }

    /// P18: from now on registrations are answered, if all N workers have been settled once.
    pub(crate) fn start_if_complete(&mut self) {
        let settled = self.workers.values().filter(|worker| worker.was_settled()).count();
        self.started |= settled == self.size as usize;
    }
}

/// A table's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Table {
    pub(crate) schema: TableSchema,
    pub(crate) phase: TablePhase,
}

/// How far a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TablePhase {
    /// Some shard has not confirmed it.
    Creating,
    /// Usable.
    Ready,
    /// Some shard has not dropped it. Its name is free.
    Dropping,
}

impl Table {
    /// The definition.
    #[must_use]
    pub const fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// How far it is.
    #[must_use]
    pub const fn phase(&self) -> TablePhase {
        self.phase
    }

    /// Whether every shard has it: the call that created it returns now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == TablePhase::Ready
    }
}

impl Control {
    /// Nothing formed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry applied last.
    #[must_use]
    pub const fn applied(&self) -> LogIndex {
        self.applied
    }

    /// The cluster's id, once formed.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster.as_ref().map(|cluster| cluster.id)
    }

    /// The current shard map, once formed.
    #[must_use]
    pub fn map(&self) -> Option<&ShardMap> {
        self.cluster.as_ref().map(|cluster| &cluster.map)
    }

    /// Whether every shard has confirmed its slots of the current map.
    #[must_use]
    pub fn map_is_ready(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.owned == Some(cluster.map.epoch))
    }

    /// Every job.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(id, job)| (*id, job))
    }

    /// A job by id.
    #[must_use]
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// A job by name.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<(JobId, &Job)> {
        self.jobs().find(|(_, job)| job.name == name)
    }

    /// A job's tables, those on their way out included.
    pub fn tables(&self, job: JobId) -> impl Iterator<Item = &Table> {
        self.tables.values().filter(move |table| table.schema.job == job)
    }

    /// A table by id.
    #[must_use]
    pub fn table(&self, table: TableId) -> Option<&Table> {
        self.tables.get(&table)
    }

    /// A job's table by name; one on its way out has given its name back.
    #[must_use]
    pub fn table_named(&self, job: JobId, name: &str) -> Option<&Table> {
        self.tables(job).find(|table| table.schema.name == name && table.phase != TablePhase::Dropping)
    }

    /// A job's workers that ever registered; none of an unknown job.
    pub fn workers(&self, job: JobId) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.jobs.get(&job).into_iter().flat_map(Job::workers)
    }

    /// A worker's record.
    #[must_use]
    pub fn worker(&self, job: JobId, worker: WorkerId) -> Option<&Worker> {
        self.jobs.get(&job)?.worker(worker)
    }

    /// The worker of a key, if the key is of the job's generation.
    pub(crate) fn keyed(&self, key: WorkerKey) -> Option<&Worker> {
        let job = self.jobs.get(&key.job).filter(|job| job.generation == key.generation)?;
        job.worker(key.worker)
    }
}
