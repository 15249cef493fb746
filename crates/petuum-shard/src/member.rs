//! A worker as a shard knows it: its session, its clock and what it has staged.

use bytes::Bytes;
use petuum_types::outcome::Refusal;
use petuum_types::{Clock, Incarnation, MapEpoch, Sequence};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a worker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// Never counted here; only its version is known.
    Absent,
    /// Counts in the min clock.
    Live,
    /// Removed at its clock.
    Removed,
}

/// A worker of a job.
///
/// Invariants: only a live member holds staged parts; every staged clock is at or above `clock`; all staged parts are of
/// the settled incarnation or, between fence and settle, of lower ones, because an unsettled one may not speak.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Member {
    /// The highest version seen.
    pub(crate) incarnation: Incarnation,
    /// Whether the second half of its transition has been applied.
    pub(crate) settled: bool,
    pub(crate) standing: Standing,
    /// How many clocks are ticked here; the clock of the removal for one removed.
    pub(crate) clock: Clock,
    /// The clock this incarnation settled at: lower clocks were ticked by others.
    pub(crate) start: Clock,
    /// What the fence answered; a repeat answers it again.
    pub(crate) fenced_at: Clock,
    /// The next sequence taken.
    pub(crate) next: Sequence,
    /// `next` when the map epoch last grew: lower sequences belong to an older map and are no repeats (P4).
    pub(crate) floor: Sequence,
    /// Refusals the worker has not acknowledged.
    pub(crate) refusals: BTreeMap<Sequence, Refusal>,
    /// Values left out because they, or their sum, were not finite.
    pub(crate) non_finite: u64,
    /// Kept as records of their own in snapshots.
    #[serde(skip)]
    pub(crate) staged: Staged,
}

impl Member {
    pub(crate) const fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            settled: false,
            standing: Standing::Absent,
            clock: Clock::ZERO,
            start: Clock::ZERO,
            fenced_at: Clock::ZERO,
            next: Sequence(0),
            floor: Sequence(0),
            refusals: BTreeMap::new(),
            non_finite: 0,
            staged: Staged { clocks: BTreeMap::new(), bytes: 0 },
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }

    /// Consumes the next sequence.
    pub(crate) fn consume(&mut self) {
        self.next = self.next.next();
    }

    /// Forgets refusals the worker says it has (P4).
    pub(crate) fn forget_refusals(&mut self, acked_below: Sequence) {
        if self.refusals.first_key_value().is_some_and(|(first, _)| *first < acked_below) {
            self.refusals = self.refusals.split_off(&acked_below);
        }
    }
}

/// A worker's staged parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Staged {
    pub(crate) clocks: BTreeMap<Clock, StagedClock>,
    /// Of all payloads.
    pub(crate) bytes: u64,
}

/// The staged parts of one clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StagedClock {
    /// The map the parts were cut for.
    pub(crate) epoch: MapEpoch,
    pub(crate) parts: BTreeMap<u32, Bytes>,
}

impl StagedClock {
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.values().map(|part| part.len() as u64).sum()
    }
}

impl Staged {
    /// Parts held of a clock.
    pub(crate) fn parts_of(&self, clock: Clock) -> u32 {
        let parts = self.clocks.get(&clock).map_or(0, |c| c.parts.len());
        u32::try_from(parts).expect("part numbers are 32 bits")
    }

    /// Bytes that staging a part of this epoch frees: parts of an older map go when the clock is cut again (P25).
    pub(crate) fn outdated_bytes(&self, clock: Clock, epoch: MapEpoch) -> u64 {
        self.clocks.get(&clock).filter(|c| c.epoch < epoch).map_or(0, StagedClock::bytes)
    }

    /// Whether a part of this number and epoch is held.
    pub(crate) fn holds(&self, clock: Clock, epoch: MapEpoch, part: u32) -> bool {
        self.clocks.get(&clock).is_some_and(|c| c.epoch == epoch && c.parts.contains_key(&part))
    }

    /// Adds a part that [`Staged::holds`] not.
    pub(crate) fn insert(&mut self, clock: Clock, epoch: MapEpoch, part: u32, payload: Bytes) {
        if self.outdated_bytes(clock, epoch) > 0 {
            self.take(clock);
        }
        self.bytes += payload.len() as u64;
        let staged = self.clocks.entry(clock).or_insert_with(|| StagedClock { epoch, parts: BTreeMap::new() });
        let before = staged.parts.insert(part, payload);
        assert!(before.is_none(), "part {part} of {clock} staged twice");
    }

    /// Takes out a clock's parts, in part order.
    pub(crate) fn take(&mut self, clock: Clock) -> BTreeMap<u32, Bytes> {
        let Some(staged) = self.clocks.remove(&clock) else { return BTreeMap::new() };
        self.bytes -= staged.bytes();
        staged.parts
    }

    /// Takes out the parts of every clock below `end`, by clock and part.
    pub(crate) fn take_below(&mut self, end: Clock) -> Vec<Bytes> {
        let kept = self.clocks.split_off(&end);
        let taken = std::mem::replace(&mut self.clocks, kept);
        self.bytes -= taken.values().map(StagedClock::bytes).sum::<u64>();
        taken.into_values().flat_map(|c| c.parts.into_values()).collect()
    }
}
