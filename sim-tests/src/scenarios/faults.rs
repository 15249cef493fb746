//! Which faults happen when, and what heals them: drawn from the seed alone.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use petuum_sim::Error;
use petuum_types::{GroupId, ShardId};

use super::stage::{Stage, worker_host};
use super::worker::Point;

/// How long the runner waits for the state a fault needs: a leader to kill, a worker at the point where it dies.
const WAIT: Duration = Duration::from_secs(30);

/// Faults at most: one of each kind, and again those that had no effect.
const FAULTS_MAX: usize = 12;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The process that leads a group is killed.
    KillLeader,
    /// Every node loses its power at the same instant.
    PowerLoss,
    /// A worker cannot reach the leader of one shard, or any of its replicas.
    CutWorker,
    /// A worker is killed between its updates and `clock()`.
    RestartBeforeClock,
    /// A worker is killed when `clock()` has returned, while its parts and ticks are on their way.
    RestartAfterClock,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::KillLeader, Self::PowerLoss, Self::CutWorker, Self::RestartBeforeClock, Self::RestartAfterClock];

    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::KillLeader => "leader-killed",
            Self::PowerLoss => "power-lost-everywhere",
            Self::CutWorker => "worker-cut-off",
            Self::RestartBeforeClock => "worker-restarted-before-clock",
            Self::RestartAfterClock => "worker-restarted-after-clock",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What ends a fault.
#[derive(Clone, Debug)]
enum Heal {
    Start(String),
    Power(Vec<String>),
    Mend(Cut),
}

/// A worker that cannot reach some nodes.
#[derive(Clone, Debug)]
struct Cut {
    worker: u32,
    nodes: Vec<String>,
    /// Clocks that were acknowledged when it began.
    acked: u64,
}

/// The faults of one run.
pub(super) struct Faults {
    random: fastrand::Rng,
    /// To come, the next one last.
    plan: Vec<Kind>,
    pending: Vec<(Duration, Heal)>,
    /// Faults that had an effect.
    pub(super) happened: BTreeMap<Kind, u64>,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut plan = Kind::ALL.to_vec();
        random.shuffle(&mut plan);
        Self { random, plan, pending: Vec::new(), happened: BTreeMap::new() }
    }

    fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }

    fn heal_in(&mut self, range: Range<u64>, stage: &Stage, heal: Heal) {
        let due = stage.elapsed() + self.millis(range);
        self.pending.push((due, heal));
    }

    /// Lets every fault happen, and heals all.
    ///
    /// # Errors
    /// As [`Stage::step`]; also if what a fault needs does not come about.
    pub(super) fn run(&mut self, stage: &mut Stage) -> Result<(), Error> {
        for _ in 0..FAULTS_MAX {
            let Some(kind) = self.plan.pop() else { break };
            let gap = self.millis(100..1500);
            self.pass(stage, gap)?;
            // Half of all faults begin when those before are over, the others meet them.
            if self.random.bool() {
                self.heal_all(stage)?;
            }
            tracing::info!(%kind, at = ?stage.elapsed(), "fault");
            match kind {
                Kind::KillLeader => self.kill_leader(stage)?,
                Kind::PowerLoss => self.lose_power(stage),
                Kind::CutWorker => self.cut_worker(stage)?,
                Kind::RestartBeforeClock => self.restart_worker(stage, kind, Point::BeforeClock)?,
                Kind::RestartAfterClock => self.restart_worker(stage, kind, Point::AfterClock)?,
            }
            if self.plan.is_empty() {
                // A heal may plan a fault again that had no effect.
                self.heal_all(stage)?;
            }
        }
        self.heal_all(stage)
    }

    fn kill_leader(&mut self, stage: &mut Stage) -> Result<(), Error> {
        let group = match self.random.u32(0..=stage.shards) {
            0 => GroupId::CONTROL,
            shard => GroupId::of_shard(ShardId(shard - 1)),
        };
        let leader = self.wait_for(stage, "a leader to kill", |stage| stage.cluster.leader(group))?;
        if stage.cluster.kill(&leader) {
            self.count(Kind::KillLeader);
        }
        self.heal_in(200..3000, stage, Heal::Start(leader));
        Ok(())
    }

    fn lose_power(&mut self, stage: &mut Stage) {
        let lost = stage.cluster.lose_power(&stage.cluster.nodes());
        tracing::info!(?lost, "power lost");
        if lost.iter().any(|(_, lost)| lost.bytes > 0) {
            self.count(Kind::PowerLoss);
        } else {
            // Nothing was being written just then.
            self.plan.insert(0, Kind::PowerLoss);
        }
        let hosts = lost.into_iter().map(|(host, _)| host).collect();
        self.heal_in(100..3000, stage, Heal::Power(hosts));
    }

    /// Cuts a worker off from one shard: mostly from its leader, which is all that commits need, else from its replicas.
    fn cut_worker(&mut self, stage: &mut Stage) -> Result<(), Error> {
        let worker = self.random.u32(0..stage.workers);
        let shard = ShardId(self.random.u32(0..stage.shards));
        let nodes = if self.random.u8(..4) == 0 {
            let hosts = stage.cluster.nodes();
            hosts.into_iter().filter(|host| stage.cluster.shards_on(host).contains(&shard)).collect()
        } else {
            let group = GroupId::of_shard(shard);
            vec![self.wait_for(stage, "a leader to be cut off from", |stage| stage.cluster.leader(group))?]
        };
        for node in &nodes {
            stage.cluster.cut(&worker_host(worker), node);
        }
        let cut = Cut { worker, nodes, acked: stage.acked(worker) };
        self.heal_in(1000..4000, stage, Heal::Mend(cut));
        Ok(())
    }

    fn restart_worker(&mut self, stage: &mut Stage, kind: Kind, point: Point) -> Result<(), Error> {
        let worker = self.random.u32(0..stage.workers);
        let host = worker_host(worker);
        stage.handle.borrow_mut().stops.insert(worker, (point, false));
        self.wait_for(stage, "a worker to be inside a clock", |stage| {
            stage.handle.borrow().stops[&worker].1.then_some(())
        })?;
        if point == Point::AfterClock {
            // Its tasks go on: parts arrive, then perhaps some of the ticks.
            let time = self.millis(0..60);
            self.pass(stage, time)?;
        }
        stage.handle.borrow_mut().stops.remove(&worker);
        if stage.cluster.kill(&host) {
            self.count(kind);
        }
        self.heal_in(50..3000, stage, Heal::Start(host));
        Ok(())
    }

    fn count(&mut self, kind: Kind) {
        *self.happened.entry(kind).or_default() += 1;
    }

    /// One step, and the heals that are due after it.
    fn step(&mut self, stage: &mut Stage) -> Result<(), Error> {
        stage.step()?;
        while let Some(at) = self.pending.iter().position(|(due, _)| *due <= stage.elapsed()) {
            let (_, heal) = self.pending.remove(at);
            self.heal(stage, heal);
        }
        Ok(())
    }

    fn pass(&mut self, stage: &mut Stage, time: Duration) -> Result<(), Error> {
        let end = stage.elapsed() + time;
        while stage.elapsed() < end {
            self.step(stage)?;
        }
        Ok(())
    }

    fn heal_all(&mut self, stage: &mut Stage) -> Result<(), Error> {
        while !self.pending.is_empty() {
            self.step(stage)?;
        }
        Ok(())
    }

    fn heal(&mut self, stage: &mut Stage, heal: Heal) {
        tracing::info!(?heal, at = ?stage.elapsed(), "healed");
        match heal {
            Heal::Start(host) => drop(stage.cluster.start(&host)),
            Heal::Power(hosts) => stage.cluster.restore_power(&hosts),
            Heal::Mend(cut) => {
                let host = worker_host(cut.worker);
                cut.nodes.iter().for_each(|node| stage.cluster.mend(&host, node));
                // A clock needs all shards, so only what was under way got through; more, and the shard had moved its
                // leader to a node that the worker could reach.
                if stage.acked(cut.worker) <= cut.acked + stage.staleness + 2 {
                    self.count(Kind::CutWorker);
                } else {
                    self.plan.insert(0, Kind::CutWorker);
                }
            }
        }
    }

    fn wait_for<T>(
        &mut self,
        stage: &mut Stage,
        what: &str,
        mut found: impl FnMut(&Stage) -> Option<T>,
    ) -> Result<T, Error> {
        let end = stage.elapsed() + WAIT;
        loop {
            if let Some(found) = found(stage) {
                return Ok(found);
            }
            if stage.elapsed() >= end {
                return Err(stage.cluster.error(format!("waited {WAIT:?} for {what}")));
            }
            self.step(stage)?;
        }
    }
}
