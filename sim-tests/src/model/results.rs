//! What the machines make of what they are given, in numbers ([`super::intern`]).

use super::job::WORKERS;
use super::oracle::Flaw;
use super::session::End;
use petuum_types::Incarnation;
use std::sync::Arc;

/// A number that names nothing.
pub(super) const NOTHING: u32 = u32::MAX;

/// What a shard made of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) shard: u32,
    /// The answer's packet.
    pub(super) answer: u32,
    pub(super) flaw: Option<Flaw>,
    /// It was asked to come again.
    pub(super) early: bool,
    /// It never takes effect any more: its incarnation is fenced.
    pub(super) void: bool,
}

/// What a process made of an answer.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) session: u32,
    pub(super) sent: Arc<[u32]>,
    pub(super) acknowledged: u8,
    pub(super) end: Option<End>,
    pub(super) flaw: Option<Flaw>,
}

/// What the control group made of a call or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    Taken,
    /// Asked to come again.
    Early,
    /// A plain registration of a removed worker.
    Evicted,
    /// What no call of the model may be told.
    Refused,
}

/// What a driver makes of the control group's state.
#[derive(Clone, Debug)]
pub(super) struct Driven {
    pub(super) driver: u32,
    pub(super) errands: Arc<[u32]>,
    pub(super) records: Arc<[u32]>,
}

/// What a process may do at its clock.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    /// It has no further clock, or no room, or has to wait for others.
    Wait,
    /// It reads, computes and commits.
    Go(Step),
}

/// What the model looks at in the control group's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlFacts {
    /// The live incarnation of each worker.
    pub(super) live: [Option<Incarnation>; WORKERS],
    pub(super) removed_at: [Option<u8>; WORKERS],
}
