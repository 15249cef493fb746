//! What a committer tells its caller, and how its ends read as errors.

use petuum_types::outcome::{Fence, Refusal, Retry};
use petuum_types::{Clock, Error, ErrorKind, MapEpoch, ShardId, WorkerId};

/// Something that an answer brought about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The clock's first tick is acknowledged: it is committed, whatever fails from here on (G1, G2).
    Acknowledged {
        /// Which.
        clock: Clock,
    },
    /// Every shard has acknowledged the clock's tick; `flush()` waits for this.
    TickedEverywhere {
        /// Which.
        clock: Clock,
    },
    /// A part was refused for good and every abort is acknowledged (P4): this clock and every later one that was queued
    /// have changed nothing anywhere. The next clock to commit is `clock` again.
    Aborted {
        /// The clock of the refused part, the first given up.
        clock: Clock,
        /// One past the last given up.
        end: Clock,
        /// Why.
        refusal: Refusal,
    },
    /// The shard cannot take the message now. The lane sends nothing until [`super::Committer::resume`] or, on a new
    /// connection, [`super::Committer::on_lost`]; the caller chooses when.
    Backoff {
        /// Which.
        shard: ShardId,
        /// Why; [`Retry::NotLeader`] may say where to go.
        reason: Retry,
    },
    /// The shard is at a later map: the clock must be cut again (P25). Maps are fixed so far, so a caller treats this as
    /// an error; the lane waits as after [`Event::Backoff`].
    StaleMap {
        /// Which shard.
        shard: ShardId,
        /// Its epoch.
        ours: MapEpoch,
    },
    /// This incarnation never speaks again; every later call answers the same as an error.
    Fenced(Fence),
    /// A shard answered what no shard may: a tick or an abort was refused. The committer has stopped, as with a fence.
    Failed {
        /// Which shard, what it answered and to what; [`super::Committer::error`] has it as an error.
        message: String,
    },
}

/// Why a committer sends nothing any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// Fenced.
    Fenced(Fence),
    /// A broken protocol.
    Failed(String),
}

impl End {
    /// What the program of `worker` is told.
    pub(super) fn error(&self, worker: WorkerId) -> Error {
        match self {
            Self::Failed(message) => Error::new(ErrorKind::Internal, message.clone()),
            Self::Fenced(fence) => {
                let (kind, what) = match fence {
                    Fence::Replaced { .. } => (ErrorKind::Replaced, "this process must end"),
                    Fence::Removed { .. } => (
                        ErrorKind::Evicted,
                        "by an operator, or for a lease without a heartbeat: its clocks from there on are lost; register \
                         anew with `rejoin`, or end",
                    ),
                    Fence::OldGeneration { .. } => (ErrorKind::OldGeneration, "register anew"),
                };
                Error::new(kind, format!("{worker}: {fence}; {what}"))
            }
        }
    }
}
