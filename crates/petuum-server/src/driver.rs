//! What the control group's leader does in the shards (P5, P15, P18): the edge of `petuum_control`'s pure drivers.
//!
//! Every control member runs this loop; only the leader acts. All it knows besides the replicated state is soft: a new
//! leader starts over from the state and repeats what it must.

use crate::groups::{ControlReplica, Running};
use crate::shared::Inner;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petuum_chaos::{Buggify, Failpoint, clumsy, reached};
use petuum_consensus::ProposeError;
use petuum_control::{Control, ControlAnswer, ControlCommand, Driver, Errand, ErrandId};
use petuum_net::{status, wire};
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::{Clock, Error, ErrorKind, GroupId, JobId, NodeId, ShardId, WorkerId, codec, entry};
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
            reached(Failpoint::ProposalBefore);
            match propose(control, command).await {
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
                errands.push(run_errand(inner, running, errand));
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

/// Sends one errand until its shard has answered or this attempt's time is over; the driver then asks again.
async fn run_errand(inner: &Arc<Inner>, running: &Running, errand: Errand) -> (ErrandId, Option<ShardAnswer>) {
    let deadline = inner.settings.peer_call();
    if clumsy(Buggify::ErrandLate) {
        tokio::time::sleep(deadline / 2).await;
    }
    reached(Failpoint::ErrandBeforeSend);
    let answer = tokio::time::timeout(deadline, ask_shard(inner, running, errand.shard, &errand.command)).await;
    match answer {
        Ok(Ok(_)) if clumsy(Buggify::ErrandTwice) => (errand.id, None),
        Ok(Ok(answer)) => {
            if let ShardAnswer::Refused(reason) = &answer {
                tracing::warn!(shard = %errand.shard, %reason, command = ?errand.command, "a shard refused a driver");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            (errand.id, Some(answer))
        }
        Ok(Err(error)) => {
            tracing::debug!(shard = %errand.shard, %error, "a shard did not take a driver's command yet");
            tokio::time::sleep(Duration::from_millis(50)).await;
            (errand.id, None)
        }
        Err(_) => (errand.id, None),
    }
}

async fn ask_shard(
    inner: &Arc<Inner>,
    running: &Running,
    shard: ShardId,
    command: &ShardCommand,
) -> Result<ShardAnswer, Error> {
    let bytes = entry::encode_command(command);
    let answer = match running.shards.get(&shard) {
        Some(replica) if replica.group.status().is_leader() => {
            replica.group.propose(bytes).await.map_err(|e| Error::new(ErrorKind::Unavailable, e.to_string()))?
        }
        _ => ask_remote(inner, running, shard, bytes).await?,
    };
    codec::decode(&answer).map_err(|e| Error::new(ErrorKind::Internal, format!("{shard}: {e}")))
}

/// Asks the shard's leader, by what this node knows, then every replica in turn, following hints.
async fn ask_remote(
    inner: &Arc<Inner>,
    running: &Running,
    shard: ShardId,
    bytes: bytes::Bytes,
) -> Result<bytes::Bytes, Error> {
    let map = &running.identity.map;
    let known = running.shards.get(&shard).and_then(|r| r.group.status().leader);
    let replicas = map.shards.get(&shard).map(|p| p.replicas.clone()).unwrap_or_default();
    let mut last = Error::new(ErrorKind::Unavailable, format!("{shard} has no leader that this node knows"));
    let mut next: Vec<NodeId> = known.into_iter().chain(replicas).filter(|n| *n != running.identity.node).collect();
    next.dedup();
    for node in next {
        let Some(address) = map.nodes.get(&node) else { continue };
        let request = wire::ProposeRequest {
            format: petuum_net::FORMAT,
            cluster: running.identity.cluster.to_string(),
            group: GroupId::of_shard(shard).0,
            entry: bytes.clone(),
        };
        match inner.peers.peer(address)?.propose(request).await {
            Ok(answer) => return Ok(answer.into_inner().answer),
            Err(error) => last = status::from_status(&error),
        }
    }
    Err(last)
}

/// The worker's clock at which its removal is recorded, once every shard has settled it.
pub(crate) fn removed_at(state: &Control, job: JobId, worker: WorkerId) -> Option<Clock> {
    match state.worker(job, worker)?.phase() {
        petuum_control::Phase::Removed { at, .. } => Some(*at),
        _ => None,
    }
}
