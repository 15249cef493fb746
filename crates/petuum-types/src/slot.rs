//! The 4,096 hash buckets of (table, row). A row never changes its slot.

use crate::{RowId, TableId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many slots a cluster has, for ever.
pub const SLOTS: u16 = 4096;

/// A hash bucket of (table, row), `0..SLOTS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub u16);

impl Slot {
    /// The slot of a row: the top 12 bits of a 64-bit mix of table and row (Steele, Lea, Flood 2014: SplitMix64's
    /// finaliser, twice), so that consecutive rows spread evenly. Part of the disk and wire format: never changes.
    #[must_use]
    pub const fn of(table: TableId, row: RowId) -> Self {
        let mixed = mix(mix(table.0 as u64 ^ 0x9e37_79b9_7f4a_7c15) ^ row.0);
        Self((mixed >> 52) as u16)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.0)
    }
}

const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_slots_never_change() {
        let slots: Vec<u16> = (0..6).map(|row| Slot::of(TableId(1), RowId(row)).0).collect();
        assert_eq!(slots, GOLDEN);
    }

    const GOLDEN: [u16; 6] = [1093, 404, 1611, 4020, 1989, 3245];

    /// The largest of `buckets` over the mean, for rows dealt to them by slot range.
    fn imbalance(rows: impl Iterator<Item = u64>, buckets: usize) -> f64 {
        let mut counts = vec![0u32; buckets];
        let mut total = 0u32;
        for row in rows {
            counts[usize::from(Slot::of(TableId(3), RowId(row)).0) * buckets / usize::from(SLOTS)] += 1;
            total += 1;
        }
        f64::from(*counts.iter().max().unwrap()) * buckets as f64 / f64::from(total)
    }

    #[test]
    fn consecutive_and_strided_rows_spread_over_four_shards() {
        assert!(imbalance(0..10_000, 4) < 1.1);
        assert!(imbalance((0..10_000).map(|r| r * 4096), 4) < 1.1);
    }
}
