//! Sums that replicas compare at a common log index (G6).
//!
//! Rows are summed per slot, kept up to date by every entry; everything else (clocks, sessions, staged parts, schemas) is
//! one sum, computed when asked for. For replicas that are never seen at one index there are [`crate::marks`].

use crate::shard::Shard;
use crate::snapshot;
use crate::table::row_sum;
use petuum_types::{LogIndex, Slot, checksum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

    /// The sum of all rows at the latest multiples of [`crate::MARK_INTERVAL`], oldest first.
    #[must_use]
    pub fn checksum_marks(&self) -> Vec<(LogIndex, u64)> {
        self.marks.iter().collect()
    }
}
