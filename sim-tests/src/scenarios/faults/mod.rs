//! Which faults happen when, and what heals them: drawn from the seed alone.
//!
//! A kind of fault is in the file of what it strikes; here they are planned, begun and healed. A fault that had no effect
//! (nobody was hit, nothing was lost) is not counted and comes again.

mod disk;
mod kind;
mod network;
mod nodes;
mod workers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use petuum_sim::Error;
use petuum_sim::history::What;
use petuum_types::{GroupId, ShardId};

pub use kind::Kind;

use super::stage::Stage;

/// How long the runner waits for the state a fault needs: a leader to kill, a worker at the point where it dies.
const WAIT: Duration = Duration::from_secs(30);

/// What ends a fault.
enum Heal {
    Start(String),
    /// Of a node that may have ended by itself: killed, if it runs, then started.
    Restart(Kind, String),
    Power(Vec<String>),
    Cut(workers::Cut),
    Network(network::Broken),
    Disk(disk::Slow),
    Rules(disk::Failing),
    /// Looks whether a failpoint was reached.
    Disarm,
    /// A worker computes at full speed again.
    Hurry(u32),
}

/// The faults of one run.
pub(super) struct Faults {
    random: fastrand::Rng,
    /// To come, the next one last.
    plan: Vec<Kind>,
    /// Faults at most, with those that come again.
    left: usize,
    pending: Vec<(Duration, Heal)>,
    /// Faults that had an effect.
    pub(super) happened: BTreeMap<Kind, u64>,
    operators: u32,
}

impl Faults {
    /// These faults, in an order from the seed.
    pub(super) fn new(seed: u64, mut plan: Vec<Kind>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        random.shuffle(&mut plan);
        let left = 2 * plan.len() + 2;
        Self { random, plan, left, pending: Vec::new(), happened: BTreeMap::new(), operators: 0 }
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
        while self.left > 0 {
            self.left -= 1;
            let Some(kind) = self.plan.pop() else { break };
            let gap = self.millis(400..2400);
            self.pass(stage, gap)?;
            // Half of all faults begin when those before are over, the others meet them.
            if self.random.bool() {
                self.heal_all(stage)?;
            }
            tracing::info!(kind = kind.name(), at = ?stage.elapsed(), "fault");
            stage.cluster.note("runner", What::Fault { name: kind.name().to_owned() });
            self.begin(stage, kind)?;
            if self.plan.is_empty() {
                // A heal may plan a fault again that had no effect.
                self.heal_all(stage)?;
            }
        }
        self.heal_all(stage)
    }

    fn begin(&mut self, stage: &mut Stage, kind: Kind) -> Result<(), Error> {
        match kind {
            Kind::KillLeader => self.kill_leader(stage)?,
            Kind::StopNode => self.stop_node(stage),
            Kind::PowerLoss => self.lose_power_everywhere(stage),
            Kind::PowerLossOfSome => self.lose_power_of_some(stage),
            Kind::Failpoint => self.arm(stage),
            Kind::CutWorker => self.cut_worker(stage)?,
            Kind::RestartBeforeClock | Kind::RestartAfterClock => self.restart_worker(stage, kind)?,
            Kind::Straggler => self.slow_worker(stage),
            Kind::Rival => self.start_rival(stage),
            Kind::Evict => self.evict(stage),
            Kind::OutliveLease => self.outlive_lease(stage),
            Kind::Isolate | Kind::CutOneWay | Kind::Ring | Kind::Bridge | Kind::Swizzle => self.partition(stage, kind),
            Kind::LossyNetwork | Kind::SlowNetwork => self.spoil_network(stage, kind),
            Kind::SlowDisk | Kind::StuckDisk => self.slow_disk(stage, kind),
            Kind::WriteError | Kind::SyncError | Kind::DiskFull => self.fail_disk(stage, kind),
        }
        Ok(())
    }

    fn count(&mut self, kind: Kind) {
        *self.happened.entry(kind).or_default() += 1;
    }

    /// It had no effect: it comes again.
    fn again(&mut self, kind: Kind) {
        self.plan.insert(0, kind);
    }

    fn any_node(&mut self, stage: &Stage) -> String {
        let nodes = stage.cluster.nodes();
        nodes[self.random.usize(..nodes.len())].clone()
    }

    fn any_group(&mut self, stage: &Stage) -> GroupId {
        match self.random.u32(0..=stage.shards) {
            0 => GroupId::CONTROL,
            shard => GroupId::of_shard(ShardId(shard - 1)),
        }
    }

    /// One step, what was hit in it, and the heals that are due after it.
    fn step(&mut self, stage: &mut Stage) -> Result<(), Error> {
        stage.step()?;
        self.restore_struck(stage);
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
        match heal {
            Heal::Start(host) => drop(stage.cluster.start(&host)),
            Heal::Restart(kind, host) => self.restart(stage, kind, &host),
            Heal::Power(hosts) => stage.cluster.restore_power(&hosts),
            Heal::Cut(cut) => self.end_cut(stage, &cut),
            Heal::Network(broken) => self.end_network(stage, broken),
            Heal::Disk(slow) => self.end_slow(stage, &slow),
            Heal::Rules(failing) => self.end_failing(stage, &failing),
            Heal::Disarm => self.disarm(stage),
            Heal::Hurry(worker) => drop(stage.handle.borrow_mut().slow.remove(&worker)),
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
