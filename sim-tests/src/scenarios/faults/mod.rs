//! Which faults happen when, and what heals them: drawn from the seed alone.
//!
//! What strikes whatever program runs is `petuum_sim`'s; what needs to know the program is here. A fault that had no
//! effect (nobody was hit, nothing was lost) is not counted and comes again.

mod kind;
mod workers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use petuum_chaos::Failpoint;
use petuum_sim::Error;
use petuum_sim::faults;
use petuum_sim::history::What;

pub use kind::Kind;

use super::stage::Stage;

/// How long the runner waits for a worker to be at the point where it dies.
const WAIT: Duration = Duration::from_secs(30);

/// What ends a fault that knows the program.
enum Heal {
    Start(String),
    /// A worker computes at full speed again.
    Hurry(u32),
}

/// The faults of one run.
pub(super) struct Faults {
    random: fastrand::Rng,
    /// Those that strike whatever program runs.
    any: faults::Faults,
    /// To come, the next one last.
    plan: Vec<Kind>,
    /// Faults at most, with those that come again.
    left: usize,
    pending: Vec<(Duration, Heal)>,
    happened: BTreeMap<Kind, u64>,
    operators: u32,
}

impl Faults {
    /// These faults, in an order from the seed; power that goes in the midst of a step goes at one of `points`.
    pub(super) fn new(seed: u64, mut plan: Vec<Kind>, points: &[Failpoint]) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        random.shuffle(&mut plan);
        let (left, any) = (2 * plan.len() + 2, faults::Faults::new(random.u64(..)).at(points));
        Self { random, any, plan, left, pending: Vec::new(), happened: BTreeMap::new(), operators: 0 }
    }

    /// Faults that had an effect.
    pub(super) fn happened(&self) -> BTreeMap<Kind, u64> {
        let any = self.any.happened().iter().map(|(kind, count)| (Kind::Any(*kind), *count));
        any.chain(self.happened.iter().map(|(kind, count)| (*kind, *count))).collect()
    }

    /// Failpoints at which somebody lost the power.
    pub(super) const fn struck(&self) -> &BTreeMap<Failpoint, u64> {
        self.any.struck()
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
            self.begin(stage, kind)?;
            if self.plan.is_empty() {
                // A heal may plan a fault again that had no effect.
                self.heal_all(stage)?;
            }
        }
        self.heal_all(stage)
    }

    fn begin(&mut self, stage: &mut Stage, kind: Kind) -> Result<(), Error> {
        if let Kind::Any(kind) = kind {
            self.any.begin(&mut stage.cluster, kind);
            self.plan_vain_ones();
            return Ok(());
        }
        stage.cluster.note("runner", What::Fault { name: kind.name().to_owned() });
        match kind {
            Kind::Any(_) => {}
            Kind::RestartBeforeClock | Kind::RestartAfterClock => self.restart_worker(stage, kind)?,
            Kind::Straggler => self.slow_worker(stage),
            Kind::Rival => self.start_rival(stage),
            Kind::Evict => self.evict(stage),
            Kind::OutliveLease => self.outlive_lease(stage),
            Kind::Overload => self.overload(stage),
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

    fn plan_vain_ones(&mut self) {
        self.any.take_vain().into_iter().for_each(|kind| self.again(Kind::Any(kind)));
    }

    /// One step, what was hit in it, and the heals that are due after it.
    fn step(&mut self, stage: &mut Stage) -> Result<(), Error> {
        stage.step()?;
        self.any.after_step(&mut stage.cluster);
        self.plan_vain_ones();
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
        while !self.pending.is_empty() || !self.any.are_over() {
            self.step(stage)?;
        }
        Ok(())
    }

    fn heal(&mut self, stage: &mut Stage, heal: Heal) {
        match heal {
            Heal::Start(host) => drop(stage.cluster.start(&host)),
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
