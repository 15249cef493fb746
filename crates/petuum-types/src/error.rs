//! The error that callers of the public API see.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a caller should do about an error. Few kinds; the message has the particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u32)]
pub enum ErrorKind {
    /// The request is wrong; mend it.
    InvalidArgument = 1,
    /// No such job, table, worker or node.
    NotFound = 2,
    /// It exists with another definition.
    AlreadyExists = 3,
    /// Another process registered as this worker; end.
    Replaced = 4,
    /// The worker was removed from its job; re-join explicitly or end.
    Evicted = 5,
    /// The job was restored or rolled back under this worker; register anew.
    OldGeneration = 6,
    /// The deadline passed. What was queued stays queued; whether it took effect is unknown.
    DeadlineExceeded = 7,
    /// No leader, or no connection, for now; try again.
    Unavailable = 8,
    /// A limit; try again later, or ask for less.
    ResourceExhausted = 9,
    /// Client and server speak different versions.
    Incompatible = 10,
    /// The cluster has not been formed; run `petuum ctl init`.
    NotInitialized = 11,
    /// The state does not allow it; look at the message.
    FailedPrecondition = 12,
    /// A disk or a record is damaged, or a write failed.
    Storage = 13,
    /// A defect of Petuum.
    Internal = 14,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::InvalidArgument,
        Self::NotFound,
        Self::AlreadyExists,
        Self::Replaced,
        Self::Evicted,
        Self::OldGeneration,
        Self::DeadlineExceeded,
        Self::Unavailable,
        Self::ResourceExhausted,
        Self::Incompatible,
        Self::NotInitialized,
        Self::FailedPrecondition,
        Self::Storage,
        Self::Internal,
    ];

    /// The kind of a wire number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// An error with what was expected, what came, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    outcome_unknown: bool,
}

impl Error {
    /// An error after which it is certain that nothing was done.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), outcome_unknown: kind == ErrorKind::DeadlineExceeded }
    }

    /// The same, but the request may have been carried out.
    #[must_use]
    pub fn with_unknown_outcome(mut self) -> Self {
        self.outcome_unknown = true;
        self
    }

    /// The same error, said with where it happened.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// What a caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The particulars.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later without anybody mending anything.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::DeadlineExceeded | ErrorKind::Unavailable | ErrorKind::ResourceExhausted)
    }

    /// Whether every replica decides the same from the same state and request.
    #[must_use]
    pub const fn is_deterministic(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::InvalidArgument
                | ErrorKind::NotFound
                | ErrorKind::AlreadyExists
                | ErrorKind::Replaced
                | ErrorKind::Evicted
                | ErrorKind::OldGeneration
                | ErrorKind::FailedPrecondition
        )
    }

    /// Whether the request may have been carried out all the same.
    #[must_use]
    pub const fn outcome_unknown(&self) -> bool {
        self.outcome_unknown
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
