//! G6: replicas of a shard are bit-equal at equal applied index, whichever way they came there.

use std::collections::BTreeMap;

use petuum_sim::SimCluster;
use petuum_types::{LogIndex, ShardId};

/// See the module's text.
#[derive(Default)]
pub(super) struct Equal {
    /// The checksum first seen at an index, and where.
    sums: BTreeMap<(ShardId, LogIndex), (u64, String)>,
    compared: u64,
}

impl Equal {
    pub(super) fn look(&mut self, cluster: &SimCluster, host: &str, shard: ShardId) -> Result<(), String> {
        let Some(sums) = cluster.shard(host, shard, petuum_shard::Shard::checksums) else { return Ok(()) };
        let sum = sums.combined();
        let (first, at) = self.sums.entry((shard, sums.index)).or_insert_with(|| (sum, host.to_owned()));
        if *first != sum {
            let index = sums.index;
            return Err(format!("{shard} at {index} has checksum {sum:016x} on {host} and {first:016x} on {at}"));
        }
        self.compared += u64::from(at != host);
        Ok(())
    }

    pub(super) const fn compared(&self) -> u64 {
        self.compared
    }
}
