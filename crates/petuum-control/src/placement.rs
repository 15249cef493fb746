//! Which node takes part in which Raft group.

use crate::state::Control;
use petuum_types::{GroupId, NodeId};
use std::collections::BTreeMap;

/// Members of the control group in a cluster large enough.
pub const CONTROL_MEMBERS_MAX: usize = 5;

/// The control group's members: the first nodes by id, as many as the greatest odd number that neither the nodes nor
/// [`CONTROL_MEMBERS_MAX`] exceed. Odd, because one more member would raise the majority and bear no further failure:
/// of 2 nodes 1 is a member, of 4 nodes 3.
#[must_use]
pub fn control_members(nodes: &BTreeMap<NodeId, String>) -> Vec<NodeId> {
    let most = nodes.len().min(CONTROL_MEMBERS_MAX);
    let members = if most.is_multiple_of(2) { most.saturating_sub(1) } else { most };
    nodes.keys().copied().take(members).collect()
}

impl Control {
    /// The groups a node has a replica of, with all their members; the control group first. Of a shard the first member
    /// should lead. Empty before the cluster is formed.
    #[must_use]
    pub fn groups_of(&self, node: NodeId) -> Vec<(GroupId, Vec<NodeId>)> {
        let Some(map) = self.map() else {
            return Vec::new();
        };
        let control = std::iter::once((GroupId::CONTROL, control_members(&map.nodes)));
        let shards = map.shards.iter().map(|(shard, place)| (GroupId::of_shard(*shard), place.replicas.clone()));
        control.chain(shards).filter(|(_, members)| members.contains(&node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::ControlCommand;
    use petuum_types::map::ShardMap;
    use petuum_types::{ClusterId, LogIndex};

    fn nodes(n: u64) -> BTreeMap<NodeId, String> {
        (1..=n).map(|i| (NodeId(i), format!("127.0.0.1:{i}"))).collect()
    }

    #[test]
    fn the_control_group_has_an_odd_number_of_members() {
        let sizes: Vec<usize> = (0..=7).map(|n| control_members(&nodes(n)).len()).collect();
        assert_eq!(sizes, [0, 1, 1, 3, 3, 5, 5, 5]);
        assert_eq!(control_members(&nodes(4)), [NodeId(1), NodeId(2), NodeId(3)]);
    }

    #[test]
    fn a_node_knows_its_groups() {
        let mut state = Control::new();
        assert!(state.groups_of(NodeId(1)).is_empty());
        let map = ShardMap::spread(nodes(4), 4, 1).unwrap();
        state.apply(LogIndex(1), &ControlCommand::Form { cluster: ClusterId(1), map });
        let groups = |n| state.groups_of(NodeId(n)).into_iter().map(|(g, _)| g.0).collect::<Vec<_>>();
        assert_eq!((groups(1), groups(2), groups(4)), (vec![0, 1], vec![0, 2], vec![4]));
        assert_eq!(state.groups_of(NodeId(4)), [(GroupId(4), vec![NodeId(4)])]);
    }
}
