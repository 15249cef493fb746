//! What must be true of replicas at any time: equal at equal index (G6), min clocks that never go back (G3), one leader
//! in a term, none failed, no read left waiting that could be answered (P11).

use std::collections::BTreeMap;

use petuum_sim::SimCluster;
use petuum_types::{Clock, GroupId, JobId, LogIndex, ShardId};

/// Remembers what replicas have shown.
#[derive(Default)]
pub(super) struct Watch {
    /// The checksum first seen at an index, and where.
    sums: BTreeMap<(ShardId, LogIndex), (u64, String)>,
    /// By shard, host and its start: the last applied index and min clock.
    clocks: BTreeMap<(ShardId, String, u64), (LogIndex, Clock)>,
    /// Who led in a term.
    leaders: BTreeMap<(GroupId, u64), String>,
    /// How often a replica was found equal to one on another node.
    pub(super) compared: u64,
}

impl Watch {
    /// Looks at every replica.
    ///
    /// # Errors
    /// What is not as it must be.
    pub(super) fn look(&mut self, cluster: &SimCluster, job: JobId) -> Result<(), String> {
        for view in cluster.views() {
            for replica in &view.replicas {
                if let Some(failure) = &replica.failure {
                    return Err(format!("{} on {} does not run: {failure}", replica.group, view.host));
                }
                if replica.leads {
                    let leader = self.leaders.entry((replica.group, replica.term)).or_insert_with(|| view.host.clone());
                    if *leader != view.host {
                        let (group, term) = (replica.group, replica.term);
                        return Err(format!("{group} has two leaders in term {term}: {leader} and {}", view.host));
                    }
                }
            }
            for shard in cluster.shards_on(&view.host) {
                self.shard(cluster, &view.host, view.starts, shard, job)?;
            }
        }
        Ok(())
    }

    /// Looks at reads that wait, which any later step may wake: to be called after every one.
    ///
    /// # Errors
    /// Some wait that need not.
    pub(super) fn reads(cluster: &SimCluster) -> Result<(), String> {
        let Some((host, shard, count)) = cluster.overdue_reads() else { return Ok(()) };
        Err(format!("P11: {count} reads wait in {shard} on {host} that could be answered"))
    }

    fn shard(
        &mut self,
        cluster: &SimCluster,
        host: &str,
        starts: u64,
        shard: ShardId,
        job: JobId,
    ) -> Result<(), String> {
        let look = cluster.shard(host, shard, |state| (state.checksums(), state.min_clock(job).unwrap_or(Clock::ZERO)));
        let Some((sums, min_clock)) = look else { return Ok(()) };
        let place = (shard, host.to_owned(), starts);
        let (index, before) = self.clocks.insert(place, (sums.index, min_clock)).unwrap_or_default();
        if sums.index < index || min_clock < before {
            return Err(format!(
                "{shard} on {host} went back from {index} with min clock {} to {} with {}",
                before.0, sums.index, min_clock.0
            ));
        }
        let sum = sums.combined();
        let (first, at) = self.sums.entry((shard, sums.index)).or_insert_with(|| (sum, host.to_owned()));
        if *first != sum {
            let index = sums.index;
            return Err(format!("{shard} at {index} has checksum {sum:016x} on {host} and {first:016x} on {at}"));
        }
        self.compared += u64::from(at != host);
        Ok(())
    }

    /// Terms in which somebody led.
    pub(super) fn terms(&self) -> u64 {
        self.leaders.len() as u64
    }
}
