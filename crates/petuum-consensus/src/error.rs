//! What can go wrong, by operation.

use petuum_types::{ErrorKind, GroupId, NodeId};
use std::time::Duration;

/// A machine's error. It is fatal to its replica of the group: an apply that fails here fails on no other replica, or
/// on all, and neither may go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MachineError(String);

impl MachineError {
    /// An error with the particulars: which entry or piece, what was expected, what was found.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Why a group could not be started, or a call to one failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Settings that contradict each other.
    #[error("consensus settings: {0}")]
    Settings(String),
    /// The group is started already.
    #[error("{0} is started on this node already")]
    Started(GroupId),
    /// Log, snapshot or machine could not be brought back to a common state.
    #[error("{group} could not be recovered: {reason}")]
    Recovery {
        /// The group.
        group: GroupId,
        /// What failed.
        reason: String,
    },
    /// Another node leads; nothing was done.
    #[error("this node does not lead {group}; {}", match leader {
        Some(leader) => format!("{leader} does"),
        None => "nobody is known to".to_owned(),
    })]
    NotLeader {
        /// The group.
        group: GroupId,
        /// Who leads, if known.
        leader: Option<NodeId>,
    },
    /// A majority did not confirm this node's leadership in time.
    #[error("{group}: no majority confirmed that this node leads: {reason}")]
    NoQuorum {
        /// The group.
        group: GroupId,
        /// What openraft said.
        reason: String,
    },
    /// What was asked for did not happen in time. It may still happen.
    #[error("{group}: {what} did not happen within {waited:?}")]
    Timeout {
        /// The group.
        group: GroupId,
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
    },
    /// The call makes no sense in this group.
    #[error("{group}: {reason}")]
    Refused {
        /// The group.
        group: GroupId,
        /// Why.
        reason: String,
    },
    /// The group is stopped, failed or being rebuilt.
    #[error("{group} does not run on this node: {reason}")]
    Stopped {
        /// The group.
        group: GroupId,
        /// Why.
        reason: String,
    },
}

impl Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) | Self::Refused { .. } => ErrorKind::InvalidArgument,
            Self::Started(_) => ErrorKind::AlreadyExists,
            Self::Recovery { .. } => ErrorKind::Storage,
            Self::NotLeader { .. } | Self::NoQuorum { .. } | Self::Stopped { .. } => ErrorKind::Unavailable,
            Self::Timeout { .. } => ErrorKind::DeadlineExceeded,
        }
    }
}

impl From<Error> for petuum_types::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// Why a proposal was not answered by the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Another node leads; the entry is in no log and never will be.
    #[error("this node does not lead the group; {}", match leader {
        Some(leader) => format!("{leader} does"),
        None => "nobody is known to".to_owned(),
    })]
    NotLeader {
        /// Who leads, if known.
        leader: Option<NodeId>,
    },
    /// The entry may or may not take effect, now or later.
    #[error("whether the entry took effect is unknown: {reason}")]
    Unknown {
        /// What happened.
        reason: String,
    },
    /// The group does not run here; the entry is in no log and never will be.
    #[error("the group does not run on this node: {reason}")]
    Stopped {
        /// Why.
        reason: String,
    },
}

impl ProposeError {
    /// Whether the entry may have taken effect all the same.
    #[must_use]
    pub const fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl From<ProposeError> for petuum_types::Error {
    fn from(error: ProposeError) -> Self {
        let plain = Self::new(ErrorKind::Unavailable, error.to_string());
        if error.outcome_unknown() { plain.with_unknown_outcome() } else { plain }
    }
}
