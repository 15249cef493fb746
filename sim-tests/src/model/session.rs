//! A worker's process as the model keeps it: the real committer, driven as a client drives it.
//!
//! What a client may send it sends at once. To send later is to be delayed by the network, which the model does to every
//! packet in every way; the orders that remain are those of a client that calls `clock()` later, which are checked too.
//! For the same reason a lane that was told to wait goes on at once, and a loss is noticed at once.

use super::bounds::Mutant;
use super::job::{JobPlan, SHARDS};
use super::packet::{Packet, ProcessId};
use petuum_session::{Committer, Event, SessionStart, Settings};
use petuum_types::message::Kind;
use petuum_types::outcome::{Fence, Outcome};
use petuum_types::{Clock, Generation, Incarnation, ShardId, Staleness};

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    pub(super) id: ProcessId,
    pub(super) incarnation: Incarnation,
    committer: Committer,
}

/// Why a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// Another one is the worker now.
    Replaced,
    /// The worker was removed.
    Removed,
}

/// What came of telling a process something.
#[derive(Debug, Default)]
pub(super) struct Reaction {
    pub(super) sent: Vec<Packet>,
    /// Clocks acknowledged by this, a bit each.
    pub(super) acknowledged: u8,
    pub(super) end: Option<End>,
    /// What no shard may answer.
    pub(super) failure: Option<String>,
}

impl Session {
    pub(super) fn new(id: ProcessId, incarnation: Incarnation, start: Clock, plan: &JobPlan, staleness: u32) -> Self {
        let start = SessionStart {
            job: super::job::JOB,
            generation: Generation(1),
            worker: super::job::worker_id(id.worker),
            incarnation,
            epoch: plan.map.epoch,
            shards: plan.map.shards.keys().copied().collect(),
            start,
        };
        Self { id, incarnation, committer: Committer::new(start, Settings::new(Staleness(staleness))) }
    }

    /// The clock it computes now, or all of them.
    pub(super) fn clock(&self) -> u8 {
        u8::try_from(self.committer.next_clock().0).expect("a model has few clocks")
    }

    /// Whether a further clock may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.committer.room()
    }

    /// Whether all that was queued is in every shard.
    pub(super) fn is_flushed(&self) -> bool {
        self.committer.flushed()
    }

    /// How many clocks are acknowledged.
    pub(super) fn acknowledged(&self) -> Clock {
        self.committer.acked()
    }

    /// The process ends its clock.
    pub(super) fn commit(&mut self, plan: &JobPlan, mutant: Option<Mutant>) -> Reaction {
        let clock = self.clock();
        let queued = self.committer.commit(Clock(u64::from(clock)), plan.parts(self.id, clock));
        queued.unwrap_or_else(|e| panic!("a committer with room takes the next clock: {e}"));
        self.pump(Vec::new(), mutant)
    }

    /// A shard has answered.
    pub(super) fn answered(
        &mut self,
        shard: u8,
        reply: (petuum_types::Sequence, &Outcome),
        m: Option<Mutant>,
    ) -> Reaction {
        let events = self.committer.on_outcome(shard_id(shard), reply.0, reply.1);
        self.pump(events, m)
    }

    /// The connection to a shard broke.
    pub(super) fn lost(&mut self, shard: u8, mutant: Option<Mutant>) -> Reaction {
        self.committer.on_lost(shard_id(shard));
        self.pump(Vec::new(), mutant)
    }

    /// Takes events in and sends all that may be sent.
    fn pump(&mut self, mut events: Vec<Event>, mutant: Option<Mutant>) -> Reaction {
        let mut reaction = Reaction::default();
        loop {
            for event in std::mem::take(&mut events) {
                self.note(event, &mut reaction);
            }
            let before = reaction.sent.len();
            for shard in 0..u8::try_from(SHARDS).expect("few shards") {
                while let Some(message) = self.committer.next_message(shard_id(shard)) {
                    if mutant == Some(Mutant::TicksBeforeAllStaged) && shard == 1 && message.kind == Kind::Stage {
                        events.extend(self.committer.on_outcome(shard_id(1), message.sequence, &Outcome::Accepted));
                    }
                    reaction.sent.push(Packet::Message { from: self.id, shard, message });
                }
            }
            if events.is_empty() && reaction.sent.len() == before {
                return reaction;
            }
        }
    }

    fn note(&mut self, event: Event, reaction: &mut Reaction) {
        match event {
            Event::Acknowledged { clock } => reaction.acknowledged |= 1 << clock.0,
            Event::TickedEverywhere { .. } => {}
            Event::Backoff { shard, .. } => self.committer.resume(shard),
            Event::Fenced(Fence::Replaced { .. }) => reaction.end = Some(End::Replaced),
            Event::Fenced(Fence::Removed { .. }) => reaction.end = Some(End::Removed),
            Event::Fenced(Fence::OldGeneration { .. }) | Event::StaleMap { .. } => {
                reaction.failure = Some(format!("{event:?} in a job with one generation and map"));
            }
            Event::Aborted { .. } => reaction.failure = Some(format!("{event:?}, though no part is wrong")),
            Event::Failed { message } => reaction.failure = Some(message),
        }
    }
}

pub(super) fn shard_id(shard: u8) -> ShardId {
    ShardId(u32::from(shard))
}
