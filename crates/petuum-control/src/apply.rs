//! Applying one entry of the control group's log.
//!
//! Pure and deterministic: no time, lease or timeout is looked at (P16). Every member decides the same from the same state
//! and command, and a refusal changes nothing. Records of drivers are checked here again, since several drivers may
//! overlap and a map may have changed under one (P5).

use crate::command::{ControlAnswer, ControlCommand, EvictReason, JobSettings};
use crate::limits::{ADDRESS_BYTES_MAX, LEASE_MS_MAX, LEASE_MS_MIN, MESSAGE_BYTES_MAX, NODES_MAX, WORKERS_TOTAL_MAX};
use crate::state::{Cluster, Control, Job, Table, TablePhase};
use crate::worker::{Phase, Transition, TransitionKind, Worker};
use petuum_types::command::WorkerKey;
use petuum_types::limits::{JOBS_MAX, NAME_BYTES_MAX, TABLES_MAX, WORKERS_MAX};
use petuum_types::map::ShardMap;
use petuum_types::{
    Clock, ClusterId, ErrorKind, Generation, Incarnation, JobId, LogIndex, MapEpoch, RequestId, TableId, TableSchema,
    WorkerId,
};
use std::collections::{BTreeMap, BTreeSet};

/// What deciding a call gives: its answer, or why not.
type Decision = Result<ControlAnswer, (ErrorKind, String)>;

fn refuse<T>(kind: ErrorKind, message: impl Into<String>) -> Result<T, (ErrorKind, String)> {
    let mut message: String = message.into();
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    Err((kind, message))
}

/// Who and how a call registers.
#[derive(Clone, Copy)]
struct Registering {
    request: RequestId,
    job: JobId,
    worker: WorkerId,
    rejoin: bool,
}

/// Whom and why a call evicts.
#[derive(Clone, Copy)]
struct Evicting {
    job: JobId,
    worker: WorkerId,
    incarnation: Option<Incarnation>,
    reason: EvictReason,
}

impl Control {
    /// Applies the entry at `index` and answers it. A repeated call gets the answer it got first (P17).
    ///
    /// # Panics
    /// If entries come out of order, or an invariant of the state is broken: a defect, in which the member must stop.
    pub fn apply(&mut self, index: LogIndex, command: &ControlCommand) -> ControlAnswer {
        assert!(index >= self.applied, "G6: entry {index} after {}", self.applied);
        self.applied = index;
        if let Some(answer) = self.answers.recall(command) {
            return answer;
        }
        let answer = self.decide(command).unwrap_or_else(|(kind, message)| ControlAnswer::Refused { kind, message });
        self.answers.remember(command, &answer);
        answer
    }

    fn decide(&mut self, command: &ControlCommand) -> Decision {
        match command.clone() {
            ControlCommand::Form { cluster, map } => self.form(cluster, map),
            ControlCommand::CreateJob { request: _, name, workers, settings } => {
                self.create_job(name, workers, settings)
            }
            ControlCommand::CreateTable {
                request: _,
                job,
                name,
                width,
                value_type,
                initial,
                seed,
                non_finite,
                staleness,
            } => {
                let id = TableId(0);
                self.create_table(TableSchema {
                    id,
                    job,
                    name,
                    width,
                    value_type,
                    initial,
                    seed,
                    non_finite,
                    staleness,
                })
            }
            ControlCommand::DropTable { request: _, job, name } => self.drop_table(job, &name),
            ControlCommand::Register { request, job, worker, rejoin } => {
                self.register(Registering { request, job, worker, rejoin })
            }
            ControlCommand::Evict { request: _, job, worker, incarnation, reason } => {
                self.evict(Evicting { job, worker, incarnation, reason })
            }
            ControlCommand::MapReady { epoch } => Ok(recorded(self.map_ready(epoch))),
            ControlCommand::JobReady { job, epoch } => Ok(recorded(self.job_ready(job, epoch))),
            ControlCommand::TableReady { table, epoch } => Ok(recorded(self.table_ready(table, epoch))),
            ControlCommand::TableGone { table, epoch } => Ok(recorded(self.table_gone(table, epoch))),
            ControlCommand::RecordClock { key, incarnation, clock, epoch } => {
                Ok(recorded(self.record_clock(key, incarnation, clock, epoch)))
            }
            ControlCommand::RecordSettled { key, incarnation, epoch } => {
                Ok(recorded(self.record_settled(key, incarnation, epoch)))
            }
        }
    }

    fn form(&mut self, cluster: ClusterId, map: ShardMap) -> Decision {
        if let Some(formed) = &self.cluster {
            // Two calls of `init` draw two ids; the first stands, and the second is told it.
            if formed.map == map {
                return Ok(ControlAnswer::Formed { cluster: formed.id });
            }
            return refuse(
                ErrorKind::AlreadyExists,
                format!(
                    "the cluster is formed already, as {} with another shard map at {}",
                    formed.id, formed.map.epoch
                ),
            );
        }
        check_map(&map)?;
        self.cluster = Some(Cluster { id: cluster, map, owned: None });
        Ok(ControlAnswer::Formed { cluster })
    }

    fn initialized(&self) -> Result<(), (ErrorKind, String)> {
        match self.cluster {
            Some(_) => Ok(()),
            None => refuse(ErrorKind::NotInitialized, "the cluster has not been formed; run `petuum ctl init`"),
        }
    }

    fn create_job(&mut self, name: String, workers: u32, settings: JobSettings) -> Decision {
        self.initialized()?;
        check_job(&name, workers, settings)?;
        if let Some((id, job)) = self.job_named(&name) {
            if (job.size, job.settings) == (workers, settings) {
                return Ok(ControlAnswer::Job { job: id, created: false });
            }
            return refuse(
                ErrorKind::AlreadyExists,
                format!(
                    "job `{name}` exists with {} workers and a lease of {} ms; got {workers} workers and {} ms",
                    job.size, job.settings.lease_ms, settings.lease_ms
                ),
            );
        }
        let total = self.jobs.values().map(|job| u64::from(job.size)).sum::<u64>() + u64::from(workers);
        if self.jobs.len() >= JOBS_MAX || total > WORKERS_TOTAL_MAX {
            return refuse(
                ErrorKind::ResourceExhausted,
                format!(
                    "{} jobs and {total} workers with this one; a cluster has at most {JOBS_MAX} and {WORKERS_TOTAL_MAX}",
                    self.jobs.len() + 1
                ),
            );
        }
        self.last_job = JobId(self.last_job.0 + 1);
        let job = Job {
            name,
            generation: Generation(1),
            size: workers,
            settings,
            open: false,
            started: false,
            last_incarnation: Incarnation(0),
            workers: BTreeMap::new(),
        };
        self.jobs.insert(self.last_job, job);
        Ok(ControlAnswer::Job { job: self.last_job, created: true })
    }

    fn job_mut(&mut self, job: JobId) -> Result<&mut Job, (ErrorKind, String)> {
        self.initialized()?;
        match self.jobs.get_mut(&job) {
            Some(job) => Ok(job),
            None => refuse(ErrorKind::NotFound, format!("{job} is unknown; `petuum ctl job create` makes one")),
        }
    }

    fn create_table(&mut self, mut schema: TableSchema) -> Decision {
        let job_name = self.job_mut(schema.job)?.name.clone();
        if let Err(message) = schema.validate() {
            return refuse(ErrorKind::InvalidArgument, message);
        }
        if let Some(existing) = self.table_named(schema.job, &schema.name) {
            schema.id = existing.schema.id;
            if existing.schema == schema {
                return Ok(ControlAnswer::Table { table: schema.id, created: false });
            }
            return refuse(
                ErrorKind::AlreadyExists,
                format!("table `{}` of job `{job_name}` exists with another definition", schema.name),
            );
        }
        if self.tables.len() >= TABLES_MAX {
            return refuse(
                ErrorKind::ResourceExhausted,
                format!("the cluster has {} tables, as many as it may; drop some", self.tables.len()),
            );
        }
        let id = self.last_table.0.checked_add(1).expect("fewer than 2^32 tables were ever created");
        self.last_table = TableId(id);
        schema.id = self.last_table;
        self.tables.insert(schema.id, Table { schema, phase: TablePhase::Creating });
        Ok(ControlAnswer::Table { table: self.last_table, created: true })
    }

    fn drop_table(&mut self, job: JobId, name: &str) -> Decision {
        let job_name = self.job_mut(job)?.name.clone();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return refuse(
                ErrorKind::InvalidArgument,
                format!("a name of {} bytes; expected 1 to {NAME_BYTES_MAX}", name.len()),
            );
        }
        let named = self.table_named(job, name);
        // A second call while the first is under way waits for the same drop.
        let table = named.or_else(|| self.tables(job).filter(|table| table.schema.name == name).last());
        let Some(id) = table.map(|table| table.schema.id) else {
            return refuse(ErrorKind::NotFound, format!("job `{job_name}` has no table `{name}`"));
        };
        self.tables.get_mut(&id).expect("found above").phase = TablePhase::Dropping;
        Ok(ControlAnswer::Dropping { table: id })
    }

    /// A join, or a takeover of the process before (P5, P15, P17).
    fn register(&mut self, call: Registering) -> Decision {
        let Registering { request, job: job_id, worker: id, rejoin } = call;
        let job = self.job_mut(job_id)?;
        check_worker(job, id)?;
        let Some(worker) = job.workers.get(&id) else {
            let incarnation = job.next_incarnation();
            job.workers.insert(id, Worker::joining(request, incarnation));
            return Ok(ControlAnswer::Registered { incarnation });
        };
        if let Some(incarnation) = worker.registered_by(request) {
            return Ok(ControlAnswer::Registered { incarnation });
        }
        match worker.phase {
            Phase::Transition(Transition { kind: TransitionKind::Remove { .. }, .. }) => refuse(
                ErrorKind::Unavailable,
                format!("{id} of job `{}` is being removed; try again when every shard has confirmed it", job.name),
            ),
            Phase::Removed { at, reason, .. } if !rejoin => refuse(
                ErrorKind::Evicted,
                format!(
                    "{id} of job `{}` was removed at {at} ({reason:?}): its clocks from {} on are lost; re-join explicitly",
                    job.name, at.0
                ),
            ),
            Phase::Transition(_) | Phase::Live { .. } | Phase::Removed { .. } => {
                let incarnation = job.next_incarnation();
                let worker = job.workers.get_mut(&id).expect("found above");
                worker.register(request, incarnation);
                Ok(ControlAnswer::Registered { incarnation })
            }
        }
    }

    /// A removal; never of a successor of the incarnation it names (P16, P17).
    fn evict(&mut self, call: Evicting) -> Decision {
        let Evicting { job: job_id, worker: id, incarnation: named, reason } = call;
        let job = self.job_mut(job_id)?;
        check_worker(job, id)?;
        if named.is_none() && reason != EvictReason::Operator {
            return refuse(ErrorKind::InvalidArgument, format!("removing {id} ({reason:?}) without its incarnation"));
        }
        let Some(worker) = job.workers.get(&id) else {
            return refuse(ErrorKind::NotFound, format!("{id} of job `{}` has never registered", job.name));
        };
        let speaker = worker.speaker();
        match named {
            Some(named) if named < speaker => {
                return refuse(
                    ErrorKind::Replaced,
                    format!("{id} of job `{}` is {speaker} now; {named} was replaced", job.name),
                );
            }
            Some(named) if named > speaker => {
                return refuse(ErrorKind::NotFound, format!("{id} of job `{}` is {speaker}; got {named}", job.name));
            }
            _ => {}
        }
        let version = worker.phase.incarnation();
        if version > speaker {
            return Ok(ControlAnswer::Removing { incarnation: version });
        }
        let incarnation = job.next_incarnation();
        job.workers.get_mut(&id).expect("found above").remove(reason, incarnation);
        Ok(ControlAnswer::Removing { incarnation })
    }

    /// Whether a driver's record was made under the current map (P5: every shard of the *current* map).
    fn is_current(&self, epoch: MapEpoch) -> bool {
        self.map().is_some_and(|map| map.epoch == epoch)
    }

    fn map_ready(&mut self, epoch: MapEpoch) -> bool {
        match &mut self.cluster {
            Some(cluster) if cluster.map.epoch == epoch && cluster.owned != Some(epoch) => {
                cluster.owned = Some(epoch);
                true
            }
            _ => false,
        }
    }

    fn job_ready(&mut self, job: JobId, epoch: MapEpoch) -> bool {
        let current = self.is_current(epoch);
        match self.jobs.get_mut(&job) {
            Some(job) if current && !job.open => {
                job.open = true;
                true
            }
            _ => false,
        }
    }

    fn table_ready(&mut self, table: TableId, epoch: MapEpoch) -> bool {
        let current = self.is_current(epoch);
        match self.tables.get_mut(&table) {
            Some(table) if current && table.phase == TablePhase::Creating => {
                table.phase = TablePhase::Ready;
                true
            }
            _ => false,
        }
    }

    fn table_gone(&mut self, table: TableId, epoch: MapEpoch) -> bool {
        let dropping = self.table(table).is_some_and(|table| table.phase == TablePhase::Dropping);
        let gone = dropping && self.is_current(epoch);
        if gone {
            self.tables.remove(&table);
        }
        gone
    }

    fn record_clock(&mut self, key: WorkerKey, incarnation: Incarnation, clock: Clock, epoch: MapEpoch) -> bool {
        let current = self.is_current(epoch);
        current && self.keyed_mut(key).is_some_and(|worker| worker.record_clock(incarnation, clock))
    }

    fn record_settled(&mut self, key: WorkerKey, incarnation: Incarnation, epoch: MapEpoch) -> bool {
        let settled =
            self.is_current(epoch) && self.keyed_mut(key).is_some_and(|worker| worker.record_settled(incarnation));
        if settled {
            self.jobs.get_mut(&key.job).expect("it has this worker").start_if_complete();
        }
        settled
    }

    fn keyed_mut(&mut self, key: WorkerKey) -> Option<&mut Worker> {
        let job = self.jobs.get_mut(&key.job).filter(|job| job.generation == key.generation)?;
        job.workers.get_mut(&key.worker)
    }
}

const fn recorded(taken: bool) -> ControlAnswer {
    if taken { ControlAnswer::Recorded } else { ControlAnswer::Ignored }
}

fn check_job(name: &str, workers: u32, settings: JobSettings) -> Result<(), (ErrorKind, String)> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return refuse(
            ErrorKind::InvalidArgument,
            format!("a job's name of {} bytes; expected 1 to {NAME_BYTES_MAX}", name.len()),
        );
    }
    if workers == 0 || workers > WORKERS_MAX {
        return refuse(ErrorKind::InvalidArgument, format!("{workers} workers; expected 1 to {WORKERS_MAX}"));
    }
    if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&settings.lease_ms) {
        return refuse(
            ErrorKind::InvalidArgument,
            format!("a lease of {} ms; expected {LEASE_MS_MIN} to {LEASE_MS_MAX}", settings.lease_ms),
        );
    }
    Ok(())
}

fn check_worker(job: &Job, worker: WorkerId) -> Result<(), (ErrorKind, String)> {
    if worker.0 < job.size {
        return Ok(());
    }
    refuse(
        ErrorKind::InvalidArgument,
        format!("{worker} of job `{}`; expected a worker from 0 to {}", job.name, job.size - 1),
    )
}

fn check_map(map: &ShardMap) -> Result<(), (ErrorKind, String)> {
    if let Err(message) = map.validate() {
        return refuse(ErrorKind::InvalidArgument, message);
    }
    if map.epoch == MapEpoch(0) {
        return refuse(ErrorKind::InvalidArgument, "a shard map of epoch 0; expected 1 or more");
    }
    if map.nodes.len() > NODES_MAX {
        return refuse(ErrorKind::InvalidArgument, format!("{} nodes; expected 1 to {NODES_MAX}", map.nodes.len()));
    }
    if let Some((node, address)) = map.nodes.iter().find(|(_, a)| a.is_empty() || a.len() > ADDRESS_BYTES_MAX) {
        return refuse(
            ErrorKind::InvalidArgument,
            format!("{node} has an address of {} bytes; expected 1 to {ADDRESS_BYTES_MAX}", address.len()),
        );
    }
    for (shard, place) in &map.shards {
        if place.replicas.iter().collect::<BTreeSet<_>>().len() != place.replicas.len() {
            return refuse(ErrorKind::InvalidArgument, format!("{shard} has two replicas on one node"));
        }
    }
    Ok(())
}
