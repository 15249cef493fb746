//! The model as stateright sees it, and the run of a check.

use super::bounds::Bounds;
use super::effects;
use super::job::{SHARDS, WORKERS};
use super::machines::Machines;
use super::oracle::Flaw;
use super::packet::Packet;
use super::results::NOTHING;
use super::steps::{self, Action};
use super::world::{Left, Network, Process, Stage, World};
use petuum_control::{Control, ControlCommand, Driver};
use petuum_types::LogIndex;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A model of shards, control group and workers.
#[derive(Debug)]
pub struct ClusterModel {
    machines: Machines,
    /// States whose successors were computed: all of them, if the check was whole.
    expanded: AtomicUsize,
}

impl ClusterModel {
    /// A model within bounds.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { machines: Machines::new(bounds), expanded: AtomicUsize::new(0) }
    }

    /// The job is open in every shard and both workers are registering.
    fn begin(&self) -> World {
        let m = &self.machines;
        let mut control = Control::new();
        m.plan.calls().iter().for_each(|call| {
            control.apply(LogIndex(1), call);
        });
        let mut world = World {
            shards: [0, 1].map(|shard| m.new_shard(shard)),
            control: m.controls.id(control),
            drivers: [m.drivers.id(Driver::new()), NOTHING],
            processes: [Process::absent(); WORKERS + 1],
            network: Network::default(),
            left: Left::of(&m.bounds),
            acknowledged: [0; WORKERS],
            skips_from: [None; WORKERS],
            flaw: None,
        };
        self.drive_calmly(&mut world);
        (0..WORKERS).for_each(|at| effects::register(m, &mut world, at, false));
        world
    }

    /// Does what the driver has to do, in order, until there is nothing.
    fn drive_calmly(&self, world: &mut World) {
        let m = &self.machines;
        loop {
            let driven = m.drive(0, world.control, world.drivers[0], NOTHING);
            world.drivers[0] = driven.driver;
            for packet in driven.errands.iter() {
                let Packet::Errand { errand, .. } = m.packets.get(*packet) else { continue };
                let shard = &mut world.shards[errand.shard.0 as usize];
                let judged = m.to_shard(*shard, *packet);
                *shard = judged.shard;
                world.drivers[0] = m.drive(0, world.control, world.drivers[0], judged.answer).driver;
            }
            for record in m.drive(0, world.control, world.drivers[0], NOTHING).records.iter() {
                world.control = m.to_control(world.control, *record).0;
            }
            if driven.errands.is_empty() {
                return;
            }
        }
    }

    /// The first state, or the one in which both workers run.
    fn start(&self) -> World {
        let mut world = self.begin();
        if !self.machines.bounds.joined {
            return world;
        }
        let left = world.left;
        world.left = Left::of(&Bounds::calm(0));
        while world.processes[..WORKERS].iter().any(|process| process.stage == Stage::Registering) {
            let mut actions = Vec::new();
            steps::actions(&self.machines, &world, &mut actions);
            let first = actions.into_iter().find(|action| matches!(action, Action::Deliver(_)));
            world = effects::next(&self.machines, &world, first.expect("joins go on until both workers run"));
        }
        assert_eq!(world.flaw, None, "a model begins whole");
        world.left = left;
        world
    }

    fn describe(&self, action: Action) -> String {
        let m = &self.machines;
        let packet = |packet: u32| match m.packets.get(packet) {
            Packet::Message { from, shard, message } => format!(
                "w{}.{} -> shard {shard}: {:?} of {} ({}, {})",
                from.worker, from.attempt, message.kind, message.clock, message.incarnation, message.sequence
            ),
            Packet::Reply { to, shard, sequence, outcome } => {
                format!("shard {shard} -> w{}.{}: {outcome:?} ({sequence})", to.worker, to.attempt)
            }
            Packet::Errand { term, errand } => format!("driver {term} -> {}: {:?}", errand.shard, errand.command),
            Packet::Answer { term, id, answer } => format!("{} -> driver {term}: {answer:?}", id.shard),
            Packet::Record(command) => format!("record: {command:?}"),
            Packet::Register { from, .. } => format!("w{}.{} registers", from.worker, from.attempt),
            Packet::Evict(ControlCommand::Evict { worker, incarnation, .. }) => {
                format!("evict {worker}, {incarnation:?}")
            }
            Packet::Evict(other) => format!("{other:?}"),
        };
        match action {
            Action::Deliver(p) => packet(p),
            Action::Lose(p) => format!("LOST {}", packet(p)),
            Action::LoseAnswer(p) => format!("ANSWER LOST {}", packet(p)),
            Action::DeliverTwice(p) => format!("WITH A COPY TO COME {}", packet(p)),
            Action::Turn(at) => format!("process {at} reads and ends its clock"),
            other => format!("{other:?}"),
        }
    }
}

impl Model for ClusterModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.start()]
    }

    fn actions(&self, state: &World, actions: &mut Vec<Action>) {
        self.expanded.fetch_add(1, Ordering::Relaxed);
        steps::actions(&self.machines, state, actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        Some(effects::next(&self.machines, last, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("G2 once", |_, world: &World| world.flaw != Some(Flaw::Once)),
            Property::always("G3 clock", |_, world: &World| world.flaw != Some(Flaw::Clock)),
            Property::always("G4 staleness", |_, world: &World| world.flaw != Some(Flaw::Staleness)),
            Property::always("G7 fencing", |_, world: &World| world.flaw != Some(Flaw::Fencing)),
            Property::always("no stuck state", |_, world: &World| world.flaw != Some(Flaw::Stuck)),
            Property::always("no refusal", |_, world: &World| world.flaw != Some(Flaw::Refused)),
        ]
    }
}

/// What a whole check found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Steps taken from some state to some state.
    pub steps: usize,
    /// Distinct states.
    pub states: usize,
    /// The longest way from the first state that was walked.
    pub depth: usize,
    /// Wall time.
    pub took: Duration,
    /// Distinct shards, sessions, control groups and packets.
    pub parts: [usize; 4],
}

/// A broken guarantee and the schedule that breaks it.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// Which.
    pub property: &'static str,
    /// What happens, in order.
    pub schedule: Vec<String>,
}

impl std::fmt::Display for Counterexample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (at, line) in self.schedule.iter().enumerate() {
            write!(text, "\n{:4}  {line}", at + 1)?;
        }
        write!(f, "{} is broken by{text}", self.property)
    }
}

/// Checks every state within the bounds.
///
/// # Errors
/// A counterexample; a shortest one if `shortest`, which takes more memory.
///
/// # Panics
/// If some state was left out: a check that ends early shows nothing.
pub fn check(bounds: Bounds, threads: usize, shortest: bool) -> Result<Report, Counterexample> {
    #[expect(clippy::disallowed_methods, reason = "how long a developer waited; no simulated code runs here")]
    let began = std::time::Instant::now();
    let builder = ClusterModel::new(bounds).checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    if shortest { finish(&builder.spawn_bfs().join(), began) } else { finish(&builder.spawn_dfs().join(), began) }
}

fn finish(checker: &impl Checker<ClusterModel>, began: std::time::Instant) -> Result<Report, Counterexample> {
    let model = checker.model();
    let expanded = model.expanded.load(Ordering::Relaxed);
    let found = checker.discoveries().into_iter().map(|(property, path)| (path.into_actions(), property));
    if let Some((actions, property)) = found.min_by_key(|(actions, property)| (actions.len(), *property)) {
        let schedule = actions.into_iter().map(|action| model.describe(action)).collect();
        return Err(Counterexample { property, schedule });
    }
    assert_eq!(expanded, checker.unique_state_count(), "a check that ended before every state was looked at");
    let m = &model.machines;
    Ok(Report {
        steps: checker.state_count(),
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: began.elapsed(),
        parts: [m.replicas.len(), m.sessions.len(), m.controls.len(), m.packets.len()],
    })
}

const _: () = assert!(SHARDS == 2 && WORKERS == 2, "what is checked is said to be two of each");
