//! P11: no read waits that could be answered. Any later entry may wake one, so this is looked at after every step.

use petuum_sim::SimCluster;

/// # Errors
/// Where some wait that need not.
pub(in crate::scenarios) fn none_overdue(cluster: &SimCluster) -> Result<(), String> {
    let Some((host, shard, count)) = cluster.overdue_reads() else { return Ok(()) };
    Err(format!("P11: {count} reads wait in {shard} on {host} that could be answered"))
}
