//! What a power failure does to the files of a disk. The rules are in the parent module's text.
//!
//! Every file and name fares by itself, as no file system promises an order between them: each file has a stream of
//! chance of its own, forked from one of two. Write-ahead logs are drawn from the first, the newest first, and all other
//! files from the second: which of RocksDB's background jobs has written how much depends on its threads, and what is
//! left of the logs must not depend on that.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::file::File;
use super::{FileId, Model};
use crate::disk::Lost;
use crate::disk::rules::FileKind;

/// Bytes behind a cut that can hold something else than what was written: two pages.
const TORN_BYTES_MAX: usize = 8192;

/// What was written and not synced, part by part.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tail {
    /// As written up to here, nothing behind it.
    Cut(usize),
    /// As written but for these bytes, which were set aside and never written: zeros, or what lay there before.
    Torn { garbage: Range<usize>, noise: bool, end: usize },
}

impl Model {
    /// What a power failure does; `seed` draws what survives of all that was not durable.
    pub(in crate::disk) fn lose(&mut self, seed: u64) -> Lost {
        self.handles.clear();
        let mut lost = Lost::default();
        // A disk that lies about syncs keeps nothing: a run on it is to be found out, not to start with half a database.
        let mut chances = if self.sync_ignored { BTreeMap::new() } else { self.chances(seed) };
        self.lose_names(&mut chances, &mut lost);
        for (id, file) in &mut self.files {
            lose_tail(file, chances.get_mut(id), &mut lost);
        }
        self.counters.bytes_lost += lost.bytes;
        self.counters.files_lost += lost.files;
        self.counters.torn_tails += lost.torn;
        self.counters.deletions_undone += lost.returned;
        lost
    }

    /// A stream of chance for each file.
    fn chances(&self, seed: u64) -> BTreeMap<FileId, fastrand::Rng> {
        let names: BTreeSet<(&String, &FileId)> = self.visible.iter().chain(&self.durable).collect();
        let (logs, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|(name, _)| FileKind::of(name) == FileKind::Wal);
        let mut of_logs = fastrand::Rng::with_seed(seed);
        let mut of_others = of_logs.fork();
        let mut chances = BTreeMap::new();
        // The newest first: how many old ones are still there depends on RocksDB's threads.
        for (_, file) in logs.into_iter().rev() {
            chances.entry(*file).or_insert_with(|| of_logs.fork());
        }
        for (_, file) in others {
            chances.entry(*file).or_insert_with(|| of_others.fork());
        }
        chances
    }

    /// What happened to a file's names since their directory's last sync has reached the disk, all of it, or has not.
    fn lose_names(&mut self, chances: &mut BTreeMap<FileId, fastrand::Rng>, lost: &mut Lost) {
        let reached: BTreeSet<FileId> =
            chances.iter_mut().filter_map(|(file, draw)| draw.bool().then_some(*file)).collect();
        let mut names = BTreeMap::new();
        let all: BTreeSet<&String> = self.visible.keys().chain(self.durable.keys()).collect();
        for name in all {
            let (now, before) = (self.visible.get(name), self.durable.get(name));
            let kept = match (now, before) {
                (Some(now), _) if reached.contains(now) => Some(now),
                (Some(now), before) if before != Some(now) => {
                    lost.files += 1;
                    lost.logs += u64::from(FileKind::of(name) == FileKind::Wal);
                    lost.bytes += if before.is_none() { self.files[now].data.len() as u64 } else { 0 };
                    before
                }
                (None, Some(before)) => {
                    lost.returned += u64::from(!reached.contains(before));
                    Some(before).filter(|before| !reached.contains(before))
                }
                _ => before,
            };
            names.extend(kept.map(|file| (name.clone(), *file)));
        }
        self.visible.clone_from(&names);
        self.durable = names;
        self.collect();
    }
}

/// Takes a file back to its durable content, plus what chance lets survive.
fn lose_tail(file: &mut File, draw: Option<&mut fastrand::Rng>, lost: &mut Lost) {
    let unsynced = file.unsynced();
    let replaced = file.replaced.take();
    // A file that was cut shorter is the old one or the new one.
    let draw = draw.filter(|_| !file.sync_failed).and_then(|draw| (replaced.is_none() || draw.bool()).then_some(draw));
    match draw {
        Some(draw) => {
            let tail = surviving(unsynced, draw);
            lost.bytes += (unsynced - tail.kept()) as u64;
            lost.torn += u64::from(tail != Tail::Cut(0) && tail != Tail::Cut(unsynced));
            tail.cut(&mut file.data, file.synced, draw);
        }
        None => {
            lost.bytes += unsynced as u64;
            file.data.truncate(file.synced);
            if let Some(old) = replaced {
                file.data = old;
            }
        }
    }
    file.synced = file.data.len();
    file.sync_failed = false;
}

/// What survives of an unsynced tail: nothing in a quarter of the draws, all in an eighth, else a part.
fn surviving(unsynced: usize, draw: &mut fastrand::Rng) -> Tail {
    let outcome = draw.u8(0..8);
    if unsynced == 0 || outcome <= 1 {
        return Tail::Cut(0);
    }
    let cut = draw.usize(0..unsynced);
    let torn = cut..cut + draw.usize(1..=(unsynced - cut).min(TORN_BYTES_MAX));
    match outcome {
        2 => Tail::Cut(unsynced),
        3 | 4 => Tail::Cut(cut),
        // The length was written and the bytes were not.
        5 | 6 => Tail::Torn { end: torn.end, garbage: torn, noise: outcome == 6 },
        // A later page reached the disk before an earlier one.
        _ => Tail::Torn { end: draw.usize(torn.end..=unsynced), garbage: torn, noise: draw.bool() },
    }
}

impl Tail {
    /// Bytes that are as written.
    fn kept(&self) -> usize {
        match self {
            Self::Cut(end) => *end,
            Self::Torn { garbage, end, .. } => end - garbage.len(),
        }
    }

    fn cut(&self, data: &mut Vec<u8>, synced: usize, draw: &mut fastrand::Rng) {
        match self {
            Self::Cut(end) => data.truncate(synced + end),
            Self::Torn { garbage, noise, end } => {
                data.truncate(synced + end);
                let garbage = &mut data[synced + garbage.start..synced + garbage.end];
                garbage.iter_mut().for_each(|byte| *byte = if *noise { draw.u8(..) } else { 0 });
            }
        }
    }
}
