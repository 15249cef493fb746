//! Rows that show whether every clock counted once: each worker adds 1 per clock to one row in every shard.
//!
//! The sum in a row must equal the clocks that all workers have finished. Not a metric: it is training data like any
//! other, committed with the clock it counts (G2), so a lost or doubled clock shows as a wrong sum.

use petuum_client::Table;
use petuum_types::{RowId, TableId};
use std::collections::BTreeMap;

/// A one-column i64 table and the rows to count in.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The table; updates go to column 0.
    pub table: Table,
    /// One row of every shard, as [`counter_rows`] finds them.
    pub rows: Vec<RowId>,
}

/// Rows looked at per shard before giving up; with even shards a shard is missed with a chance below e^-1000.
const CANDIDATES_PER_SHARD: u64 = 1_000;

/// The least row id of `table` in each of `shards` shards, ordered by shard.
///
/// `shard_of` tells the shard of a row; any order type names shards. `None` if some shard holds none of the first
/// `1000 * shards` rows, as when it has no slots.
#[must_use]
pub fn counter_rows<S: Ord>(
    table: TableId,
    shards: usize,
    mut shard_of: impl FnMut(TableId, RowId) -> S,
) -> Option<Vec<RowId>> {
    let mut least = BTreeMap::new();
    let candidates = CANDIDATES_PER_SHARD.saturating_mul(u64::try_from(shards).ok()?);
    for row in (0..candidates).map(RowId) {
        if least.len() == shards {
            break;
        }
        least.entry(shard_of(table, row)).or_insert(row);
    }
    (least.len() == shards).then(|| least.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use petuum_types::map::ShardMap;
    use petuum_types::{NodeId, ShardId};

    #[test]
    fn every_shard_has_its_least_row() {
        let nodes = BTreeMap::from([(NodeId(1), String::new())]);
        let map = ShardMap::spread(nodes, 8, 1).unwrap();
        let rows = counter_rows(TableId(7), 8, |table, row| map.shard_of(table, row)).unwrap();
        for (shard, row) in rows.iter().enumerate() {
            let shard = ShardId(u32::try_from(shard).unwrap());
            assert_eq!(map.shard_of(TableId(7), *row), shard);
            assert!((0..row.0).all(|lower| map.shard_of(TableId(7), RowId(lower)) != shard));
        }
    }

    #[test]
    fn a_shard_without_rows_is_noticed() {
        assert_eq!(counter_rows(TableId(7), 2, |_, _| 0), None);
    }
}
