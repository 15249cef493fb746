//! The small records that are stored or sent, as this project's own types: openraft is an alpha, and what is on a disk
//! or a wire must not change with it. Each is encoded by `petuum_types::codec`; golden bytes are in `tests`.

use crate::types::{AppendResult, CommittedLeader, LogId, Membership, SnapshotMeta, StoredMembership, Types, Vote};
use openraft::BasicNode;
use openraft::impls::leader_id_std;
use openraft::raft::{StreamAppendError, TransferLeaderError, TransferLeaderRequest, VoteRequest, VoteResponse};
use petuum_types::codec;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A position in a log: which leader wrote it and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) term: u64,
    pub(crate) index: u64,
}

impl From<&LogId> for Position {
    fn from(id: &LogId) -> Self {
        Self { term: id.leader_id.term, index: id.index }
    }
}

impl From<Position> for LogId {
    fn from(position: Position) -> Self {
        Self { leader_id: CommittedLeader::new(position.term), index: position.index }
    }
}

pub(crate) fn position(id: Option<&LogId>) -> Option<Position> {
    id.map(Position::from)
}

fn log_id(position: Option<Position>) -> Option<LogId> {
    position.map(LogId::from)
}

/// Whom a node follows in which term, and whether a majority does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ballot {
    pub(crate) term: u64,
    pub(crate) node: u64,
    pub(crate) committed: bool,
}

impl From<&Vote> for Ballot {
    fn from(vote: &Vote) -> Self {
        Self { term: vote.leader_id.term, node: vote.leader_id.voted_for, committed: vote.committed }
    }
}

impl From<Ballot> for Vote {
    fn from(ballot: Ballot) -> Self {
        let leader_id = leader_id_std::LeaderId { term: ballot.term, voted_for: ballot.node };
        Self { leader_id, committed: ballot.committed }
    }
}

/// Who votes (two sets while membership changes) and where everybody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Members {
    voters: Vec<BTreeSet<u64>>,
    addresses: BTreeMap<u64, String>,
}

impl From<&Membership> for Members {
    fn from(membership: &Membership) -> Self {
        Self {
            voters: membership.get_joint_config().clone(),
            addresses: membership.nodes().map(|(node, known)| (*node, known.addr.clone())).collect(),
        }
    }
}

impl Members {
    pub(crate) fn into_membership(self) -> Result<Membership, String> {
        if self.voters.is_empty() && self.addresses.is_empty() {
            return Ok(Membership::default());
        }
        let nodes: BTreeMap<u64, BasicNode> =
            self.addresses.into_iter().map(|(node, addr)| (node, BasicNode { addr })).collect();
        Membership::new(self.voters, nodes).map_err(|error| error.to_string())
    }
}

/// What a snapshot contains: beside its pieces in the store, and in front of them on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    last: Option<Position>,
    members_at: Option<Position>,
    members: Members,
}

impl From<&SnapshotMeta> for Manifest {
    fn from(meta: &SnapshotMeta) -> Self {
        Self {
            last: position(meta.last_log_id.as_ref()),
            members_at: position(meta.last_membership.log_id().as_ref()),
            members: meta.last_membership.membership().into(),
        }
    }
}

impl Manifest {
    pub(crate) fn into_meta(self) -> Result<SnapshotMeta, String> {
        let membership = self.members.into_membership()?;
        let last_membership = StoredMembership::new(log_id(self.members_at), membership);
        Ok(SnapshotMeta { last_log_id: log_id(self.last), last_membership })
    }
}

/// An append request without its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AppendHead {
    pub(crate) vote: Ballot,
    pub(crate) previous: Option<Position>,
    pub(crate) committed: Option<Position>,
}

impl AppendHead {
    /// Where the first entry belongs.
    pub(crate) fn first_index(&self) -> u64 {
        self.previous.map_or(0, |previous| previous.index.saturating_add(1))
    }

    pub(crate) fn previous_id(&self) -> Option<LogId> {
        log_id(self.previous)
    }

    pub(crate) fn committed_id(&self) -> Option<LogId> {
        log_id(self.committed)
    }
}

/// The answer to an append request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AppendAnswer {
    /// Everything up to here is durable and agrees.
    Matching(Option<Position>),
    /// The entry in front of the request's is another one.
    Conflict(Position),
    /// Somebody else leads.
    HigherVote(Ballot),
}

impl From<&AppendResult> for AppendAnswer {
    fn from(result: &AppendResult) -> Self {
        match result {
            Ok(matching) => Self::Matching(position(matching.as_ref())),
            Err(StreamAppendError::Conflict(id)) => Self::Conflict(id.into()),
            Err(StreamAppendError::HigherVote(vote)) => Self::HigherVote(vote.into()),
        }
    }
}

impl From<AppendAnswer> for AppendResult {
    fn from(answer: AppendAnswer) -> Self {
        match answer {
            AppendAnswer::Matching(matching) => Ok(log_id(matching)),
            AppendAnswer::Conflict(position) => Err(StreamAppendError::Conflict(position.into())),
            AppendAnswer::HigherVote(ballot) => Err(StreamAppendError::HigherVote(ballot.into())),
        }
    }
}

/// A request for a vote, or for a promise of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VoteCall {
    vote: Ballot,
    last: Option<Position>,
    transfer: bool,
}

impl From<&VoteRequest<Types>> for VoteCall {
    fn from(request: &VoteRequest<Types>) -> Self {
        Self {
            vote: (&request.vote).into(),
            last: position(request.last_log_id.as_ref()),
            transfer: request.leadership_transfer,
        }
    }
}

impl From<VoteCall> for VoteRequest<Types> {
    fn from(call: VoteCall) -> Self {
        let mut request = Self::new(call.vote.into(), log_id(call.last));
        request.leadership_transfer = call.transfer;
        request
    }
}

/// The answer to a [`VoteCall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VoteAnswer {
    vote: Ballot,
    granted: bool,
    last: Option<Position>,
}

impl From<&VoteResponse<Types>> for VoteAnswer {
    fn from(response: &VoteResponse<Types>) -> Self {
        Self {
            vote: (&response.vote).into(),
            granted: response.vote_granted,
            last: position(response.last_log_id.as_ref()),
        }
    }
}

impl From<VoteAnswer> for VoteResponse<Types> {
    fn from(answer: VoteAnswer) -> Self {
        Self::new(Vote::from(answer.vote), log_id(answer.last), answer.granted)
    }
}

/// A leader asks another node to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransferCall {
    from: Ballot,
    to: u64,
    last: Option<Position>,
}

impl From<&TransferLeaderRequest<Types>> for TransferCall {
    fn from(request: &TransferLeaderRequest<Types>) -> Self {
        Self { from: request.from_leader().into(), to: *request.to_node_id(), last: position(request.last_log_id()) }
    }
}

impl From<TransferCall> for TransferLeaderRequest<Types> {
    fn from(call: TransferCall) -> Self {
        Self::new(call.from.into(), call.to, log_id(call.last))
    }
}

/// The answer to a [`TransferCall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TransferAnswer {
    Done,
    VoteChanged { expected: Ballot, actual: Ballot },
    NotFlushed { expected: Option<Position>, actual: Option<Position> },
}

impl From<&Result<(), TransferLeaderError<Types>>> for TransferAnswer {
    fn from(result: &Result<(), TransferLeaderError<Types>>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(TransferLeaderError::VoteChanged { expected, actual }) => {
                Self::VoteChanged { expected: expected.into(), actual: actual.into() }
            }
            Err(TransferLeaderError::LogNotFlushed { expected, actual }) => {
                Self::NotFlushed { expected: position(expected.as_ref()), actual: position(actual.as_ref()) }
            }
        }
    }
}

impl From<TransferAnswer> for Result<(), TransferLeaderError<Types>> {
    fn from(answer: TransferAnswer) -> Self {
        match answer {
            TransferAnswer::Done => Ok(()),
            TransferAnswer::VoteChanged { expected, actual } => {
                Err(TransferLeaderError::VoteChanged { expected: expected.into(), actual: actual.into() })
            }
            TransferAnswer::NotFlushed { expected, actual } => {
                Err(TransferLeaderError::LogNotFlushed { expected: log_id(expected), actual: log_id(actual) })
            }
        }
    }
}

/// In front of a snapshot's pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotHead {
    pub(crate) vote: Ballot,
    pub(crate) manifest: Manifest,
}

/// Encodes an optional position, as the committed and purged records hold it.
pub(crate) fn encode_position(id: Option<&LogId>) -> Vec<u8> {
    codec::encode(&position(id))
}

/// Reads what [`encode_position`] wrote.
pub(crate) fn decode_position(bytes: &[u8]) -> Result<Option<LogId>, codec::Error> {
    Ok(log_id(codec::decode(bytes)?))
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
