//! The hello between nodes (P21).

use super::boot::{Remembered, judge};
use crate::ending::Stopped;
use crate::groups::groups_of;
use crate::identity::Identity;
use crate::peers::Peers;
use crate::shared::Inner;
use petuum_net::wire;
use petuum_storage::{Boot, Store};
use petuum_types::{Error, ErrorKind, GroupId, NodeId, codec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

fn storage(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Storage, format!("boot numbers: {error}"))
}

/// Shows this boot to the peers until a majority of every group this node is in has taken it (this node counts), and to
/// the others in the background for as long as the node lives: the more remember it, the less a copy can hide.
///
/// # Errors
/// [`ErrorKind::FailedPrecondition`] if a peer remembers more: the node must not start. It waits for as long as too few
/// peers answer.
pub(crate) async fn introduce(inner: &Arc<Inner>, identity: &Identity) -> Result<(), Error> {
    let groups = groups_of(&identity.map, identity.node);
    let hello = hello(identity, &inner.store, inner.boot, groups.keys().copied())?;
    let mut taken = BTreeSet::from([identity.node]);
    let mut others: BTreeMap<NodeId, String> =
        identity.map.nodes.iter().filter(|(n, _)| **n != identity.node).map(|(n, a)| (*n, a.clone())).collect();
    let mut round = 0u32;
    loop {
        show_all(inner, &hello, &mut others, &mut taken).await?;
        let majority = |members: &BTreeMap<NodeId, String>| {
            members.keys().filter(|n| taken.contains(n)).count() * 2 > members.len()
        };
        if groups.values().all(majority) {
            break;
        }
        if round.is_multiple_of(50) {
            tracing::info!(answered = taken.len() - 1, missing = others.len(), "waiting for peers to take this boot");
        }
        round = round.wrapping_add(1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::spawn(keep_showing(Arc::downgrade(inner), hello, others, taken));
    Ok(())
}

/// Shows the boot once to each peer that has not taken it.
async fn show_all(
    inner: &Inner,
    hello: &wire::HelloRequest,
    others: &mut BTreeMap<NodeId, String>,
    taken: &mut BTreeSet<NodeId>,
) -> Result<(), Error> {
    for (node, address) in others.clone() {
        match show(&inner.peers, &address, hello.clone(), inner.settings.peer_call()).await {
            Ok(refusal) if refusal.is_empty() => {
                others.remove(&node);
                taken.insert(node);
            }
            Ok(refusal) => return Err(Error::new(ErrorKind::FailedPrecondition, refusal)),
            Err(error) => tracing::debug!(%node, %error, "a peer has not taken this node's hello yet"),
        }
    }
    Ok(())
}

async fn keep_showing(
    inner: Weak<Inner>,
    hello: wire::HelloRequest,
    mut others: BTreeMap<NodeId, String>,
    mut taken: BTreeSet<NodeId>,
) {
    while !others.is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = show_all(&inner, &hello, &mut others, &mut taken).await {
            inner.end(Stopped::Failed(error));
            return;
        }
    }
}

async fn show(peers: &Peers, address: &str, hello: wire::HelloRequest, call: Duration) -> Result<String, Error> {
    let mut client = peers.peer(address)?;
    let late = |_| Error::new(ErrorKind::DeadlineExceeded, format!("{address} did not answer within {call:?}"));
    let answer = tokio::time::timeout(call, client.hello(hello)).await.map_err(late)?;
    answer.map(|a| a.into_inner().refusal).map_err(|s| petuum_net::status::from_status(&s))
}

fn hello(
    identity: &Identity,
    store: &Store,
    boot: Boot,
    groups: impl Iterator<Item = GroupId>,
) -> Result<wire::HelloRequest, Error> {
    let mut positions = Vec::new();
    for group in groups {
        let at = petuum_consensus::stored_position(store, group).map_err(|e| storage(&e))?;
        positions.push(wire::GroupPosition { group: group.0, last_index: at.last_index, term: at.term });
    }
    Ok(wire::HelloRequest {
        format: petuum_net::FORMAT,
        cluster: identity.cluster.to_string(),
        node: identity.node.0,
        boot: boot.number,
        nonce: boot.nonce,
        groups: positions,
        life: boot.life,
    })
}

/// A peer's answer to a hello: remembers it durably, or says why the node must not start.
///
/// # Errors
/// [`ErrorKind::FailedPrecondition`] for another cluster's node, [`ErrorKind::Storage`] if it cannot be remembered.
pub(crate) async fn answer(identity: &Identity, store: &Store, hello: &wire::HelloRequest) -> Result<String, Error> {
    if hello.cluster != identity.cluster.to_string() {
        let (theirs, ours) = (&hello.cluster, identity.cluster);
        let message = format!("node {} belongs to cluster {theirs}, this node to {ours}", hello.node);
        return Err(Error::new(ErrorKind::FailedPrecondition, message));
    }
    let node = NodeId(hello.node);
    if !identity.map.nodes.contains_key(&node) {
        return Ok(format!("{node} is not a member of cluster {}", identity.cluster));
    }
    let known = store.peer_record(node).map_err(|e| storage(&e))?;
    let known: Option<Remembered> = known.map(|bytes| codec::decode(&bytes)).transpose().map_err(|e| storage(&e))?;
    let terms = hello.groups.iter().map(|g| (g.group, g.term)).collect();
    match judge(node, known.as_ref(), &Remembered { boot: hello.boot, nonce: hello.nonce, life: hello.life, terms }) {
        Err(refusal) => {
            tracing::error!(%refusal, "a peer was refused");
            Ok(refusal)
        }
        Ok(now) if known.as_ref() == Some(&now) => Ok(String::new()),
        Ok(now) => {
            let (done, saved) = oneshot::channel();
            let done = Box::new(move |result| drop(done.send(result)));
            store.set_peer_record(node, &codec::encode(&now), done).map_err(|e| storage(&e))?;
            saved.await.map_err(|e| storage(&e))?.map_err(|e| storage(&e))?;
            Ok(String::new())
        }
    }
}
