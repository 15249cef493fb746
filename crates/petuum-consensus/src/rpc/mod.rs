//! What peers ask of this node. The server's `Peer` service passes its requests on to [`RaftRpc`].
//!
//! Every request is checked before a group hears of it: cluster, receiver, group, and that its sender is another
//! node. A request that came to the wrong node (a port that was given to another process) must not be answered: its
//! sender would count the answer as that of the node it meant.

mod append;
mod install;

use crate::groups::Groups;
use crate::node::Node;
use crate::peers::Envelope;
use crate::record::{TransferAnswer, TransferCall, VoteAnswer, VoteCall};
use crate::runtime::Rt;
use crate::state::Raft;
use futures::stream::BoxStream;
use petuum_net::wire::{RaftCall, RaftRecord, SnapshotFrame, SnapshotProgress};
use petuum_net::{convert, status};
use petuum_types::{Error, ErrorKind, GroupId, codec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// Handlers of peers' requests. Clones are handles to the same node.
#[derive(Clone)]
pub struct RaftRpc {
    node: Arc<Node>,
    groups: Groups,
}

type Answer<T> = Result<Response<T>, Status>;

impl RaftRpc {
    pub(crate) fn new(node: Arc<Node>, groups: Groups) -> Self {
        Self { node, groups }
    }

    /// Append requests of one group, answered in order until one is refused.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` for another cluster or receiver, `NOT_FOUND` for a group that is not on this node,
    /// `UNAVAILABLE` for one that does not run; in the stream also `INVALID_ARGUMENT` and `DATA_LOSS` for requests
    /// that cannot be read.
    pub async fn append(
        &self,
        request: Request<Streaming<RaftRecord>>,
    ) -> Answer<BoxStream<'static, Result<RaftRecord, Status>>> {
        let (_, raft) = self.admit(&request).map_err(|status| *status)?;
        // openraft spawns a task in there, so it needs a seed.
        let serve = async { append::serve(&raft, request.into_inner()) };
        Ok(Response::new(Rt::scope(self.node.seeds.next(), serve).await))
    }

    /// A candidate asks for this node's vote.
    ///
    /// # Errors
    /// As [`RaftRpc::append`].
    pub async fn vote(&self, request: Request<RaftCall>) -> Answer<RaftRecord> {
        let (raft, call) = self.open::<VoteCall>(request).map_err(|status| *status)?;
        let voting = async { raft.vote(call.into()).await };
        let response = Rt::scope(self.node.seeds.next(), voting).await.map_err(unavailable)?;
        Ok(answer(&VoteAnswer::from(&response)))
    }

    /// A node asks whether it would get this node's vote.
    ///
    /// # Errors
    /// As [`RaftRpc::append`].
    pub async fn pre_vote(&self, request: Request<RaftCall>) -> Answer<RaftRecord> {
        let (raft, call) = self.open::<VoteCall>(request).map_err(|status| *status)?;
        let voting = async { raft.pre_vote(call.into()).await };
        let response = Rt::scope(self.node.seeds.next(), voting).await.map_err(unavailable)?;
        Ok(answer(&VoteAnswer::from(&response)))
    }

    /// A leader asks this node to lead.
    ///
    /// # Errors
    /// As [`RaftRpc::append`].
    pub async fn transfer_leader(&self, request: Request<RaftCall>) -> Answer<RaftRecord> {
        let (raft, call) = self.open::<TransferCall>(request).map_err(|status| *status)?;
        let transferring = async { raft.handle_transfer_leader(call.into()).await };
        let response = Rt::scope(self.node.seeds.next(), transferring).await.map_err(unavailable)?;
        Ok(answer(&TransferAnswer::from(&response)))
    }

    /// A leader sends a snapshot. Answers tell how far it is, at the latest after a quarter of `install_timeout`; the
    /// last one comes when it is installed.
    ///
    /// # Errors
    /// As [`RaftRpc::append`].
    pub async fn install_snapshot(
        &self,
        request: Request<Streaming<SnapshotFrame>>,
    ) -> Answer<BoxStream<'static, Result<SnapshotProgress, Status>>> {
        let (envelope, _) = self.admit(&request).map_err(|status| *status)?;
        let replica = self.groups.find(envelope.group).ok_or_else(|| not_here(envelope.group))?;
        Ok(Response::new(install::serve(self.node.clone(), replica, envelope, request.into_inner())))
    }

    fn admit<T>(&self, request: &Request<T>) -> Result<(Envelope, Raft), Box<Status>> {
        let envelope = Envelope::read(request.metadata())?;
        let refused =
            |message: String| Box::new(status::to_status(&Error::new(ErrorKind::FailedPrecondition, message)));
        if envelope.cluster != self.node.cluster {
            return Err(refused(format!(
                "a request of cluster {} came to {} of cluster {}",
                envelope.cluster, self.node.id, self.node.cluster
            )));
        }
        if envelope.to != self.node.id {
            return Err(refused(format!("a request for {} came to {}", envelope.to, self.node.id)));
        }
        if envelope.from == self.node.id {
            return Err(refused(format!("a request to {} by itself: two nodes have this id", self.node.id)));
        }
        let replica = self.groups.find(envelope.group).ok_or_else(|| Box::new(not_here(envelope.group)))?;
        let raft = replica.raft().map_err(|reason| Box::new(unavailable(reason)))?;
        Ok((envelope, raft))
    }

    fn open<T: DeserializeOwned>(&self, request: Request<RaftCall>) -> Result<(Raft, T), Box<Status>> {
        let (envelope, raft) = self.admit(&request)?;
        let call = request.into_inner();
        let record = check_call(&envelope, &call)?;
        Ok((raft, record))
    }
}

/// The record of a call whose own words agree with its envelope.
fn check_call<T: DeserializeOwned>(envelope: &Envelope, call: &RaftCall) -> Result<T, Box<Status>> {
    let cluster = convert::cluster_id(&call.cluster).map_err(|error| Box::new(status::to_status(&error)))?;
    if (cluster, call.from, call.group) != (envelope.cluster, envelope.from.0, envelope.group.0) {
        return Err(Box::new(Status::invalid_argument(
            "a call says another cluster, sender or group than its envelope",
        )));
    }
    codec::decode(&call.record).map_err(|error| Box::new(Status::invalid_argument(error.to_string())))
}

fn answer(record: &impl Serialize) -> Response<RaftRecord> {
    Response::new(RaftRecord { record: codec::encode(record).into(), entries: Vec::new() })
}

fn unavailable(reason: impl ToString) -> Status {
    status::to_status(&Error::new(ErrorKind::Unavailable, reason.to_string()))
}

fn not_here(group: GroupId) -> Status {
    status::to_status(&Error::new(ErrorKind::NotFound, format!("{group} is not on this node")))
}
