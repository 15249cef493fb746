//! Sums that replicas compare at a common log index (G6).
//!
//! Rows are summed per slot, kept up to date by every entry; everything else (clocks, sessions, staged parts, schemas) is
//! one sum, computed when asked for. Replicas under load are rarely at one index, so the sum of all rows at every
//! [`MARK_INTERVAL`]th index is remembered for a while, as part of the state.

use crate::shard::Shard;
use crate::snapshot;
use crate::table::{Tables, row_sum};
use petuum_types::{LogIndex, Slot, checksum};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Every how many log indices the sum of all rows is remembered.
pub const MARK_INTERVAL: u64 = 1024;
/// How many marks are kept.
const MARKS_MAX: usize = 16;

/// A shard's sums at one log index. Equal states have equal sums, whatever each replica was restored from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checksums {
    /// The index they hold at.
    pub index: LogIndex,
    /// Per slot that holds rows, in order.
    pub slots: Vec<(Slot, u64)>,
    /// Of everything but rows.
    pub rest: u64,
}

impl Checksums {
    /// All of it in one number.
    #[must_use]
    pub fn combined(&self) -> u64 {
        let fold = |sum, (slot, of_slot): &(Slot, u64)| {
            let mut bytes = [0; 10];
            bytes[..2].copy_from_slice(&slot.0.to_le_bytes());
            bytes[2..].copy_from_slice(&of_slot.to_le_bytes());
            checksum::hash(sum, &bytes)
        };
        let slots = self.slots.iter().fold(self.index.0, fold);
        checksum::hash(slots, &self.rest.to_le_bytes())
    }
}

impl Shard {
    /// The sums at [`Shard::applied`]. Costs a pass over slots, sessions and staged parts, not over rows.
    #[must_use]
    pub fn checksums(&self) -> Checksums {
        let slots = self.tables.live.values().flat_map(|t| t.slots.iter().map(|(slot, rows)| (*slot, rows.sum)));
        self.sums_of(slots)
    }

    /// The same, computed anew from every row: slow, for tests and audits.
    #[must_use]
    pub fn checksums_recomputed(&self) -> Checksums {
        let slots = self.tables.live.iter().flat_map(|(table, t)| {
            t.slots.iter().flat_map(|(slot, s)| s.rows.iter().map(|(id, row)| (*slot, row_sum(*table, *id, row))))
        });
        self.sums_of(slots)
    }

    fn sums_of(&self, slots: impl Iterator<Item = (Slot, u64)>) -> Checksums {
        let mut sums = BTreeMap::<Slot, u64>::new();
        for (slot, sum) in slots {
            let total = sums.entry(slot).or_default();
            *total = total.wrapping_add(sum);
        }
        Checksums { index: self.applied, slots: sums.into_iter().collect(), rest: snapshot::sum_without_rows(self) }
    }

    /// The sum of all rows at the latest multiples of [`MARK_INTERVAL`], oldest first.
    #[must_use]
    pub fn checksum_marks(&self) -> Vec<(LogIndex, u64)> {
        self.marks.0.iter().copied().collect()
    }
}

/// The remembered sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Marks(VecDeque<(LogIndex, u64)>);

impl Marks {
    /// Before the entry at `to` changes anything: notes a multiple between the two indices.
    pub(crate) fn passed(&mut self, from: LogIndex, to: LogIndex, tables: &Tables) {
        let multiple = to.0 - to.0 % MARK_INTERVAL;
        if multiple > from.0 && multiple < to.0 {
            self.push(LogIndex(multiple), tables);
        }
    }

    /// After the entry at `index`.
    pub(crate) fn reached(&mut self, index: LogIndex, tables: &Tables) {
        if index.0.is_multiple_of(MARK_INTERVAL) {
            self.push(index, tables);
        }
    }

    fn push(&mut self, index: LogIndex, tables: &Tables) {
        if self.0.len() == MARKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((index, tables.sum()));
    }
}
