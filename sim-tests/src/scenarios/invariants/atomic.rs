//! G2, G3: a clock is applied in all rows of a shard at one log index or in none. Every clock of a scenario adds the same to
//! every row, so at any index all rows of a shard are equal.

use petuum_shard::ReadOutcome;
use petuum_sim::SimCluster;
use petuum_types::{Clock, ShardId};

use crate::scenarios::made::Made;

/// # Errors
/// If two rows of a replica differ.
pub(super) fn look(cluster: &SimCluster, host: &str, shard: ShardId, made: &Made) -> Result<(), String> {
    let outcome = cluster.shard(host, shard, |state| state.read(&made.read_of(shard, Clock::ZERO)));
    // The table may not be there yet, or not any more.
    let Some(ReadOutcome::Answer(answer)) = outcome else { return Ok(()) };
    let mut rows = answer.rows.iter();
    let Some(first) = rows.next() else { return Ok(()) };
    match rows.find(|row| row.values != first.values) {
        None => Ok(()),
        Some(other) => Err(format!(
            "{shard} on {host} at {}: {} holds {:?}, {} holds {:?}: a clock was applied in a part of the rows",
            answer.index, first.row, first.values, other.row, other.values
        )),
    }
}
