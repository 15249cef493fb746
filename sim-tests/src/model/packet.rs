//! What travels. A packet is delivered whenever the network likes.

use petuum_control::{ControlCommand, Errand, ErrandId};
use petuum_types::Sequence;
use petuum_types::command::ShardAnswer;
use petuum_types::message::WorkerMessage;
use petuum_types::outcome::Outcome;

/// One process of a worker: the first, its successor, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProcessId {
    pub(super) worker: u8,
    pub(super) attempt: u8,
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Packet {
    /// A worker's message to a shard: proposed there, to be applied whenever its group gets to it.
    Message { from: ProcessId, shard: u8, message: WorkerMessage },
    /// The shard's answer.
    Reply { to: ProcessId, shard: u8, sequence: Sequence, outcome: Outcome },
    /// A driver's command to a shard. `term` tells leaders apart.
    Errand { term: u8, errand: Errand },
    /// The shard's answer.
    Answer { term: u8, id: ErrandId, answer: ShardAnswer },
    /// A driver's record on its way into the control group's log.
    Record(ControlCommand),
    /// A registration.
    Register { from: ProcessId, command: ControlCommand },
    /// The end of a lease.
    Evict(ControlCommand),
}

impl Packet {
    /// The errand that this is or answers.
    pub(super) const fn errand(&self) -> Option<(u8, ErrandId)> {
        match self {
            Self::Errand { term, errand } => Some((*term, errand.id)),
            Self::Answer { term, id, .. } => Some((*term, *id)),
            _ => None,
        }
    }
}
