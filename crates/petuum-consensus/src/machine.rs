//! What a group replicates. This crate knows nothing else of it.

use crate::error::MachineError;
use bytes::Bytes;
use petuum_types::LogIndex;
use std::sync::Arc;

/// A group's replicated state machine. Pure: the same entries give the same state and answers on every replica (G6).
pub trait Machine: Send + 'static {
    /// Applies a committed entry and answers its proposer. Each index comes once, in order, and either here or to
    /// [`Machine::skip`].
    ///
    /// # Errors
    /// Only if this replica cannot go on (an entry it cannot read): the group then ends here and is rebuilt from what
    /// is stored. A refusal is an answer, not an error.
    fn apply(&mut self, index: LogIndex, entry: Bytes) -> Result<Bytes, MachineError>;

    /// Takes note of an entry that is the group's own: a new leader's first, or a change of members.
    fn skip(&mut self, index: LogIndex);

    /// A view of the state as it is now, unaffected by what is applied later, and cheap to take: applies wait for it.
    fn view(&self) -> Box<dyn SnapshotView>;

    /// Replaces the whole state by a view's pieces.
    ///
    /// # Errors
    /// If a piece could not be read or is not what a view gave. The state must not be used then.
    fn install(&mut self, pieces: &mut dyn Iterator<Item = Result<Bytes, MachineError>>) -> Result<(), MachineError>;
}

/// A state at one log index, taken apart into pieces.
pub trait SnapshotView: Send {
    /// The next piece, of about `max_bytes` and not more than twice that; `None` after the last. Other tasks run
    /// between two pieces.
    fn next_piece(&mut self, max_bytes: usize) -> Option<Bytes>;
}

/// Makes a fresh, empty machine: at the start, and whenever a group is rebuilt after a failure.
pub type MachineFactory = Arc<dyn Fn() -> Box<dyn Machine> + Send + Sync>;
