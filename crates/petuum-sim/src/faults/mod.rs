//! Faults that strike a cluster: which kinds there are, how each begins, and what ends it.
//!
//! A fault begins between two steps and ends by itself a while later; how long it lasts and whom it strikes comes from the
//! seed. One that had no effect (nobody was hit, nothing was lost) is not counted and can be begun again. For programs of
//! the caller: [`Faults::next`] in a loop, [`Faults::end_all`] in the end, then the check of what is left. A fault ends only
//! in these two, in [`Faults::step_until`], or in [`Faults::after_step`] if the caller steps by itself; and a program that is done before the first
//! has begun shows nothing: look at [`Faults::happened`].
//!
//! A kind of fault is in the file of what it strikes; here they are begun, watched and ended.

mod disk;
mod kind;
mod network;
mod nodes;
mod workers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use petuum_chaos::Failpoint;
use petuum_types::{GroupId, ShardId};

use crate::history::What;
use crate::{Error, SimCluster};

pub use kind::Kind;

/// Time between the beginnings of two faults, in milliseconds.
const GAP_MS: Range<u64> = 100..2000;

/// What ends a fault.
enum End {
    Start(String),
    /// Of a node that may have ended by itself: killed, if it runs, then started.
    Restart(Kind, String),
    Power(Vec<String>),
    Network(network::Broken),
    Disk(String),
    Rules(disk::Failing),
    /// Looks whether a failpoint was reached.
    Disarm,
}

/// The faults of one run.
pub struct Faults {
    random: fastrand::Rng,
    /// Under way, each with the virtual time at which it ends.
    pending: Vec<(Duration, End)>,
    happened: BTreeMap<Kind, u64>,
    struck: BTreeMap<Failpoint, u64>,
    vain: Vec<Kind>,
    /// Where the power may go in the midst of a step.
    points: Vec<Failpoint>,
}

impl Faults {
    /// None yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            pending: Vec::new(),
            happened: BTreeMap::new(),
            struck: BTreeMap::new(),
            vain: Vec::new(),
            points: Failpoint::ALL.to_vec(),
        }
    }

    /// Lets the power go in the midst of a step ([`Kind::Failpoint`]) at these points only.
    #[must_use]
    pub fn at(mut self, points: &[Failpoint]) -> Self {
        self.points = points.to_vec();
        self
    }

    /// Steps for a while, then begins a fault of one of the kinds that the cluster is large enough for.
    ///
    /// # Errors
    /// As [`Simulation::step`](crate::Simulation::step).
    ///
    /// # Panics
    /// If the cluster is too small for every one of the kinds.
    pub fn next(&mut self, cluster: &mut SimCluster, kinds: &[Kind]) -> Result<(), Error> {
        let end = cluster.elapsed() + Duration::from_millis(self.random.u64(GAP_MS));
        while cluster.elapsed() < end {
            cluster.simulation().step()?;
            self.after_step(cluster);
        }
        let nodes = cluster.nodes().len();
        let fitting: Vec<Kind> = kinds.iter().copied().filter(|kind| kind.nodes() as usize <= nodes).collect();
        let kind = self.any(&fitting);
        let kind =
            kind.unwrap_or_else(|| panic!("expected a kind of fault that {nodes} nodes can have; got {kinds:?}"));
        self.begin(cluster, kind);
        Ok(())
    }

    /// Steps until every fault is over.
    ///
    /// # Errors
    /// As [`Simulation::step`](crate::Simulation::step).
    pub fn end_all(&mut self, cluster: &mut SimCluster) -> Result<(), Error> {
        while !self.are_over() {
            cluster.simulation().step()?;
            self.after_step(cluster);
        }
        Ok(())
    }

    /// Steps until `done`, which is asked after every step; faults under way go on and end in their time.
    ///
    /// # Errors
    /// As [`SimCluster::step_until`].
    pub fn step_until(
        &mut self,
        cluster: &mut SimCluster,
        what: &str,
        within: Duration,
        mut done: impl FnMut(&SimCluster) -> bool,
    ) -> Result<(), Error> {
        let end = cluster.elapsed() + within;
        while !done(cluster) {
            if cluster.elapsed() >= end {
                return Err(cluster.waited(within, what));
            }
            cluster.simulation().step()?;
            self.after_step(cluster);
        }
        Ok(())
    }

    /// Begins a fault. To be called between steps.
    pub fn begin(&mut self, cluster: &mut SimCluster, kind: Kind) {
        cluster.note("runner", What::Fault { name: kind.name().to_owned() });
        match kind {
            Kind::KillLeader => self.kill_leader(cluster),
            Kind::StopNode => self.stop_node(cluster),
            Kind::MoveLeader => self.move_leader(cluster),
            Kind::ForceElection => self.force_election(cluster),
            Kind::PowerLoss => self.lose_power_everywhere(cluster),
            Kind::PowerLossOfSome => self.lose_power_of_some(cluster),
            Kind::Failpoint => self.arm(cluster),
            Kind::KillWorker => self.kill_worker(cluster),
            Kind::CutWorker => self.cut_worker(cluster),
            Kind::Isolate | Kind::CutOneWay | Kind::Ring | Kind::Bridge | Kind::Swizzle => {
                self.partition(cluster, kind)
            }
            Kind::LossyNetwork | Kind::SlowNetwork => self.spoil_network(cluster, kind),
            Kind::SlowDisk | Kind::StuckDisk => self.slow_disk(cluster, kind),
            Kind::WriteError
            | Kind::SyncError
            | Kind::DiskFull
            | Kind::ReadError
            | Kind::ShortRead
            | Kind::FlippedBit => self.fail_disk(cluster, kind),
        }
    }

    /// Ends what is due. To be called after every step.
    pub fn after_step(&mut self, cluster: &mut SimCluster) {
        self.restore_struck(cluster);
        while let Some(at) = self.pending.iter().position(|(due, _)| *due <= cluster.elapsed()) {
            let (_, end) = self.pending.remove(at);
            self.end(cluster, end);
        }
    }

    /// Whether none is under way.
    #[must_use]
    pub fn are_over(&self) -> bool {
        self.pending.is_empty()
    }

    /// How many of each kind had an effect.
    #[must_use]
    pub const fn happened(&self) -> &BTreeMap<Kind, u64> {
        &self.happened
    }

    /// How often somebody lost the power at each failpoint.
    #[must_use]
    pub const fn struck(&self) -> &BTreeMap<Failpoint, u64> {
        &self.struck
    }

    /// Those that had no effect since the last call.
    pub fn take_vain(&mut self) -> Vec<Kind> {
        std::mem::take(&mut self.vain)
    }

    fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }

    fn end_in(&mut self, range: Range<u64>, cluster: &SimCluster, end: End) {
        let due = cluster.elapsed() + self.millis(range);
        self.pending.push((due, end));
    }

    fn count(&mut self, kind: Kind) {
        *self.happened.entry(kind).or_default() += 1;
    }

    fn count_if(&mut self, had_effect: bool, kind: Kind) {
        if had_effect { self.count(kind) } else { self.vain.push(kind) }
    }

    fn any<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.random.usize(..of.len())].clone()) }
    }

    fn any_node(&mut self, cluster: &SimCluster) -> String {
        self.any(&cluster.nodes()).expect("a cluster has nodes")
    }

    fn any_shard(&mut self, cluster: &SimCluster) -> ShardId {
        ShardId(self.random.u32(0..cluster.shards()))
    }

    fn any_group(&mut self, cluster: &SimCluster) -> GroupId {
        match self.random.u32(0..=cluster.shards()) {
            0 => GroupId::CONTROL,
            shard => GroupId::of_shard(ShardId(shard - 1)),
        }
    }

    fn end(&mut self, cluster: &mut SimCluster, end: End) {
        match end {
            End::Start(host) => drop(cluster.start(&host)),
            End::Restart(kind, host) => self.restart(cluster, kind, &host),
            End::Power(hosts) => cluster.restore_power(&hosts),
            End::Network(broken) => network::mend(cluster, &broken),
            End::Disk(node) => cluster.reset_sync_latency(&node),
            End::Rules(failing) => self.end_failing(cluster, &failing),
            End::Disarm => self.disarm(cluster),
        }
    }
}
