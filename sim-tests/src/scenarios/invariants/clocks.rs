//! G3: on a replica that lives, the applied index, the min clock and every worker's clock never go back.

use std::collections::BTreeMap;

use petuum_sim::SimCluster;
use petuum_sim::cluster::NodeView;
use petuum_types::{Clock, GroupId, JobId, LogIndex, ShardId, WorkerId};

/// What a replica has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    applied: LogIndex,
    min_clock: Clock,
    workers: BTreeMap<WorkerId, Clock>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Clocks {
    /// By shard, host and its start: after a start the log is replayed.
    shown: BTreeMap<(ShardId, String, u64), Shown>,
}

impl Clocks {
    /// A replica begins anew.
    pub(super) fn forget(&mut self, host: &str, group: GroupId) {
        self.shown.retain(|(shard, on, _), _| (GroupId::of_shard(*shard), on.as_str()) != (group, host));
    }

    pub(super) fn look(
        &mut self,
        cluster: &SimCluster,
        view: &NodeView,
        shard: ShardId,
        job: JobId,
    ) -> Result<(), String> {
        let now = cluster.shard(&view.host, shard, |state| Shown {
            applied: state.applied(),
            min_clock: state.min_clock(job).unwrap_or(Clock::ZERO),
            workers: state.worker_clocks(job).collect(),
        });
        let Some(now) = now else { return Ok(()) };
        let before = self.shown.insert((shard, view.host.clone(), view.starts), now.clone()).unwrap_or_default();
        let back = |(worker, clock): (&WorkerId, &Clock)| now.workers.get(worker).is_some_and(|now| now < clock);
        if now.applied < before.applied || now.min_clock < before.min_clock || before.workers.iter().any(back) {
            return Err(format!("{shard} on {} went back from {before:?} to {now:?}", view.host));
        }
        Ok(())
    }
}
