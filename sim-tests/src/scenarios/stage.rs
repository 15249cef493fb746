//! Where a scenario plays: the cluster, what its workers share with the runner, and the watch over its replicas, looked
//! at as time passes.

use std::time::Duration;

use petuum_sim::{Error, SimCluster};
use petuum_types::JobId;

use super::watch::Watch;
use super::worker::Handle;

/// Steps between two looks at all replicas.
const LOOK_EVERY: u64 = 20;

/// See the module's text.
pub(super) struct Stage {
    pub(super) cluster: SimCluster,
    pub(super) handle: Handle,
    pub(super) job: JobId,
    pub(super) watch: Watch,
    pub(super) workers: u32,
    pub(super) shards: u32,
    pub(super) staleness: u64,
    pub(super) steps: u64,
}

/// The host of a worker.
pub(super) fn worker_host(worker: u32) -> String {
    format!("worker-{worker}")
}

impl Stage {
    /// One step; now and then a look at all replicas.
    pub(super) fn step(&mut self) -> Result<(), Error> {
        self.cluster.simulation().step()?;
        self.steps += 1;
        if self.steps.is_multiple_of(LOOK_EVERY) {
            self.look()?;
        }
        Ok(())
    }

    /// Looks at all replicas.
    pub(super) fn look(&mut self) -> Result<(), Error> {
        self.watch.look(&self.cluster, self.job).map_err(|what| self.cluster.error(what))
    }

    /// The clocks of a worker that are known to be acknowledged.
    pub(super) fn acked(&self, worker: u32) -> u64 {
        self.handle.borrow().oracle.acked(worker as usize)
    }

    /// Virtual time.
    pub(super) fn elapsed(&self) -> Duration {
        self.cluster.elapsed()
    }
}
