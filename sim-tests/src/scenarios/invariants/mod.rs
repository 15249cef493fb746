//! What must be true of replicas at any time, one file for each: looked at as time passes, whatever the workers do.
//!
//! What workers read is judged by `petuum_sim::oracle`; what must be true in the end, by `peace`.

mod clocks;
mod equal;
mod leases;
mod raft;
mod reads;

use petuum_sim::SimCluster;
use petuum_types::JobId;

pub(super) use leases::Leases;
pub(super) use reads::none_overdue;

/// Remembers what replicas have shown.
#[derive(Default)]
pub(super) struct Invariants {
    raft: raft::Raft,
    clocks: clocks::Clocks,
    equal: equal::Equal,
}

impl Invariants {
    /// Looks at every replica.
    ///
    /// # Errors
    /// What is not as it must be.
    pub(super) fn look(&mut self, cluster: &SimCluster, job: JobId) -> Result<(), String> {
        for view in cluster.views() {
            if cluster.may_fail(&view.host) {
                // A group whose disk gave it an error is built again, from its log.
                self.raft.forget(&view.host);
                self.clocks.forget(&view.host);
            }
            self.raft.look(cluster, &view)?;
            for shard in cluster.shards_on(&view.host) {
                self.clocks.look(cluster, &view, shard, job)?;
                self.equal.look(cluster, &view.host, shard)?;
            }
        }
        Ok(())
    }

    /// How often a replica was found equal to one on another node.
    pub(super) const fn compared(&self) -> u64 {
        self.equal.compared()
    }

    /// Terms in which somebody led.
    pub(super) fn terms(&self) -> u64 {
        self.raft.terms()
    }
}
