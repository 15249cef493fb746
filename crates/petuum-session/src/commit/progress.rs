//! What a caller may ask of a committer: how far it is, and whom it waits for.

use super::committer::Committer;
use super::counters::Counters;
use petuum_types::message::Kind;
use petuum_types::outcome::{Refusal, Retry};
use petuum_types::{Clock, Error, ShardId};
use std::fmt;

/// A shard that holds up the session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// Which.
    pub shard: ShardId,
    /// The first clock that waits for it.
    pub clock: Clock,
    /// What is missing.
    pub what: WaitingFor,
    /// What the shard said last, if it asked for patience.
    pub reason: Option<Retry>,
}

/// What a shard has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitingFor {
    /// So many parts, of this and later clocks.
    Parts(usize),
    /// A tick whose parts are all held.
    Tick,
    /// The abort of a clock.
    Abort,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shard, clock, what, reason } = self;
        match what {
            WaitingFor::Parts(parts) => write!(f, "{shard} for {parts} parts from {clock} on")?,
            WaitingFor::Tick => write!(f, "{shard} for the tick of {clock}")?,
            WaitingFor::Abort => write!(f, "{shard} for the abort of {clock}")?,
        }
        reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

impl Committer {
    /// The clock to commit next: how many clocks the worker has queued or finished.
    #[must_use]
    pub const fn next_clock(&self) -> Clock {
        self.next
    }

    /// How many clocks are acknowledged: the first tick of each is (G1, G2).
    #[must_use]
    pub fn acked(&self) -> Clock {
        self.lanes.values().map(|lane| lane.ticked).max().expect("there is a lane")
    }

    /// How many clocks every shard has acknowledged the tick of.
    #[must_use]
    pub fn ticked_everywhere(&self) -> Clock {
        self.lanes.values().map(|lane| lane.ticked).min().expect("there is a lane")
    }

    /// Whether all that was queued is ticked everywhere and no abort is open.
    #[must_use]
    pub fn flushed(&self) -> bool {
        self.pending.is_empty() && self.abort.is_none()
    }

    /// Clocks queued and not acknowledged.
    #[must_use]
    pub fn unacked_clocks(&self) -> u64 {
        self.next.0.saturating_sub(self.acked().0)
    }

    /// Bytes of their parts.
    #[must_use]
    pub fn unacked_bytes(&self) -> usize {
        let acked = self.acked();
        self.pending.iter().filter(|pending| pending.clock >= acked).map(|pending| pending.bytes).sum()
    }

    /// The clocks being given up and why, until [`super::Event::Aborted`].
    #[must_use]
    pub fn aborting(&self) -> Option<(Clock, &Refusal)> {
        self.abort.as_ref().map(|abort| (abort.from, &abort.refusal))
    }

    /// Why the session has ended, if it has.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.check_alive().err()
    }

    /// Figures for reports.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The shards that hold up the session, and with what. A shard whose tick must wait for another shard's part is not
    /// among them: the other one is.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<Waiting> {
        self.lanes.keys().filter_map(|shard| self.waiting_for_shard(*shard)).collect()
    }

    fn waiting_for_shard(&self, shard: ShardId) -> Option<Waiting> {
        let lane = &self.lanes[&shard];
        let waiting = |clock, what| Some(Waiting { shard, clock, what, reason: lane.paused.clone() });
        let abort = lane.open().map(|flight| &flight.message).filter(|m| m.kind == Kind::Abort).map(|m| m.clock);
        if let Some(clock) = abort.chain(lane.aborts.iter().copied()).min() {
            return waiting(clock, WaitingFor::Abort);
        }
        let sent = lane.open().filter(|flight| !flight.void && flight.message.has_part()).map(|f| f.message.clock);
        let unsent = self.pending.iter().filter(|p| !p.may_tick() && p.clock >= lane.stage_next.0).flat_map(|p| {
            let first = if p.clock == lane.stage_next.0 { lane.stage_next.1 } else { 0 };
            (first..p.count(shard)).map(|_| p.clock)
        });
        let parts: Vec<Clock> = sent.chain(unsent).collect();
        if let Some(clock) = parts.iter().min() {
            return waiting(*clock, WaitingFor::Parts(parts.len()));
        }
        self.pending_at(lane.ticked).filter(|p| p.may_tick()).and_then(|p| waiting(p.clock, WaitingFor::Tick))
    }
}
