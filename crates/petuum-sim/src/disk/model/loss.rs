//! What a power failure does to the files of a disk. The rules are in the parent module's text.

use std::collections::BTreeMap;

use super::file::File;
use super::{FileId, Model};
use crate::disk::Lost;
use crate::disk::rules::FileKind;

/// How many bytes at the end of a surviving tail can be torn: one sector.
const TORN_BYTES_MAX: usize = 512;

impl Model {
    /// What a power failure does to the files; `seed` draws which part of each log's unsynced tail survives.
    pub(in crate::disk) fn lose(&mut self, seed: u64) -> Lost {
        self.handles.clear();
        let mut lost = Lost::default();
        self.lose_names(&mut lost);
        let logs = self.durable.iter().filter(|(name, _)| FileKind::of(name) == FileKind::Wal);
        let logs: BTreeMap<FileId, String> = logs.map(|(name, file)| (*file, name.clone())).collect();
        let mut order: Vec<(&String, FileId)> = logs.iter().map(|(file, name)| (name, *file)).collect();
        order.sort();
        let mut broken = lost.logs > 0;
        // One stream of draws over the logs in their order, and not one per name: the numbers in the names depend on
        // which thread of RocksDB was first to take one.
        let mut draw = fastrand::Rng::with_seed(seed);
        for (_, id) in order {
            let draw = (!broken).then_some(&mut draw);
            broken |= lose_tail(self.file(id), draw, &mut lost);
        }
        for (id, file) in &mut self.files {
            if !logs.contains_key(id) {
                lose_tail(file, None, &mut lost);
            }
        }
        self.counters.bytes_lost += lost.bytes;
        self.counters.files_lost += lost.files;
        self.counters.torn_tails += lost.torn;
        lost
    }

    /// Names go back to what their directories had at their last sync.
    fn lose_names(&mut self, lost: &mut Lost) {
        for (name, file) in &self.visible {
            if self.durable.get(name) != Some(file) {
                lost.files += 1;
                lost.logs += u64::from(FileKind::of(name) == FileKind::Wal);
                lost.bytes += self.files[file].data.len() as u64;
            }
        }
        self.visible = self.durable.clone();
        self.collect();
    }
}

/// Takes a file back to its durable content, plus what `draw` lets survive. True if any byte was lost.
fn lose_tail(file: &mut File, draw: Option<&mut fastrand::Rng>, lost: &mut Lost) -> bool {
    let unsynced = file.unsynced();
    let replaced = file.replaced.take();
    let kept = match draw {
        Some(draw) if unsynced > 0 && replaced.is_none() && !file.sync_failed => {
            let kept = surviving(unsynced, draw);
            file.data.truncate(file.synced + kept);
            lost.torn += u64::from(0 < kept && kept < unsynced);
            tear(&mut file.data[file.synced..], draw, lost);
            kept
        }
        _ => {
            file.data.truncate(file.synced);
            0
        }
    };
    if let Some(old) = replaced {
        file.data = old;
    }
    lost.bytes += (unsynced - kept) as u64;
    file.synced = file.data.len();
    file.sync_failed = false;
    kept < unsynced
}

/// How much of an unsynced tail survives: nothing in half of the draws, all in an eighth, any part in the rest.
fn surviving(unsynced: usize, draw: &mut fastrand::Rng) -> usize {
    match draw.u8(0..8) {
        0..=3 => 0,
        4 => unsynced,
        _ => draw.usize(0..=unsynced),
    }
}

/// In a third of the draws the end of the surviving tail has its length but not its bytes: zeros, or noise.
fn tear(tail: &mut [u8], draw: &mut fastrand::Rng, lost: &mut Lost) {
    let outcome = draw.u8(0..6);
    if tail.is_empty() || outcome > 1 {
        return;
    }
    let torn = draw.usize(1..=tail.len().min(TORN_BYTES_MAX));
    let start = tail.len() - torn;
    match outcome {
        0 => tail[start..].fill(0),
        _ => tail[start..].iter_mut().for_each(|byte| *byte = draw.u8(..)),
    }
    lost.torn += 1;
}
