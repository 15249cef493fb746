//! Disks that are slow, stuck, failing or full.

use std::time::Duration;

use super::{End, Faults, Kind};
use crate::SimCluster;
use crate::disk::{Fault, FileKind, Op, Rule};

/// A node whose disk has rules.
pub(super) struct Failing {
    kind: Kind,
    node: String,
    injected: u64,
}

impl Faults {
    pub(super) fn slow_disk(&mut self, cluster: &SimCluster, kind: Kind) {
        let node = self.any_node(cluster);
        let (least, greatest) = match kind {
            Kind::StuckDisk => (Duration::from_secs(2), Duration::from_secs(4)),
            _ => (Duration::from_millis(20), Duration::from_millis(400)),
        };
        cluster.set_sync_latency(&node, least, greatest);
        self.count(kind);
        self.end_in(1000..4000, cluster, End::Disk(node));
    }

    /// The node ends at the first failure (P22) and is started again once its disk works. Reads fail while it runs, or when
    /// it is started again and reads all that it has.
    pub(super) fn fail_disk(&mut self, cluster: &mut SimCluster, kind: Kind) {
        let node = self.any_node(cluster);
        if !cluster.is_up(&node) {
            return self.vain.push(kind);
        }
        let skip = self.random.u64(0..50);
        let read = |fault| Rule::once(Op::Read, FileKind::Sst, fault).after(skip % 5);
        let rule = match kind {
            Kind::ReadError => Rule { kind: None, ..read(Fault::Eio).after(skip % 20) },
            Kind::ShortRead => read(Fault::ShortRead),
            Kind::FlippedBit => read(Fault::FlippedBit(self.random.u64(..))),
            Kind::SyncError => Rule::once(Op::Sync, FileKind::Wal, Fault::Eio).after(skip),
            Kind::DiskFull => {
                Rule { kind: None, ..Rule::once(Op::Append, FileKind::Wal, Fault::Enospc).after(skip).always() }
            }
            _ => Rule { kind: None, ..Rule::once(Op::Append, FileKind::Wal, Fault::Eio).after(skip) },
        };
        let injected = cluster.disk(&node).injected;
        let at_start = matches!(kind, Kind::ReadError | Kind::ShortRead | Kind::FlippedBit) && self.random.bool();
        if at_start {
            cluster.kill(&node);
        }
        cluster.inject(&node, rule);
        if at_start {
            cluster.start(&node);
        }
        self.end_in(1000..4000, cluster, End::Rules(Failing { kind, node, injected }));
    }

    pub(super) fn end_failing(&mut self, cluster: &mut SimCluster, failing: &Failing) {
        let Failing { kind, node, injected } = failing;
        // Else it wrote nothing meanwhile.
        let had_effect = cluster.disk(node).injected > *injected;
        self.count_if(had_effect, *kind);
        // It has ended, or will at its next write: RocksDB takes none after an error in its background.
        let was_up = had_effect && cluster.kill(node);
        cluster.clear_rules(node);
        if was_up {
            cluster.start(node);
        }
    }
}
