//! What the control group's leader says of a job's workers: from its state, its leases and the shards it has replicas of.

use crate::groups::{ControlReplica, Running};
use crate::shared::Inner;
use petuum_control::{Phase, TransitionKind, Worker};
use petuum_net::wire;
use petuum_types::{Clock, JobId, WorkerId};
use std::collections::BTreeMap;
use std::time::Duration;

/// Every worker of a job; `None` if there is no such job.
pub(super) fn workers(inner: &Inner, control: &ControlReplica, job: JobId) -> Option<Vec<wire::WorkerInfo>> {
    let clocks = inner.running.get().map(|running| clocks(running, job)).unwrap_or_default();
    control.cell.with(|state| {
        let leases = inner.leases.lock().unwrap_or_else(std::sync::PoisonError::into_inner).left(state, job);
        let info = |id| worker_info(id, state.worker(job, id), clocks.get(&id).copied(), leases.get(&id).copied());
        Some((0..state.job(job)?.size()).map(|id| info(WorkerId(id))).collect())
    })
}

/// The clock up to which each worker is acknowledged, by what the replicas of this node have applied: one shard's tick is
/// enough (P3), and every worker ticks in every shard.
fn clocks(running: &Running, job: JobId) -> BTreeMap<WorkerId, Clock> {
    let mut clocks = BTreeMap::new();
    for replica in running.shards.values() {
        for worker in replica.cell.with(|shard| shard.workers(job)) {
            let clock = clocks.entry(worker.worker).or_insert(worker.clock);
            *clock = worker.clock.max(*clock);
        }
    }
    clocks
}

fn worker_info(
    id: WorkerId,
    worker: Option<&Worker>,
    acknowledged: Option<Clock>,
    lease_left: Option<Duration>,
) -> wire::WorkerInfo {
    let phase = worker.map(Worker::phase);
    let (name, clock) = match phase {
        None => ("unregistered", None),
        Some(Phase::Live { start, .. }) => ("live", Some(acknowledged.map_or(*start, |clock| clock.max(*start)))),
        Some(Phase::Removed { at, .. }) => ("removed", Some(*at)),
        Some(Phase::Transition(t)) => match t.kind {
            TransitionKind::Join => ("joining", t.clock),
            TransitionKind::Takeover => ("takeover", t.clock.or(acknowledged)),
            TransitionKind::Remove { .. } => ("leaving", t.clock.or(acknowledged)),
        },
    };
    wire::WorkerInfo {
        worker: id.0,
        phase: name.to_owned(),
        incarnation: phase.map_or(0, |p| p.incarnation().0),
        clock: clock.map_or(0, |c| c.0),
        lease_left_ms: lease_left.map_or(0, |left| u32::try_from(left.as_millis()).unwrap_or(u32::MAX)),
    }
}
