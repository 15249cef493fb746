//! What the control group's leader does in the shards (P5, P15, P18): the edge of `petuum_control`'s pure drivers.
//!
//! Every control member runs this loop; only the leader acts. All it knows besides the replicated state is soft: a new
//! leader starts over from the state and repeats what it must.

use crate::errand::{self, Leaders};
use crate::groups::{ControlReplica, Running};
use crate::shared::Inner;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petuum_chaos::{Buggify, Failpoint, clumsy, reached};
use petuum_consensus::ProposeError;
use petuum_control::{Control, ControlAnswer, ControlCommand, Driver, ErrandId};
use petuum_types::{Clock, Error, ErrorKind, JobId, WorkerId, codec};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Drives for as long as the node lives; returns at once on a node that is no control member.
pub(crate) async fn run(inner: &Arc<Inner>) {
    let Ok(running) = inner.running() else { return };
    let Some(control) = &running.control else { return };
    let group = control.group.clone();
    loop {
        if group.status().is_leader() {
            lock(&inner.leases).begin();
            lead(inner, running, control).await;
            lock(&inner.leases).end();
        }
        group.changed().await;
    }
}

/// One term of leading.
async fn lead(inner: &Arc<Inner>, running: &Running, control: &ControlReplica) {
    tracing::info!("this node leads the control group");
    let mut driver = Driver::new();
    let group = control.group.clone();
    let mut changes = control.cell.changes();
    let mut under_way: BTreeSet<ErrandId> = BTreeSet::new();
    let leaders = Leaders::default();
    let mut errands = FuturesUnordered::new();
    let tick = Duration::from_millis(inner.settings.driver_tick_ms);
    let term = group.status().term;
    // Another term is another leader's, even if it is this node again: leases and answers start over.
    while group.status().is_leader() && group.status().term == term {
        changes.borrow_and_update();
        let mut proposals = form(running, control);
        proposals.extend(control.cell.with(|state| driver.proposals(state)));
        proposals.extend(control.cell.with(|state| lock(&inner.leases).expired(state)));
        for command in &proposals {
            log_expiry(command);
            if matches!(command, ControlCommand::Evict { .. }) && clumsy(Buggify::ExpiryLate) {
                tokio::time::sleep(2 * tick).await;
            }
            reached(Failpoint::ProposalBefore);
            let proposed = propose(control, command).await;
            reached(Failpoint::ProposalAfter);
            match proposed {
                // What is refused now will be refused again: not in a spin, each attempt is an entry of the log.
                Ok(ControlAnswer::Refused { message, .. }) => {
                    tracing::error!(%message, "the control group refused a step of its driver");
                    tokio::time::sleep(tick).await;
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "a step of the driver was not logged; it will be tried again"),
            }
        }
        for errand in control.cell.with(|state| driver.step(state)) {
            if under_way.insert(errand.id) {
                errands.push(errand::run(inner, running, &leaders, errand));
            }
        }
        tokio::select! {
            biased;
            Some((id, answer)) = errands.next() => {
                under_way.remove(&id);
                if let Some(answer) = answer {
                    reached(Failpoint::ErrandAfterAnswer);
                    control.cell.with(|state| driver.answer(state, &id, answer));
                }
            }
            _ = changes.changed() => {}
            () = inner.driver_wake.notified() => {}
            () = group.changed() => {}
            () = tokio::time::sleep(tick) => {}
        }
    }
    tracing::info!("this node no longer leads the control group");
}

/// The first command of a cluster: its map, from the identity every node was adopted with.
fn form(running: &Running, control: &ControlReplica) -> Vec<ControlCommand> {
    if control.cell.with(|state| state.cluster().is_some()) {
        return Vec::new();
    }
    vec![ControlCommand::Form { cluster: running.identity.cluster, map: running.identity.map.clone() }]
}

fn log_expiry(command: &ControlCommand) {
    if let ControlCommand::Evict { job, worker, incarnation, .. } = command {
        tracing::warn!(%job, %worker, ?incarnation, "no heartbeat within the lease: the worker is evicted");
    }
}

/// Logs a command in the control group and returns its answer.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if this node does not lead or the outcome is unknown.
pub(crate) async fn propose(control: &ControlReplica, command: &ControlCommand) -> Result<ControlAnswer, Error> {
    match control.group.propose(codec::encode(command).into()).await {
        Ok(answer) => codec::decode(&answer).map_err(|e| Error::new(ErrorKind::Internal, e.to_string())),
        Err(ProposeError::NotLeader { .. }) => {
            Err(Error::new(ErrorKind::Unavailable, "this node does not lead the control group"))
        }
        Err(error) => Err(Error::new(ErrorKind::Unavailable, error.to_string()).with_unknown_outcome()),
    }
}

/// The worker's clock at which its removal is recorded, once every shard has settled it.
pub(crate) fn removed_at(state: &Control, job: JobId, worker: WorkerId) -> Option<Clock> {
    match state.worker(job, worker)?.phase() {
        petuum_control::Phase::Removed { at, .. } => Some(*at),
        _ => None,
    }
}
