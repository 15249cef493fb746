//! A group's messages to one peer: openraft's network. Each of openraft's tasks (replication, heartbeats, a snapshot)
//! has one [`Network`] of its own; the connections under them are shared (`peers`).
//!
//! Reading order: here (votes, leader transfers), `append` (the windowed streams), `transfer` (snapshots).

mod append;
mod transfer;

use crate::node::Node;
use crate::peers::{Envelope, Traffic};
use crate::record::{TransferAnswer, TransferCall, VoteAnswer, VoteCall};
use crate::types::Types;
use append::Session;
#[cfg(test)]
pub(crate) use append::encode_append;
use bytes::Bytes;
use openraft::errors::{NetworkError, RPCError, Timeout, Unreachable};
use openraft::network::{Backoff, NetBackoff, NetTransferLeader, NetVote, RPCOption};
use openraft::raft::{TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse};
use openraft::{BasicNode, RPCTypes, RaftNetworkFactory};
use petuum_net::wire;
use petuum_net::wire::peer_client::PeerClient;
use petuum_types::{GroupId, NodeId, codec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// Makes the networks of one group.
pub(crate) struct Networks {
    pub(crate) node: Arc<Node>,
    pub(crate) group: GroupId,
    pub(crate) compaction: Arc<crate::compaction::Compaction>,
}

impl Networks {
    fn network(&self, target: u64, at: &BasicNode, traffic: Traffic) -> Network {
        let node = &self.node;
        let envelope = Envelope { cluster: node.cluster, from: node.id, to: NodeId(target), group: self.group };
        Network {
            node: node.clone(),
            envelope,
            address: at.addr.clone(),
            traffic,
            compaction: self.compaction.clone(),
            session: None,
        }
    }
}

impl RaftNetworkFactory<Types> for Networks {
    type Network = Network;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Network {
        self.network(target, node, Traffic::Log)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &BasicNode) -> Network {
        self.network(target, node, Traffic::Control)
    }
}

/// One task's way to one peer.
pub(crate) struct Network {
    node: Arc<Node>,
    envelope: Envelope,
    address: String,
    /// Of append streams; votes are control traffic always.
    traffic: Traffic,
    compaction: Arc<crate::compaction::Compaction>,
    /// An append stream that ended in good order and can be gone on with.
    session: Option<Box<Session>>,
}

impl Network {
    fn client(&self, traffic: Traffic) -> Result<PeerClient<Channel>, String> {
        self.node.peers.client(self.envelope.to, &self.address, traffic)
    }

    fn call(&self, record: &impl Serialize) -> wire::RaftCall {
        wire::RaftCall {
            cluster: self.envelope.cluster.to_string(),
            from: self.envelope.from.0,
            group: self.envelope.group.0,
            record: codec::encode(record).into(),
        }
    }

    fn timeout(&self, action: RPCTypes, timeout: Duration) -> Timeout<Types> {
        Timeout { action, id: self.envelope.from.0, target: self.envelope.to.0, timeout }
    }

    /// One question, one answer, on the control connection.
    async fn ask<A, F>(
        &self,
        action: RPCTypes,
        limit: Duration,
        record: &impl Serialize,
        send: impl FnOnce(PeerClient<Channel>, Request<wire::RaftCall>) -> F,
    ) -> Result<A, RPCError<Types>>
    where
        A: DeserializeOwned,
        F: Future<Output = Result<Response<wire::RaftRecord>, Status>>,
    {
        let client = self.client(Traffic::Control).map_err(Unreachable::from_string)?;
        let request = self.envelope.request(self.call(record));
        match tokio::time::timeout(limit, send(client, request)).await {
            Err(_) => Err(self.timeout(action, limit).into()),
            Ok(Err(status)) => Err(Unreachable::from_string(status).into()),
            Ok(Ok(response)) => decode(&response.into_inner().record).map_err(RPCError::from),
        }
    }
}

/// A record of a peer's; one that cannot be read is the peer's fault, not this group's.
fn decode<T: DeserializeOwned>(record: &Bytes) -> Result<T, NetworkError<Types>> {
    codec::decode(record).map_err(|error| NetworkError::new(&error))
}

impl NetVote<Types> for Network {
    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let send = |mut client: PeerClient<Channel>, request| async move { client.vote(request).await };
        let answer: VoteAnswer = self.ask(RPCTypes::Vote, option.hard_ttl(), &VoteCall::from(&request), send).await?;
        Ok(answer.into())
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let send = |mut client: PeerClient<Channel>, request| async move { client.pre_vote(request).await };
        let answer: VoteAnswer = self.ask(RPCTypes::Vote, option.hard_ttl(), &VoteCall::from(&request), send).await?;
        Ok(answer.into())
    }
}

impl NetTransferLeader<Types> for Network {
    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        let send = |mut client: PeerClient<Channel>, request| async move { client.transfer_leader(request).await };
        let call = TransferCall::from(&request);
        let answer: TransferAnswer = self.ask(RPCTypes::TransferLeader, option.hard_ttl(), &call, send).await?;
        Ok(answer.into())
    }
}

impl NetBackoff<Types> for Network {
    fn backoff(&self) -> Option<Backoff> {
        // As `Settings::config` says.
        None
    }
}
