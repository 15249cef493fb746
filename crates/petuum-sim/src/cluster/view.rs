//! What the replicas of a cluster hold at one moment, for oracles. Looking changes nothing.

use petuum_control::Control;
use petuum_shard::Shard;
use petuum_types::{GroupId, LogIndex, NodeId, ShardId};

use super::SimCluster;

/// A node that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its host.
    pub host: String,
    /// How often it was started: what a replica held before a start it holds again only after its log is replayed.
    pub starts: u64,
    /// Its id.
    pub node: NodeId,
    /// Its replicas, the control group's first.
    pub replicas: Vec<ReplicaView>,
}

/// A replica as its Raft group sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// Its group.
    pub group: GroupId,
    /// Whether it leads.
    pub leads: bool,
    /// The term it is in.
    pub term: u64,
    /// The last entry its machine applied.
    pub applied: Option<LogIndex>,
    /// The last entry of its log.
    pub last: Option<LogIndex>,
    /// The last entry that is gone from its log.
    pub purged: Option<LogIndex>,
    /// Why it does not run.
    pub failure: Option<String>,
}

impl SimCluster {
    /// Every node that is up and takes part.
    #[must_use]
    pub fn views(&self) -> Vec<NodeView> {
        let node = |place: &super::node::Place| {
            let node = place.node()?;
            let running = node.running()?;
            let replicas = running.groups().map(|(group, raft)| {
                let status = raft.status();
                ReplicaView {
                    group,
                    leads: status.is_leader(),
                    term: status.term,
                    applied: status.applied,
                    last: status.last_index,
                    purged: status.purged,
                    failure: status.failure,
                }
            });
            Some(NodeView {
                host: place.name.clone(),
                starts: place.starts(),
                node: running.identity.node,
                replicas: replicas.collect(),
            })
        };
        self.places.iter().filter_map(|place| node(place)).collect()
    }

    /// The host whose replica leads a group, in the highest term in which one does.
    #[must_use]
    pub fn leader(&self, group: GroupId) -> Option<String> {
        let replicas = self.views().into_iter().flat_map(|node| {
            let host = node.host;
            node.replicas.into_iter().map(move |replica| (host.clone(), replica))
        });
        let leaders = replicas.filter(|(_, replica)| replica.group == group && replica.leads);
        leaders.max_by_key(|(_, replica)| replica.term).map(|(host, _)| host)
    }

    /// Looks at the control group's applied state on one host; none if it has no running replica there.
    pub fn control<T>(&self, host: &str, look: impl FnOnce(&Control) -> T) -> Option<T> {
        let place = self.places.iter().find(|place| place.name == host)?;
        let node = place.node()?;
        Some(node.running()?.control.as_ref()?.cell.with(look))
    }

    /// Looks at a shard's applied state on one host; none if it has no running replica there.
    pub fn shard<T>(&self, host: &str, shard: ShardId, look: impl FnOnce(&Shard) -> T) -> Option<T> {
        let place = self.places.iter().find(|place| place.name == host)?;
        let node = place.node()?;
        Some(node.running()?.shards.get(&shard)?.cell.with(look))
    }

    /// A replica on which reads wait that need not, and how many (P11): none, after every step.
    #[must_use]
    pub fn overdue_reads(&self) -> Option<(String, ShardId, usize)> {
        self.places.iter().find_map(|place| {
            let node = place.node()?;
            let mut shards =
                node.running()?.shards.iter().map(|(shard, replica)| (*shard, replica.cell.overdue_reads()));
            shards.find(|(_, count)| *count > 0).map(|(shard, count)| (place.name.clone(), shard, count))
        })
    }

    /// The shards a host has a running replica of.
    #[must_use]
    pub fn shards_on(&self, host: &str) -> Vec<ShardId> {
        let place = self.places.iter().find(|place| place.name == host);
        let node = place.and_then(|place| place.node());
        node.and_then(|node| Some(node.running()?.shards.keys().copied().collect())).unwrap_or_default()
    }
}
