//! Partitions of nodes in every shape, and networks that lose or delay.

use std::time::Duration;

use super::{End, Faults, Kind};
use crate::SimCluster;

/// The greatest delay of a slow link.
const SLOW: Duration = Duration::from_millis(500);

/// What is wrong with the network.
pub(super) enum Broken {
    /// Pairs that are cut; mended one by one in an order of its own if it is a swizzle.
    Cuts(Vec<(String, String)>),
    /// Mute towards these.
    OneWay(String, Vec<String>),
    /// Pairs that are slow.
    Slow(Vec<(String, String)>),
    /// Messages are lost.
    Lossy,
}

impl Faults {
    pub(super) fn partition(&mut self, cluster: &mut SimCluster, kind: Kind) {
        let mut nodes = cluster.nodes();
        self.random.shuffle(&mut nodes);
        self.leader_first(cluster, &mut nodes);
        if kind == Kind::CutOneWay {
            let mute = nodes.remove(0);
            nodes.iter().for_each(|other| cluster.cut_one_way(&mute, other));
            self.count(kind);
            self.end_in(800..4000, cluster, End::Network(Broken::OneWay(mute, nodes)));
            return;
        }
        let cuts: Vec<(String, String)> = pairs(nodes.len())
            .filter(|(a, b)| is_cut(kind, nodes.len(), *a, *b))
            .map(|(a, b)| (nodes[a].clone(), nodes[b].clone()))
            .collect();
        if cuts.is_empty() {
            return;
        }
        self.count(kind);
        cuts.iter().for_each(|(a, b)| cluster.cut(a, b));
        if kind == Kind::Swizzle {
            for cut in cuts {
                self.end_in(300..4000, cluster, End::Network(Broken::Cuts(vec![cut])));
            }
        } else {
            self.end_in(800..4000, cluster, End::Network(Broken::Cuts(cuts)));
        }
    }

    /// The node that is cut off is one time in two a leader: it may believe for a while that it still leads.
    fn leader_first(&mut self, cluster: &SimCluster, nodes: &mut [String]) {
        let group = self.any_group(cluster);
        let leader = cluster.leader(group).filter(|_| self.random.bool());
        if let Some(at) = nodes.iter().position(|node| Some(node) == leader.as_ref()) {
            nodes.swap(0, at);
        }
    }

    pub(super) fn spoil_network(&mut self, cluster: &mut SimCluster, kind: Kind) {
        self.count(kind);
        if kind == Kind::LossyNetwork {
            let rate = f64::from(self.random.u32(1..=10)) / 1000.0;
            cluster.simulation().inside(|sim| sim.set_fail_rate(rate));
            self.end_in(500..3000, cluster, End::Network(Broken::Lossy));
            return;
        }
        let slow = self.any_node(cluster);
        let others = cluster.nodes().into_iter().chain(cluster.workers()).filter(|host| *host != slow);
        let links: Vec<_> = others.filter(|_| self.random.bool()).map(|host| (slow.clone(), host)).collect();
        links.iter().for_each(|(a, b)| cluster.set_link_latency(a, b, SLOW));
        self.end_in(500..3000, cluster, End::Network(Broken::Slow(links)));
    }
}

pub(super) fn mend(cluster: &mut SimCluster, broken: &Broken) {
    match broken {
        Broken::Cuts(cuts) => cuts.iter().for_each(|(a, b)| cluster.mend(a, b)),
        Broken::OneWay(mute, others) => others.iter().for_each(|other| cluster.mend_one_way(mute, other)),
        Broken::Slow(links) => links.iter().for_each(|(a, b)| cluster.reset_link_latency(a, b)),
        Broken::Lossy => cluster.simulation().inside(|sim| sim.set_fail_rate(0.0)),
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)))
}

/// Whether two of `count` nodes cannot reach each other.
fn is_cut(kind: Kind, count: usize, a: usize, b: usize) -> bool {
    match kind {
        Kind::Ring => !(b == a + 1 || (a == 0 && b == count - 1)),
        // Node 0 reaches all; the others are in two halves.
        Kind::Bridge => a != 0 && (a <= count / 2) != (b <= count / 2),
        // All links of one node.
        _ => a == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(kind: Kind, count: usize) -> Vec<(usize, usize)> {
        pairs(count).filter(|(a, b)| is_cut(kind, count, *a, *b)).collect()
    }

    #[test]
    fn shapes_of_partitions() {
        assert_eq!(cuts(Kind::Isolate, 3), [(0, 1), (0, 2)]);
        assert_eq!(cuts(Kind::Ring, 4), [(0, 2), (1, 3)]);
        assert_eq!(cuts(Kind::Bridge, 3), [(1, 2)]);
        assert_eq!(cuts(Kind::Bridge, 5), [(1, 3), (1, 4), (2, 3), (2, 4)]);
    }
}
