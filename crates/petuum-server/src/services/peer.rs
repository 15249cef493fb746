//! What nodes of one cluster ask of each other: formation, Raft, and drivers' commands.

use crate::formation::{adopt, answer_hello};
use crate::identity::Identity;
use crate::shared::Inner;
use futures::stream::BoxStream;
use petuum_consensus::{ProposeError, RaftRpc};
use petuum_net::status::{LeaderHint, check_format, to_status, with_leader};
use petuum_net::wire::peer_server::Peer;
use petuum_net::{convert, wire};
use petuum_types::{Error, ErrorKind, GroupId, NodeId, codec};
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

pub(super) struct Service(pub(super) Arc<Inner>);

impl Service {
    fn rpc(&self) -> Result<RaftRpc, Status> {
        Ok(self.0.running().map_err(|e| to_status(&e))?.consensus.rpc())
    }
}

#[tonic::async_trait]
impl Peer for Service {
    type AppendStream = BoxStream<'static, Result<wire::RaftRecord, Status>>;
    type InstallSnapshotStream = BoxStream<'static, Result<wire::SnapshotProgress, Status>>;

    async fn adopt(&self, request: Request<wire::AdoptRequest>) -> Result<Response<wire::AdoptResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let cluster = convert::cluster_id(&request.cluster).map_err(|e| to_status(&e))?;
        let malformed = |e: codec::Error| to_status(&Error::new(ErrorKind::InvalidArgument, e.to_string()));
        let map = codec::decode(&request.map).map_err(malformed)?;
        let identity = Identity { cluster, node: NodeId(request.node), map };
        adopt(&self.0, identity).await.map_err(|e| to_status(&e))?;
        Ok(Response::new(wire::AdoptResponse { node: request.node, cluster: cluster.to_string() }))
    }

    async fn hello(&self, request: Request<wire::HelloRequest>) -> Result<Response<wire::HelloResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let Some(identity) = self.0.identity() else {
            return Err(to_status(&Error::new(ErrorKind::NotInitialized, "this node belongs to no cluster yet")));
        };
        let _one_at_a_time = self.0.hearing.lock().await;
        let refusal = answer_hello(&identity, &self.0.store, &request).await.map_err(|e| to_status(&e))?;
        Ok(Response::new(wire::HelloResponse { refusal }))
    }

    async fn append(
        &self,
        request: Request<Streaming<wire::RaftRecord>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        self.rpc()?.append(request).await
    }

    async fn vote(&self, request: Request<wire::RaftCall>) -> Result<Response<wire::RaftRecord>, Status> {
        self.rpc()?.vote(request).await
    }

    async fn pre_vote(&self, request: Request<wire::RaftCall>) -> Result<Response<wire::RaftRecord>, Status> {
        self.rpc()?.pre_vote(request).await
    }

    async fn transfer_leader(&self, request: Request<wire::RaftCall>) -> Result<Response<wire::RaftRecord>, Status> {
        self.rpc()?.transfer_leader(request).await
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<wire::SnapshotFrame>>,
    ) -> Result<Response<Self::InstallSnapshotStream>, Status> {
        self.rpc()?.install_snapshot(request).await
    }

    async fn propose(&self, request: Request<wire::ProposeRequest>) -> Result<Response<wire::ProposeResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let running = self.0.running().map_err(|e| to_status(&e))?;
        let refuse = |kind, message: String| Err(to_status(&Error::new(kind, message)));
        if request.cluster != running.identity.cluster.to_string() {
            let (theirs, ours) = (request.cluster, running.identity.cluster);
            return refuse(ErrorKind::FailedPrecondition, format!("a command of cluster {theirs} for cluster {ours}"));
        }
        let group = GroupId(request.group);
        let Some(replica) = group.shard().and_then(|shard| running.shards.get(&shard)) else {
            return refuse(ErrorKind::NotFound, format!("this node has no replica of {group}"));
        };
        // Nothing that does not decode goes into a log: apply would stop the group on every replica.
        if let Err(error) = petuum_types::entry::Entry::decode(&request.entry) {
            return refuse(ErrorKind::InvalidArgument, error.to_string());
        }
        match replica.group.propose(request.entry).await {
            Ok(answer) => Ok(Response::new(wire::ProposeResponse { answer })),
            Err(ProposeError::NotLeader { leader }) => {
                let hint = leader.and_then(|node| {
                    let address = running.identity.map.nodes.get(&node)?.clone();
                    Some(LeaderHint { node, address })
                });
                let error = Error::new(ErrorKind::Unavailable, format!("this node does not lead {group}"));
                Err(with_leader(&error, hint))
            }
            Err(error) => {
                let error = Error::new(ErrorKind::Unavailable, format!("{group}: {error}")).with_unknown_outcome();
                Err(to_status(&error))
            }
        }
    }
}
