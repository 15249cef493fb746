//! A control group, its driver and shards that are simple maps, with every invariant checked after every entry.

use crate::shard::Shard;
use petuum_control::{
    Control, ControlAnswer, ControlCommand, Driver, Errand, EvictReason, JobSettings, Phase, RegistrationStatus,
};
use petuum_types::command::{ShardAnswer, ShardCommand, WorkerKey};
use petuum_types::map::ShardMap;
use petuum_types::{
    Clock, ClusterId, ErrorKind, Generation, Incarnation, Initial, JobId, LogIndex, NodeId, NonFinite, RequestId,
    ShardId, Staleness, ValueType, WorkerId,
};
use std::collections::BTreeMap;

pub(crate) const JOB: JobId = JobId(1);
pub(crate) const LEASE_MS: u64 = 10_000;

/// The whole.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) state: Control,
    pub(crate) driver: Driver,
    pub(crate) shards: BTreeMap<ShardId, Shard>,
    /// C of every incarnation that has one.
    recorded: BTreeMap<(JobId, WorkerId, Incarnation), Clock>,
    /// What was sent and logged, for golden traces.
    pub(crate) trace: Vec<String>,
    next_request: u128,
}

impl World {
    /// A formed cluster of `shards` shards and an open job of `workers` workers.
    pub(crate) fn new(shards: u32, workers: u32) -> Self {
        let mut world = Self::unformed();
        let nodes = (1..=3).map(|i| (NodeId(i), format!("127.0.0.1:{i}"))).collect();
        let map = ShardMap::spread(nodes, shards, 3).unwrap();
        world.shards = map.shards.keys().map(|shard| (*shard, Shard::default())).collect();
        world.log(ControlCommand::Form { cluster: ClusterId(1), map });
        let job = create_job(1, "job", workers);
        assert_eq!(world.log(job), ControlAnswer::Job { job: JOB, created: true });
        world.run();
        world.trace.clear();
        world
    }

    /// Nothing at all.
    pub(crate) fn unformed() -> Self {
        Self {
            state: Control::new(),
            driver: Driver::new(),
            shards: BTreeMap::new(),
            recorded: BTreeMap::new(),
            trace: Vec::new(),
            next_request: 1000,
        }
    }

    /// Applies one entry and checks every invariant.
    pub(crate) fn log(&mut self, command: ControlCommand) -> ControlAnswer {
        let before = self.state.clone();
        let index = LogIndex(self.state.applied().0 + 1);
        let answer = self.state.apply(index, &command);
        self.check(&before, &answer);
        self.trace.push(format!("log {}", said(&command)));
        answer
    }

    fn check(&mut self, before: &Control, answer: &ControlAnswer) {
        for (job_id, job) in self.state.jobs() {
            let old_job = before.job(job_id);
            assert!(job.has_started() || !old_job.is_some_and(|old| old.has_started()), "P18: a job un-started");
            for (id, worker) in job.workers() {
                let now = worker.phase().incarnation();
                if let Some(old) = old_job.and_then(|old| old.worker(id)) {
                    assert!(now >= old.phase().incarnation(), "incarnations of {id} went back");
                    assert!(worker.removed_at() >= old.removed_at(), "C of the last removal went back");
                    let waits = old.phase().transition().is_some_and(|t| t.is_removal());
                    assert!(!waits || worker.speaker() == old.speaker(), "P15: registered during a removal");
                }
                let clock = match *worker.phase() {
                    Phase::Transition(transition) => transition.clock,
                    Phase::Live { start, .. } => Some(start),
                    Phase::Removed { at, .. } => Some(at),
                };
                if let Some(clock) = clock {
                    let first = *self.recorded.entry((job_id, id, now)).or_insert(clock);
                    assert_eq!(first, clock, "P5: C of {id}, {now} changed");
                }
            }
        }
        if matches!(answer, ControlAnswer::Refused { .. } | ControlAnswer::Ignored) {
            let count = |state: &Control| (state.jobs().count(), state.jobs().flat_map(|(_, j)| j.workers()).count());
            assert_eq!(count(before), count(&self.state), "a refusal changed the state");
        }
    }

    /// Delivers one errand to its shard.
    pub(crate) fn deliver(&mut self, errand: &Errand) -> ShardAnswer {
        let answer = self.shards.get_mut(&errand.shard).expect("a shard of the map").apply(&errand.command);
        self.trace.push(format!("{} <- {} -> {answer:?}", errand.shard, order(&errand.command)));
        answer
    }

    /// Delivers every outstanding errand once and hears every answer.
    pub(crate) fn deliver_all(&mut self) {
        for errand in self.driver.step(&self.state) {
            let answer = self.deliver(&errand);
            self.driver.answer(&self.state, &errand.id, answer);
        }
    }

    /// Logs everything the driver proposes.
    pub(crate) fn propose_all(&mut self) {
        for command in self.driver.proposals(&self.state) {
            self.log(command);
        }
    }

    /// Runs the driver until nothing is left to do.
    pub(crate) fn run(&mut self) {
        for _ in 0..20 {
            self.deliver_all();
            self.propose_all();
            if self.driver.step(&self.state).is_empty() && self.driver.proposals(&self.state).is_empty() {
                return;
            }
        }
        panic!("stuck at {:?}", self.driver.step(&self.state));
    }

    pub(crate) fn request(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    /// Registers a process under a new request id.
    pub(crate) fn register(&mut self, worker: u32) -> (RequestId, Incarnation) {
        self.register_as(worker, false)
    }

    pub(crate) fn register_as(&mut self, worker: u32, rejoin: bool) -> (RequestId, Incarnation) {
        let request = self.request();
        match self.log(register(request, worker, rejoin)) {
            ControlAnswer::Registered { incarnation } => (request, incarnation),
            other => panic!("worker {worker} was not registered: {other:?}"),
        }
    }

    /// Registers every worker of the job and settles them.
    pub(crate) fn start(&mut self) -> Vec<Incarnation> {
        let size = self.state.job(JOB).unwrap().size();
        let incarnations = (0..size).map(|worker| self.register(worker).1).collect();
        self.run();
        assert!(self.state.job(JOB).unwrap().has_started());
        self.trace.clear();
        incarnations
    }

    pub(crate) fn evict(
        &mut self,
        worker: u32,
        incarnation: Option<Incarnation>,
        reason: EvictReason,
    ) -> ControlAnswer {
        let request = self.request();
        self.log(ControlCommand::Evict { request, job: JOB, worker: WorkerId(worker), incarnation, reason })
    }

    pub(crate) fn registration(&self, worker: u32, request: RequestId) -> RegistrationStatus {
        self.state.registration(JOB, WorkerId(worker), request)
    }

    /// Ticks one shard; `false` if the process does not speak there.
    pub(crate) fn tick(&mut self, shard: u32, worker: u32, incarnation: Incarnation) -> bool {
        self.shards.get_mut(&ShardId(shard)).unwrap().tick(key(worker), incarnation)
    }

    pub(crate) fn phase(&self, worker: u32) -> Phase {
        *self.state.worker(JOB, WorkerId(worker)).unwrap().phase()
    }

    /// The worker's clock in every shard.
    pub(crate) fn clocks(&self, worker: u32) -> Vec<u64> {
        self.shards.values().map(|shard| shard.sessions[&key(worker)].clock.0).collect()
    }
}

pub(crate) const fn key(worker: u32) -> WorkerKey {
    WorkerKey { job: JOB, generation: Generation(1), worker: WorkerId(worker) }
}

pub(crate) const fn register(request: RequestId, worker: u32, rejoin: bool) -> ControlCommand {
    ControlCommand::Register { request, job: JOB, worker: WorkerId(worker), rejoin }
}

pub(crate) fn create_job(request: u128, name: &str, workers: u32) -> ControlCommand {
    let settings = JobSettings { lease_ms: LEASE_MS };
    ControlCommand::CreateJob { request: RequestId(request), name: name.into(), workers, settings }
}

pub(crate) fn create_table(request: u128, name: &str, width: u32) -> ControlCommand {
    ControlCommand::CreateTable {
        request: RequestId(request),
        job: JOB,
        name: name.into(),
        width,
        value_type: ValueType::F32,
        initial: Initial::Zero,
        seed: 0,
        non_finite: NonFinite::Reject,
        staleness: Staleness(1),
    }
}

/// The kind of a refusal; panics on any other answer.
pub(crate) fn refusal(answer: ControlAnswer) -> ErrorKind {
    answer.into_result().expect_err("expected a refusal").kind()
}

fn said(command: &ControlCommand) -> String {
    match command {
        ControlCommand::Register { worker, rejoin, .. } => format!("register {worker}, rejoin {rejoin}"),
        ControlCommand::Evict { worker, reason, .. } => format!("evict {worker}: {reason:?}"),
        ControlCommand::RecordClock { key, incarnation, clock, .. } => {
            format!("C of {}, {incarnation}: {clock}", key.worker)
        }
        ControlCommand::RecordSettled { key, incarnation, .. } => format!("settled {}, {incarnation}", key.worker),
        other => format!("{other:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
    }
}

fn order(command: &ShardCommand) -> String {
    match command {
        ShardCommand::Fence { worker, incarnation, admit } => {
            format!("fence {}, {incarnation}, admit {admit}", worker.worker)
        }
        ShardCommand::Settle { worker, incarnation, clock, keep } => {
            format!("settle {}, {incarnation} at {clock}, keep {keep}", worker.worker)
        }
        other => format!("{other:?}").split([' ', '(', '{']).next().unwrap_or_default().to_owned(),
    }
}
