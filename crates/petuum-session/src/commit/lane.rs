//! One shard's lane: which messages have a sequence and no final answer yet, and what comes next.
//!
//! Not here: whether a clock may tick; that takes all lanes ([`super::committer`]).
//!
//! Invariants: sequences are given when a message is first sent, so that the order of sequences is the order of sending;
//! a message once sent never changes a byte (P4: two contents never share a sequence); ticks go in clock order; no part
//! of a clock is sent after its tick.

use super::settings::{SessionStart, Settings};
use bytes::Bytes;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::Retry;
use petuum_types::{Clock, Sequence};
use std::collections::{BTreeMap, VecDeque};

/// Where a sent message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stand {
    /// On its way; an answer or `on_lost` must come.
    Sent,
    /// To be sent again.
    Again,
    /// Answered for good; kept until all before it are.
    Answered,
}

/// A message that has its sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) message: WorkerMessage,
    pub(super) stand: Stand,
    /// Transmissions on this connection that were not answered: tells the answer to the newest from older ones.
    unanswered: u32,
    /// The clock was given up after this was sent: its answer changes nothing any more.
    pub(super) void: bool,
}

/// What a lane may send next for the first time.
pub(super) struct Draft {
    pub(super) kind: Kind,
    pub(super) clock: Clock,
    pub(super) count: u32,
    pub(super) payload: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    flights: VecDeque<Flight>,
    next_sequence: Sequence,
    /// The next part to send for the first time.
    pub(super) stage_next: (Clock, u32),
    /// The next clock whose tick has not been sent.
    pub(super) tick_next: Clock,
    /// Clocks to abort, not sent yet.
    pub(super) aborts: VecDeque<Clock>,
    /// Clocks whose ticks are acknowledged.
    pub(super) ticked: Clock,
    /// Nothing is sent until the caller resumes.
    pub(super) paused: Option<Retry>,
    /// Bytes sent to be staged, by clock, until its tick or abort is acknowledged: what the shard may hold (P2).
    pub(super) staged: BTreeMap<Clock, usize>,
}

impl Lane {
    pub(super) const fn new(start: Clock) -> Self {
        Self {
            flights: VecDeque::new(),
            next_sequence: Sequence(0),
            stage_next: (start, 0),
            tick_next: start,
            aborts: VecDeque::new(),
            ticked: start,
            paused: None,
            staged: BTreeMap::new(),
        }
    }

    /// The first message to be sent again, if any.
    pub(super) fn resend(&mut self) -> Option<WorkerMessage> {
        let flight = self.flights.iter_mut().find(|flight| flight.stand == Stand::Again)?;
        flight.stand = Stand::Sent;
        flight.unanswered = flight.unanswered.saturating_add(1);
        Some(flight.message.clone())
    }

    /// Whether one more message of this size may be on its way (G10).
    pub(super) fn has_room(&self, bytes: usize, settings: &Settings) -> bool {
        let in_flight: usize = self.open().map(|flight| flight.message.encoded_len()).sum();
        self.flights.is_empty()
            || (self.flights.len() < settings.lane_in_flight_messages
                && in_flight.saturating_add(bytes) <= settings.lane_in_flight_bytes)
    }

    /// Whether the shard can keep this part beside what it may hold already. A clock alone always fits: `commit` checks.
    pub(super) fn has_staging_room(&self, clock: Clock, bytes: usize, settings: &Settings) -> bool {
        let held: usize = self.staged.values().sum();
        self.staged.range(..clock).next().is_none() || held.saturating_add(bytes) <= settings.staged_bytes
    }

    /// Sends a message for the first time: it gets its sequence and the bytes it will always have.
    pub(super) fn send(&mut self, draft: Draft, from: &SessionStart) -> WorkerMessage {
        let sequence = self.next_sequence;
        let message = WorkerMessage {
            kind: draft.kind,
            job: from.job,
            generation: from.generation,
            worker: from.worker,
            incarnation: from.incarnation,
            sequence,
            epoch: from.epoch,
            clock: draft.clock,
            acked_below: self.flights.front().map_or(sequence, |flight| flight.message.sequence),
            count: draft.count,
            payload: draft.payload,
        };
        self.next_sequence = sequence.next();
        if message.has_part() {
            *self.staged.entry(message.clock).or_default() += message.payload.len();
        }
        self.flights.push_back(Flight { message: message.clone(), stand: Stand::Sent, unanswered: 1, void: false });
        message
    }

    /// The message of a sequence; `None` if it was answered long ago or never sent.
    pub(super) fn flight(&mut self, sequence: Sequence) -> Option<&mut Flight> {
        let first = self.flights.front()?.message.sequence;
        let at = usize::try_from(sequence.0.checked_sub(first.0)?).ok()?;
        self.flights.get_mut(at)
    }

    /// The same, unless it has its final answer.
    pub(super) fn open_flight(&mut self, sequence: Sequence) -> Option<&mut Flight> {
        self.flight(sequence).filter(|flight| flight.stand != Stand::Answered)
    }

    /// A final answer came for a message; those answered are let go as far as nothing before them is open.
    pub(super) fn answered(&mut self, sequence: Sequence) {
        if let Some(flight) = self.flight(sequence) {
            flight.stand = Stand::Answered;
        }
        while self.flights.front().is_some_and(|flight| flight.stand == Stand::Answered) {
            self.flights.pop_front();
        }
    }

    /// Messages without a final answer.
    pub(super) fn open(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter().filter(|flight| flight.stand != Stand::Answered)
    }

    /// The connection is gone: all open messages go again, and no answer of it will come.
    pub(super) fn lost(&mut self) {
        self.paused = None;
        self.again_from(Sequence(0));
        self.flights.iter_mut().for_each(|flight| flight.unanswered = 0);
    }

    /// Everything open from a sequence on goes again.
    pub(super) fn again_from(&mut self, sequence: Sequence) {
        for flight in &mut self.flights {
            if flight.stand == Stand::Sent && flight.message.sequence >= sequence {
                flight.stand = Stand::Again;
            }
        }
    }

    /// The first sequence without a final answer.
    pub(super) fn first_open(&self) -> Sequence {
        self.open().next().map_or(self.next_sequence, |flight| flight.message.sequence)
    }

    /// From `clock` on all is given up: answers to its messages mean nothing, and parts and ticks start there again.
    pub(super) fn give_up(&mut self, clock: Clock) {
        self.flights.iter_mut().filter(|f| f.message.clock >= clock).for_each(|f| f.void = true);
        self.stage_next = self.stage_next.min((clock, 0));
        self.tick_next = self.tick_next.min(clock);
    }
}

impl Flight {
    /// One transmission was answered. Whether it was the newest, so that nothing else will be heard of this message
    /// unless it is sent again.
    pub(super) fn transmission_answered(&mut self) -> bool {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.unanswered == 0 && self.stand == Stand::Sent
    }
}
