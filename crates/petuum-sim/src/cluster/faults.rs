//! What can be done to a cluster besides killing its hosts and taking their power: links, disks, and orders to nodes.

use std::time::Duration;

use petuum_types::{GroupId, NodeId};

use super::SimCluster;
use super::node::{GroupOrder, Order};
use crate::disk::Rule;
use crate::history::What;

impl SimCluster {
    /// Drops everything that two hosts send each other from now on.
    pub fn cut(&mut self, a: &str, b: &str) {
        self.cuts.insert((a.to_owned(), b.to_owned()));
        self.note(a, What::Fault { name: format!("cut off from {b}") });
        self.simulation.inside(|sim| sim.partition(a, b));
    }

    /// Ends a cut.
    pub fn mend(&mut self, a: &str, b: &str) {
        if self.cuts.remove(&(a.to_owned(), b.to_owned())) {
            self.simulation.inside(|sim| sim.repair(a, b));
            self.note(a, What::Healed { name: format!("cut off from {b}") });
        }
    }

    /// Drops everything that one host sends another from now on.
    pub fn cut_one_way(&mut self, from: &str, to: &str) {
        self.note(from, What::Fault { name: format!("what it sends to {to} is lost") });
        self.simulation.inside(|sim| sim.partition_oneway(from, to));
    }

    /// Ends a cut of one direction.
    pub fn mend_one_way(&mut self, from: &str, to: &str) {
        self.note(from, What::Healed { name: format!("what it sends to {to} was lost") });
        self.simulation.inside(|sim| sim.repair_oneway(from, to));
    }

    /// Adds a rule to a node's disk. From now on the node may end with an error that is none of the simulation.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn inject(&self, node: &str, rule: Rule) {
        let place = self.place(node);
        place.allow_failure(true);
        place.disk.inject(rule);
    }

    /// Whether a node's disk has rules: then the node may end, or a group of it wait to be built again.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn may_fail(&self, node: &str) -> bool {
        self.place(node).may_fail()
    }

    /// Removes all rules of a node's disk. A node that ended meanwhile stays so until it is killed and started again.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn clear_rules(&self, node: &str) {
        let place = self.place(node);
        place.disk.clear_rules();
        place.allow_failure(false);
    }

    /// How long a node's disk takes from now on to make its log durable.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn set_sync_latency(&self, node: &str, least: Duration, greatest: Duration) {
        self.place(node).set_sync_latency(least, greatest);
    }

    /// A disk takes its usual time again.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn reset_sync_latency(&self, node: &str) {
        self.place(node).reset_sync_latency();
    }

    /// Greatest latency of a message between two hosts from now on.
    pub fn set_link_latency(&mut self, a: &str, b: &str, greatest: Duration) {
        self.simulation.inside(|sim| sim.set_link_max_message_latency(a, b, greatest));
    }

    /// A link is as fast as all others again.
    pub fn reset_link_latency(&mut self, a: &str, b: &str) {
        self.set_link_latency(a, b, self.latency_max);
    }

    /// Has a node hand its leaderships over and end, as SIGTERM does. [`SimCluster::has_ended`] tells when it has.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn ask_to_stop(&self, node: &str) {
        self.note(node, What::Fault { name: "asked to stop".to_owned() });
        self.place(node).give(Order::Stop);
    }

    /// Whether a node has ended by itself, well or not, since its last start.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn has_ended(&self, node: &str) -> bool {
        self.place(node).has_ended()
    }

    /// Has a node that leads a group hand its leadership to another.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn hand_over(&self, node: &str, group: GroupId, to: NodeId) {
        self.note(node, What::Fault { name: format!("told to hand {group} over to {to}") });
        self.place(node).give(Order::OfGroup(group, GroupOrder::HandOver(to)));
    }

    /// Has a node campaign for a group although it has a leader.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn campaign(&self, node: &str, group: GroupId) {
        self.note(node, What::Fault { name: format!("told to campaign for {group}") });
        self.place(node).give(Order::OfGroup(group, GroupOrder::Campaign));
    }

    /// Makes the nodes' disks lie from now on: syncs report success and make nothing durable.
    pub fn ignore_syncs(&self) {
        self.places.iter().for_each(|place| place.disk.set_sync_ignored(true));
    }
}
