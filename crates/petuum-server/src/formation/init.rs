//! Forming a cluster (P21): init on one node, adoption of the others.

use crate::identity::Identity;
use crate::shared::Inner;
use petuum_chaos::{Failpoint, reached};
use petuum_net::{convert, status, wire};
use petuum_types::map::ShardMap;
use petuum_types::{ClusterId, Error, ErrorKind, MapEpoch, NodeId, codec};
use std::collections::BTreeMap;

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::FailedPrecondition, message)
}

/// Forms a cluster of the request's addresses, or finds that it is formed. Returns the id and whether it existed.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for impossible numbers, [`ErrorKind::FailedPrecondition`] if a node belongs to
/// another cluster or this one has another shape, [`ErrorKind::Unavailable`] if a node does not answer.
pub(crate) async fn init(inner: &Inner, request: &wire::InitRequest) -> Result<(ClusterId, bool), Error> {
    let map = wanted(request)?;
    let _one_at_a_time = inner.forming.lock().await;
    if let Some(identity) = inner.identity() {
        same_shape(&identity.map, &map)?;
        adopt_all(inner, &identity).await?;
        return Ok((identity.cluster, true));
    }
    if let Some(member) = find_member(inner, &map).await? {
        // An earlier call reached another node first and was cut short: that node goes on with it.
        let mut client = inner.peers.admin(&member)?;
        let answer = client.init(request.clone()).await.map_err(|s| status::from_status(&s))?.into_inner();
        return Ok((convert::cluster_id(&answer.cluster)?, answer.existed));
    }
    let own = inner.address();
    if let Some(first) = map.nodes.values().next().filter(|first| *first != own) {
        // Calls to two nodes at once must not draw two ids: the first address listed draws it.
        let mut client = inner.peers.admin(first)?;
        let answer = client.init(request.clone()).await.map_err(|s| status::from_status(&s))?.into_inner();
        return Ok((convert::cluster_id(&answer.cluster)?, answer.existed));
    }
    let node = map.nodes.iter().find(|(_, address)| **address == own).map(|(node, _)| *node).ok_or_else(|| {
        let listed: Vec<&str> = map.nodes.values().map(String::as_str).collect();
        refused(format!(
            "this node is reached at {own}, which is not among {listed:?}: name every node as it advertises itself"
        ))
    })?;
    let identity = Identity { cluster: ClusterId(inner.draw_u128()), node, map };
    adopt(inner, identity.clone()).await?;
    adopt_all(inner, &identity).await?;
    Ok((identity.cluster, false))
}

fn wanted(request: &wire::InitRequest) -> Result<ShardMap, Error> {
    let invalid = |message: String| Error::new(ErrorKind::InvalidArgument, message);
    let mut nodes = BTreeMap::new();
    for (address, id) in request.addresses.iter().zip(1..) {
        if nodes.values().any(|known| known == address) {
            return Err(invalid(format!("address {address} is named twice")));
        }
        nodes.insert(NodeId(id), address.clone());
    }
    let replication = request.replication as usize;
    let count = nodes.len();
    let map = ShardMap::spread(nodes, request.shards, replication).ok_or_else(|| {
        invalid(format!(
            "{count} nodes, {} shards, replication {replication}; expected at least 1 node, 1 to 4096 shards, and \
             replication from 1 to the number of nodes",
            request.shards
        ))
    })?;
    // What the control group would refuse is refused before any node is adopted.
    petuum_control::check_map(&map).map_err(|(kind, message)| Error::new(kind, message))?;
    Ok(map)
}

fn same_shape(ours: &ShardMap, wanted: &ShardMap) -> Result<(), Error> {
    let shape = |map: &ShardMap| {
        let addresses: Vec<String> = map.nodes.values().cloned().collect();
        (addresses, map.shards.len(), map.shards.values().next().map_or(0, |place| place.replicas.len()))
    };
    let (ours, theirs) = (shape(ours), shape(wanted));
    if ours == theirs {
        return Ok(());
    }
    Err(refused(format!(
        "the cluster exists with nodes {:?}, {} shards, replication {}; the call names {:?}, {}, {}",
        ours.0, ours.1, ours.2, theirs.0, theirs.1, theirs.2
    )))
}

/// The address of a named node that already belongs to a cluster, if there is one.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if a node does not answer, [`ErrorKind::FailedPrecondition`] if it is named by another address
/// than it advertises. Nothing has begun then.
async fn find_member(inner: &Inner, map: &ShardMap) -> Result<Option<String>, Error> {
    let own = inner.address();
    for address in map.nodes.values().filter(|address| **address != own) {
        let mut client = inner.peers.admin(address)?;
        let request = wire::DescribeNodeRequest { format: petuum_net::FORMAT };
        let answer = tokio::time::timeout(inner.settings.peer_call(), client.describe_node(request)).await;
        let description = answer
            .map_err(|_| Error::new(ErrorKind::Unavailable, format!("{address} did not answer")))?
            .map_err(|s| status::from_status(&s).context(format!("node {address}")))?
            .into_inner();
        // The same node under another name, or twice: nobody would find the node by the address in the map.
        if description.address != *address {
            let known = description.address;
            return Err(refused(format!("{address} reaches the node that advertises itself as {known}: name it so")));
        }
        if description.node != 0 {
            return Ok(Some(address.clone()));
        }
    }
    Ok(None)
}

async fn adopt_all(inner: &Inner, identity: &Identity) -> Result<(), Error> {
    for (node, address) in identity.map.nodes.iter().filter(|(node, _)| **node != identity.node) {
        let request = wire::AdoptRequest {
            format: petuum_net::FORMAT,
            cluster: identity.cluster.to_string(),
            node: node.0,
            map: codec::encode(&identity.map),
        };
        let mut client = inner.peers.peer(address)?;
        let answer = tokio::time::timeout(inner.settings.peer_call(), client.adopt(request)).await;
        answer
            .map_err(|_| Error::new(ErrorKind::Unavailable, format!("{address} did not answer; run init again")))?
            .map_err(|s| status::from_status(&s).context(format!("node {address}")))?;
    }
    Ok(())
}

/// Takes an identity: durable before it is acted on. A repeat changes nothing.
///
/// # Errors
/// [`ErrorKind::FailedPrecondition`] if this node already is somebody else.
pub(crate) async fn adopt(inner: &Inner, identity: Identity) -> Result<(), Error> {
    identity.map.validate().map_err(|e| Error::new(ErrorKind::InvalidArgument, e))?;
    if identity.map.epoch != MapEpoch(1) || !identity.map.nodes.contains_key(&identity.node) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{} is not in the map it is adopted with", identity.node),
        ));
    }
    let _one_at_a_time = inner.adopting.lock().await;
    match inner.identity() {
        Some(known) if known == identity => Ok(()),
        Some(known) => Err(refused(format!(
            "this node is {} of cluster {}; it cannot become {} of cluster {}",
            known.node, known.cluster, identity.node, identity.cluster
        ))),
        None => {
            reached(Failpoint::ClaimBeforeWrite);
            identity.save(&inner.store).await?;
            reached(Failpoint::ClaimAfterWrite);
            tracing::info!(cluster = %identity.cluster, node = %identity.node, "this node now belongs to a cluster");
            inner.set_identity(identity);
            Ok(())
        }
    }
}
