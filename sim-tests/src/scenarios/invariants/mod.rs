//! What must be true of replicas at any time, one file for each: looked at as time passes, whatever the workers do.
//!
//! What workers read is judged by `petuum_sim::oracle`; what must be true in the end, by `peace`.

mod atomic;
mod clocks;
mod equal;
mod leases;
mod raft;
mod reads;

use petuum_sim::SimCluster;

use super::made::Made;

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
    pub(super) fn look(&mut self, cluster: &SimCluster, made: &Made) -> Result<(), String> {
        for view in cluster.views() {
            for down in view.replicas.iter().filter(|replica| replica.failure.is_some()) {
                // If its disk gave it an error it is built again, from its log.
                self.raft.forget(&view.host, down.group);
                self.clocks.forget(&view.host, down.group);
            }
            self.raft.look(cluster, &view)?;
            for shard in cluster.shards_on(&view.host) {
                self.clocks.look(cluster, &view, shard, made.job)?;
                atomic::look(cluster, &view.host, shard, made)?;
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
