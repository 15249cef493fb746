//! Workers that die at any moment, or cannot reach all nodes.

use petuum_types::GroupId;

use super::network::Broken;
use super::{End, Faults, Kind};
use crate::SimCluster;

impl Faults {
    pub(super) fn kill_worker(&mut self, cluster: &mut SimCluster) {
        let Some(worker) = self.any(&cluster.workers()) else { return self.vain.push(Kind::KillWorker) };
        let was_up = cluster.kill(&worker);
        self.count_if(was_up, Kind::KillWorker);
        if was_up {
            self.end_in(50..3000, cluster, End::Start(worker));
        }
    }

    /// Cuts a worker off from one shard: mostly from its leader, which is all that commits need, else from its replicas.
    pub(super) fn cut_worker(&mut self, cluster: &mut SimCluster) {
        let shard = self.any_shard(cluster);
        let nodes: Vec<String> = if self.random.u8(..4) == 0 {
            cluster.nodes().into_iter().filter(|host| cluster.shards_on(host).contains(&shard)).collect()
        } else {
            cluster.leader(GroupId::of_shard(shard)).into_iter().collect()
        };
        // One that does not run would not notice.
        let running: Vec<String> = cluster.workers().into_iter().filter(|worker| cluster.is_up(worker)).collect();
        let worker = self.any(&running).filter(|_| !nodes.is_empty());
        let Some(worker) = worker else { return self.vain.push(Kind::CutWorker) };
        let cuts: Vec<_> = nodes.into_iter().map(|node| (worker.clone(), node)).collect();
        cuts.iter().for_each(|(worker, node)| cluster.cut(worker, node));
        self.count(Kind::CutWorker);
        self.end_in(1000..4000, cluster, End::Network(Broken::Cuts(cuts)));
    }
}
