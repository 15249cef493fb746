//! What a group looks like from outside.

use crate::types::Types;
use openraft::{RaftMetrics, ServerState};
use petuum_types::{LogIndex, NodeId};

/// A replica's part in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It leads.
    Leader,
    /// It follows a leader, or waits for one.
    Follower,
    /// It asks for votes.
    Candidate,
    /// It keeps a copy and has no vote; also before the group is initialized.
    Learner,
    /// It does not run: stopped, failed or being rebuilt.
    #[default]
    Down,
}

impl From<ServerState> for Role {
    fn from(state: ServerState) -> Self {
        match state {
            ServerState::Leader => Self::Leader,
            ServerState::Follower => Self::Follower,
            ServerState::Candidate => Self::Candidate,
            ServerState::Learner => Self::Learner,
            ServerState::Shutdown => Self::Down,
        }
    }
}

/// A replica's state at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its part.
    pub role: Role,
    /// Who leads, as far as this replica knows.
    pub leader: Option<NodeId>,
    /// The term: grows with each election, and one term has at most one leader.
    pub term: u64,
    /// The last entry of its log.
    pub last_index: Option<LogIndex>,
    /// The last entry its machine applied.
    pub applied: Option<LogIndex>,
    /// The last entry its newest snapshot contains.
    pub snapshot_index: Option<LogIndex>,
    /// The last entry that is gone from its log.
    pub purged: Option<LogIndex>,
    /// Why it does not run.
    pub failure: Option<String>,
}

impl GroupStatus {
    /// Whether this replica leads its group.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.role == Role::Leader
    }

    pub(crate) fn of(metrics: &RaftMetrics<Types>) -> Self {
        Self {
            role: metrics.state.into(),
            leader: metrics.current_leader.map(NodeId),
            term: metrics.current_term,
            last_index: metrics.last_log_index.map(LogIndex),
            applied: metrics.last_applied.map(|id| LogIndex(id.index)),
            snapshot_index: metrics.snapshot.map(|id| LogIndex(id.index)),
            purged: metrics.purged.map(|id| LogIndex(id.index)),
            failure: None,
        }
    }
}

/// The part of the status whose changes are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    pub(crate) role: Role,
    pub(crate) leader: Option<u64>,
    pub(crate) term: u64,
}
