//! Nodes that die, with and without their power, and nodes that are asked to go.

use petuum_types::{GroupId, NodeId};

use super::{End, Faults, Kind};
use crate::SimCluster;
use crate::cluster::{NodeView, ReplicaView};

/// How often at most a failpoint is passed before the power goes there.
const PASSES_MAX: u32 = 20;

/// The running members of a group.
fn members_of(cluster: &SimCluster, group: GroupId) -> Vec<(NodeView, ReplicaView)> {
    let member = |view: NodeView| {
        let replica = view.replicas.iter().find(|replica| replica.group == group).cloned();
        replica.map(|replica| (view, replica))
    };
    cluster.views().into_iter().filter_map(member).collect()
}

impl Faults {
    pub(super) fn kill_leader(&mut self, cluster: &mut SimCluster) {
        let group = self.any_group(cluster);
        let Some(leader) = cluster.leader(group) else { return self.vain.push(Kind::KillLeader) };
        let was_up = cluster.kill(&leader);
        self.count_if(was_up, Kind::KillLeader);
        if was_up {
            self.end_in(200..3000, cluster, End::Start(leader));
        }
    }

    pub(super) fn stop_node(&mut self, cluster: &SimCluster) {
        let node = self.any_node(cluster);
        if !cluster.is_up(&node) || cluster.has_ended(&node) {
            return self.vain.push(Kind::StopNode);
        }
        cluster.ask_to_stop(&node);
        self.end_in(1000..5000, cluster, End::Restart(Kind::StopNode, node));
    }

    /// Tells a leader to hand over to another member; one time in two the control group's, whose leader keeps leases.
    pub(super) fn move_leader(&mut self, cluster: &mut SimCluster) {
        let group = if self.random.bool() { GroupId::CONTROL } else { self.any_group(cluster) };
        let members = members_of(cluster, group);
        let from = members.iter().find(|(_, member)| member.leads).map(|(view, _)| view.host.clone());
        let others: Vec<NodeId> =
            members.iter().map(|(view, _)| view).filter(|v| Some(&v.host) != from.as_ref()).map(|v| v.node).collect();
        let (Some(from), Some(to)) = (from, self.any(&others)) else { return self.vain.push(Kind::MoveLeader) };
        cluster.hand_over(&from, group, to);
        self.count(Kind::MoveLeader);
    }

    /// Tells any member of a group to campaign.
    pub(super) fn force_election(&mut self, cluster: &mut SimCluster) {
        let group = self.any_group(cluster);
        let Some((member, _)) = self.any(&members_of(cluster, group)) else {
            return self.vain.push(Kind::ForceElection);
        };
        cluster.campaign(&member.host, group);
        self.count(Kind::ForceElection);
    }

    /// Starts a node again that was to end by itself. If it has not, something else struck it.
    pub(super) fn restart(&mut self, cluster: &mut SimCluster, kind: Kind, host: &str) {
        if !cluster.is_up(host) {
            // Something else has killed it and will start it.
            return self.vain.push(kind);
        }
        self.count_if(cluster.has_ended(host), kind);
        cluster.kill(host);
        cluster.start(host);
    }

    pub(super) fn lose_power_everywhere(&mut self, cluster: &mut SimCluster) {
        let nodes = cluster.nodes();
        self.lose_power(cluster, &nodes, Kind::PowerLoss);
    }

    pub(super) fn lose_power_of_some(&mut self, cluster: &mut SimCluster) {
        let some: Vec<String> = cluster.nodes().into_iter().filter(|_| self.random.u8(..3) == 0).collect();
        let hosts = if some.is_empty() { vec![self.any_node(cluster)] } else { some };
        self.lose_power(cluster, &hosts, Kind::PowerLossOfSome);
    }

    fn lose_power(&mut self, cluster: &mut SimCluster, hosts: &[String], kind: Kind) {
        let lost = cluster.lose_power(hosts);
        tracing::info!(?lost, "power lost");
        // Else nothing was being written just then.
        self.count_if(lost.iter().any(|(_, lost)| lost.bytes > 0), kind);
        let hosts = lost.into_iter().map(|(host, _)| host).collect();
        self.end_in(100..3000, cluster, End::Power(hosts));
    }

    /// Arms a failpoint; whoever reaches it is dead.
    pub(super) fn arm(&mut self, cluster: &SimCluster) {
        if self.points.is_empty() {
            return self.vain.push(Kind::Failpoint);
        }
        let point = self.points[self.random.usize(..self.points.len())];
        cluster.failpoints().arm(point, None, self.random.u32(..PASSES_MAX));
        self.end_in(1000..4000, cluster, End::Disarm);
    }

    pub(super) fn disarm(&mut self, cluster: &SimCluster) {
        if cluster.failpoints().disarm() > 0 {
            // Nobody came by.
            self.vain.push(Kind::Failpoint);
        }
    }

    /// Brings those back that lost their power at a failpoint.
    pub(super) fn restore_struck(&mut self, cluster: &mut SimCluster) {
        for struck in cluster.take_struck() {
            self.count(Kind::Failpoint);
            *self.struck.entry(struck.point).or_default() += 1;
            self.end_in(100..3000, cluster, End::Power(vec![struck.host]));
        }
    }
}
