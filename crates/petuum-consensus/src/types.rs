//! openraft's type parameters, and short names for its types with them filled in.

use crate::runtime::Rt;
use bytes::Bytes;
use openraft::alias;
use openraft::impls::leader_id_std;
use serde::{Deserialize, Serialize};
use std::fmt;

openraft::declare_raft_types!(
    /// One leader per term, so that a term alone names a leader.
    pub(crate) Types:
        D = Payload,
        R = Answer,
        NodeId = u64,
        Node = openraft::BasicNode,
        LeaderId = leader_id_std::LeaderId<u64, u64>,
        AsyncRuntime = Rt,
);

/// An entry's bytes as the caller gave them. It may remember the stored form they were cut from, so that a follower
/// hands its store the bytes that came over the wire and encodes nothing.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) bytes: Bytes,
    #[serde(skip)]
    pub(crate) stored: Option<Bytes>,
}

impl Payload {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, stored: None }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What the machine answered to an entry; empty for entries that no machine sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer(pub(crate) Bytes);

impl From<u64> for Payload {
    fn from(number: u64) -> Self {
        Self::new(Bytes::copy_from_slice(&number.to_be_bytes()))
    }
}

pub(crate) type CommittedLeader = alias::CommittedLeaderIdOf<Types>;
pub(crate) type LogId = alias::LogIdOf<Types>;
pub(crate) type Vote = alias::VoteOf<Types>;
pub(crate) type AnyPayload = alias::PayloadOf<Types>;
pub(crate) type Entry = alias::EntryOf<Types>;
pub(crate) type Membership = openraft::Membership<u64, openraft::BasicNode>;
pub(crate) type StoredMembership = alias::StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = alias::SnapshotMetaOf<Types>;
pub(crate) type AppendRequest = openraft::raft::AppendEntriesRequest<Types>;
pub(crate) type AppendResult = openraft::raft::StreamAppendResult<Types>;
