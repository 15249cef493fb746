//! Where a scenario plays: the cluster, what its workers share with the runner, and the invariants, looked
//! at as time passes.

use std::time::Duration;

use petuum_control::{Control, EvictReason, Phase};
use petuum_sim::{Error, SimCluster};
use petuum_types::{JobId, WorkerId};

use super::invariants::{self, Invariants, Leases};
use super::made::Made;
use super::shared::Handle;

/// Steps between two looks at all replicas.
const LOOK_EVERY: u64 = 20;

/// See the module's text.
pub(super) struct Stage {
    pub(super) cluster: SimCluster,
    pub(super) handle: Handle,
    pub(super) job: JobId,
    pub(super) made: Made,
    pub(super) invariants: Invariants,
    pub(super) leases: Leases,
    pub(super) workers: u32,
    /// Whether workers may be removed from the job.
    pub(super) removals: bool,
    pub(super) shards: u32,
    pub(super) replication: u32,
    pub(super) lease: Duration,
    pub(super) steps: u64,
}

/// The host of a worker.
pub(super) fn worker_host(worker: u32) -> String {
    format!("worker-{worker}")
}

/// The host of a worker's second process.
pub(super) fn rival_host(worker: u32) -> String {
    format!("worker-{worker}-b")
}

impl Stage {
    /// One step; now and then a look at all replicas.
    pub(super) fn step(&mut self) -> Result<(), Error> {
        self.cluster.simulation().step()?;
        self.steps += 1;
        invariants::none_overdue(&self.cluster).map_err(|what| self.cluster.error(what))?;
        if self.removals {
            self.hear_memberships()?;
        }
        if self.steps.is_multiple_of(LOOK_EVERY) {
            self.look()?;
        }
        Ok(())
    }

    /// Hears of registrations and tells the oracle of removals, as soon as any replica of the control group has applied
    /// them.
    fn hear_memberships(&mut self) -> Result<(), Error> {
        let (now, lease) = (self.elapsed(), self.lease);
        let workers = 0..self.workers;
        let members = |state: &Control| -> Vec<(u32, u64, Phase)> {
            let found = workers.clone().filter_map(|id| Some((id, state.worker(self.job, WorkerId(id))?)));
            found.map(|(id, worker)| (id, worker.speaker().0, *worker.phase())).collect()
        };
        let mut shared = self.handle.borrow_mut();
        for host in self.cluster.nodes() {
            for (worker, speaker, phase) in self.cluster.control(&host, members).unwrap_or_default() {
                // Before the registration is heard: it may follow the removal.
                if let Phase::Removed { at, reason, incarnation } = phase {
                    let told = shared.oracle.removed(worker as usize, incarnation.0, at.0);
                    let new = told.map_err(|violation| self.cluster.error(violation.to_string()))?;
                    if new && reason == EvictReason::LeaseExpired {
                        let before = (worker, 0)..(worker, incarnation.0);
                        let renewed = shared.renewed.range(before).next_back().map(|(_, at)| *at);
                        let over = self.leases.expired((worker, incarnation.0), lease, renewed, now);
                        over.map_err(|what| self.cluster.error(what))?;
                    }
                }
                self.leases.registered(worker, speaker, now);
            }
        }
        Ok(())
    }

    /// Looks at all replicas.
    pub(super) fn look(&mut self) -> Result<(), Error> {
        self.invariants.look(&self.cluster, &self.made).map_err(|what| self.cluster.error(what))
    }

    /// The clocks of a worker that are known to be acknowledged.
    pub(super) fn acked(&self, worker: u32) -> u64 {
        self.handle.borrow().oracle.acked(worker as usize)
    }

    /// Whether a worker's latest session runs on this host.
    pub(super) fn is_latest(&self, worker: u32, host: &str) -> bool {
        self.handle.borrow().latest.get(&worker).is_some_and(|latest| latest == host)
    }

    /// Virtual time.
    pub(super) fn elapsed(&self) -> Duration {
        self.cluster.elapsed()
    }
}
