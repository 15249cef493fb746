//! Disks that are slow, stuck, failing or full.

use std::time::Duration;

use petuum_sim::disk::{Fault, FileKind, Op, Rule};

use super::{Faults, Heal, Kind};
use crate::scenarios::stage::Stage;

/// A node whose disk is slow.
pub(super) struct Slow {
    node: String,
}

/// A node whose disk has rules.
pub(super) struct Failing {
    kind: Kind,
    node: String,
    injected: u64,
}

impl Faults {
    pub(super) fn slow_disk(&mut self, stage: &Stage, kind: Kind) {
        let node = self.any_node(stage);
        let (least, greatest) = match kind {
            Kind::StuckDisk => (Duration::from_secs(2), Duration::from_secs(4)),
            _ => (Duration::from_millis(20), Duration::from_millis(400)),
        };
        stage.cluster.set_sync_latency(&node, least, greatest);
        self.count(kind);
        self.heal_in(1000..4000, stage, Heal::Disk(Slow { node }));
    }

    pub(super) fn end_slow(&mut self, stage: &Stage, slow: &Slow) {
        let (least, greatest) = stage.sync_latency;
        stage.cluster.set_sync_latency(&slow.node, least, greatest);
    }

    /// The node ends at the first failure (P22) and is started again once its disk works.
    pub(super) fn fail_disk(&mut self, stage: &Stage, kind: Kind) {
        let node = self.any_node(stage);
        if !stage.cluster.is_up(&node) {
            self.again(kind);
            return;
        }
        let skip = self.random.u64(0..50);
        let rule = match kind {
            Kind::SyncError => Rule::once(Op::Sync, FileKind::Wal, Fault::Eio).after(skip),
            Kind::DiskFull => {
                Rule { kind: None, ..Rule::once(Op::Append, FileKind::Wal, Fault::Enospc).after(skip).always() }
            }
            _ => Rule { kind: None, ..Rule::once(Op::Append, FileKind::Wal, Fault::Eio).after(skip) },
        };
        let injected = stage.injected(&node);
        stage.cluster.inject(&node, rule);
        self.heal_in(1000..4000, stage, Heal::Rules(Failing { kind, node, injected }));
    }

    pub(super) fn end_failing(&mut self, stage: &mut Stage, failing: &Failing) {
        if stage.injected(&failing.node) == failing.injected {
            // It wrote nothing meanwhile.
            stage.cluster.clear_rules(&failing.node);
            self.again(failing.kind);
            return;
        }
        self.count(failing.kind);
        // It has ended, or will at its next write: RocksDB takes none after an error in its background.
        let was_up = stage.cluster.kill(&failing.node);
        stage.cluster.clear_rules(&failing.node);
        if was_up {
            stage.cluster.start(&failing.node);
        }
    }
}
