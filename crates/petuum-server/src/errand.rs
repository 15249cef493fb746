//! A driver's commands on their way to the leaders of shards (P5, P15, P18).
//!
//! A command may reach several nodes, and each of them several times: only a leader logs it, and a shard answers a repeat
//! as the first time. So a silent node is not waited for before another one is asked.

use crate::groups::Running;
use crate::shared::Inner;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petuum_chaos::{Buggify, Failpoint, clumsy, reached};
use petuum_control::{Errand, ErrandId};
use petuum_net::candidates::Candidates;
use petuum_net::{status, wire};
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::{Error, ErrorKind, GroupId, NodeId, ShardId, codec, entry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::time::timeout;

/// How long a node may be silent before another one is asked too.
const HEDGE: Duration = Duration::from_millis(200);

/// Who has answered for a shard, or was named as its leader, last. Soft state of one term of driving.
#[derive(Default)]
pub(crate) struct Leaders(Mutex<BTreeMap<ShardId, NodeId>>);

impl Leaders {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ShardId, NodeId>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Sends one errand until its shard has answered or this attempt's time is over; the driver then asks again.
pub(crate) async fn run(
    inner: &Arc<Inner>,
    running: &Running,
    leaders: &Leaders,
    errand: Errand,
) -> (ErrandId, Option<ShardAnswer>) {
    let deadline = inner.settings.peer_call();
    if clumsy(Buggify::ErrandLate) {
        tokio::time::sleep(deadline / 2).await;
    }
    if clumsy(Buggify::ErrandStray) {
        tokio::spawn(stray(Arc::downgrade(inner), inner.settings.peer_call(), errand.clone()));
    }
    reached(Failpoint::ErrandBeforeSend);
    match timeout(deadline, ask_shard(inner, running, leaders, errand.shard, &errand.command)).await {
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

/// A copy of an errand that was long on its way. Nobody waits for its answer.
async fn stray(inner: Weak<Inner>, deadline: Duration, errand: Errand) {
    tokio::time::sleep(deadline).await;
    let Some(inner) = inner.upgrade() else { return };
    let Ok(running) = inner.running() else { return };
    let leaders = Leaders::default();
    // Its sender may be gone; there is nobody to tell.
    let _ = timeout(deadline, ask_shard(&inner, running, &leaders, errand.shard, &errand.command)).await;
}

async fn ask_shard(
    inner: &Arc<Inner>,
    running: &Running,
    leaders: &Leaders,
    shard: ShardId,
    command: &ShardCommand,
) -> Result<ShardAnswer, Error> {
    let bytes = entry::encode_command(command);
    let answer = match running.shards.get(&shard) {
        Some(replica) if replica.group.status().is_leader() => {
            replica.group.propose(bytes).await.map_err(|e| Error::new(ErrorKind::Unavailable, e.to_string()))?
        }
        _ => ask_others(inner, running, leaders, shard, bytes).await?,
    };
    codec::decode(&answer).map_err(|e| Error::new(ErrorKind::Internal, format!("{shard}: {e}")))
}

/// Asks the other replicas: first the leader this node's own replica follows, then the one that was found or named last,
/// then the rest; the next as soon as one fails or is silent.
async fn ask_others(
    inner: &Arc<Inner>,
    running: &Running,
    leaders: &Leaders,
    shard: ShardId,
    bytes: Bytes,
) -> Result<Bytes, Error> {
    let replicas = running.identity.map.shards.get(&shard).map(|p| p.replicas.clone()).unwrap_or_default();
    let followed = running.shards.get(&shard).and_then(|r| r.group.status().leader);
    let others = replicas.into_iter().filter(|node| *node != running.identity.node);
    let mut candidates = Candidates::new(others, leaders.lock().get(&shard).copied());
    if let Some(leader) = followed {
        candidates.name(leader);
    }
    let mut last = Error::new(ErrorKind::Unavailable, format!("{shard} has no other replica"));
    let mut asked = FuturesUnordered::new();
    loop {
        match candidates.take() {
            Some(node) => asked.push(propose_at(inner, running, node, shard, bytes.clone())),
            None if asked.is_empty() => return Err(last),
            None => {}
        }
        let answer =
            if candidates.is_empty() { asked.next().await } else { timeout(HEDGE, asked.next()).await.ok().flatten() };
        match answer {
            Some(Ok((node, answer))) => {
                leaders.lock().insert(shard, node);
                return Ok(answer);
            }
            Some(Err((error, named))) => {
                last = error;
                if let Some(leader) = named {
                    leaders.lock().insert(shard, leader);
                    candidates.name(leader);
                }
            }
            None => {}
        }
    }
}

/// What one node answers, or why it does not and whom it names.
async fn propose_at(
    inner: &Arc<Inner>,
    running: &Running,
    node: NodeId,
    shard: ShardId,
    entry: Bytes,
) -> Result<(NodeId, Bytes), (Error, Option<NodeId>)> {
    let identity = &running.identity;
    let address = identity.map.nodes.get(&node).ok_or_else(|| {
        let message = format!("{node} has a replica of {shard} and no address in the map");
        (Error::new(ErrorKind::Internal, message), None)
    })?;
    let request = wire::ProposeRequest {
        format: petuum_net::FORMAT,
        cluster: identity.cluster.to_string(),
        group: GroupId::of_shard(shard).0,
        entry,
    };
    let mut peer = inner.peers.peer(address).map_err(|error| (error, None))?;
    match peer.propose(request).await {
        Ok(answer) => Ok((node, answer.into_inner().answer)),
        Err(error) => Err((status::from_status(&error).context(node), status::leader_hint(&error).map(|h| h.node))),
    }
}
