//! What answers mean (P4).
//!
//! Every answer, however late, doubled or out of order, is taken; an answer to a message that has its final answer
//! already changes nothing. No answer makes this code panic: shards and the network are not to be trusted so far.

use super::committer::Committer;
use super::event::{End, Event};
use super::pending::Pending;
use petuum_types::message::Kind;
use petuum_types::outcome::{Fence, Outcome, Refusal, Retry};
use petuum_types::{Clock, Sequence, ShardId};

/// The part of a message that its answer is judged by.
struct Answered {
    shard: ShardId,
    sequence: Sequence,
    kind: Kind,
    clock: Clock,
    void: bool,
}

impl Committer {
    /// A shard answered the message of this sequence.
    pub fn on_outcome(&mut self, shard: ShardId, sequence: Sequence, outcome: &Outcome) -> Vec<Event> {
        if self.end.is_some() {
            return Vec::new();
        }
        if let Outcome::Fenced(fence) = outcome {
            return self.fenced(fence);
        }
        let Some(flight) = self.lanes.get_mut(&shard).and_then(|lane| lane.open_flight(sequence)) else {
            self.counters.repeats += 1;
            return Vec::new();
        };
        let (kind, clock, void) = (flight.message.kind, flight.message.clock, flight.void);
        let answered = Answered { shard, sequence, kind, clock, void };
        match outcome {
            Outcome::Accepted => self.accepted(&answered, false),
            Outcome::Ticked => self.accepted(&answered, true),
            Outcome::Refused(refusal) => self.refused(&answered, refusal),
            Outcome::Retry(retry) => self.retry(&answered, retry),
            Outcome::Fenced(_) => unreachable!("handled above"),
        }
    }

    /// The connection to a shard's leader is gone, or an answer is overdue: everything unacknowledged of the lane is
    /// sent again, the same bytes under the same sequences, in order. Answers of the old connection that still arrive
    /// do no harm.
    pub fn on_lost(&mut self, shard: ShardId) {
        if let Some(lane) = self.lanes.get_mut(&shard) {
            lane.lost();
        }
    }

    /// The pause after [`Event::Backoff`] is over; the connection is the same.
    pub fn resume(&mut self, shard: ShardId) {
        if let Some(lane) = self.lanes.get_mut(&shard) {
            lane.paused = None;
        }
    }

    fn fenced(&mut self, fence: &Fence) -> Vec<Event> {
        self.end = Some(End::Fenced(fence.clone()));
        vec![Event::Fenced(fence.clone())]
    }

    fn failed(&mut self, message: String) -> Vec<Event> {
        self.end = Some(End::Failed(message.clone()));
        vec![Event::Failed { message }]
    }

    fn accepted(&mut self, answered: &Answered, ticked: bool) -> Vec<Event> {
        let Answered { shard, sequence, kind, clock, void } = *answered;
        if ticked && kind == Kind::Abort {
            // A clock is given up only while a part of it is unacknowledged, so that nobody has sent its tick.
            return self.failed(format!("{shard} has ticked {clock}, of which a part was refused: a defect of Petuum"));
        }
        self.lane(shard).answered(sequence);
        match kind {
            Kind::Abort => {
                self.lane(shard).staged.remove(&clock);
                self.aborted()
            }
            Kind::Tick => self.ticked(shard, clock),
            // Also if it is answered "ticked": a repeat that is heard of after the next attempt at the clock was ticked.
            Kind::Stage | Kind::StageTick if void => Vec::new(),
            Kind::Stage | Kind::StageTick => {
                if let Some(pending) = self.pending_at_mut(clock) {
                    if ticked { pending.staged_everywhere() } else { pending.staged() }
                }
                if kind == Kind::StageTick { self.ticked(shard, clock) } else { Vec::new() }
            }
        }
    }

    /// A tick is acknowledged: the clock is committed (P3), and so is every one before it, since a shard ticks in order.
    fn ticked(&mut self, shard: ShardId, clock: Clock) -> Vec<Event> {
        let before = self.acked();
        let lane = self.lane(shard);
        lane.ticked = lane.ticked.max(clock.next());
        lane.staged = lane.staged.split_off(&lane.ticked);
        let mut events: Vec<Event> =
            (before.0..self.acked().0).map(|clock| Event::Acknowledged { clock: Clock(clock) }).collect();
        let everywhere = self.ticked_everywhere();
        while let Some(pending) = self.pending.pop_front_if(|pending| pending.clock < everywhere) {
            events.push(Event::TickedEverywhere { clock: pending.clock });
        }
        events
    }

    fn refused(&mut self, answered: &Answered, refusal: &Refusal) -> Vec<Event> {
        let Answered { shard, sequence, kind, clock, void } = *answered;
        let tick_sent = kind == Kind::Stage && !void && self.pending_at(clock).is_none_or(Pending::may_tick);
        if matches!(kind, Kind::Tick | Kind::Abort) || tick_sent {
            return self.failed(format!(
                "{shard} refused the {kind:?} of {clock} ({sequence}): {refusal}; expected it to be taken: a defect of \
                 Petuum"
            ));
        }
        self.lane(shard).answered(sequence);
        if !void {
            self.give_up(clock, refusal.clone());
        }
        Vec::new()
    }

    fn retry(&mut self, answered: &Answered, retry: &Retry) -> Vec<Event> {
        let Answered { shard, sequence, .. } = *answered;
        self.counters.retry_answers += 1;
        let lane = self.lane(shard);
        let newest = lane.flight(sequence).is_some_and(super::lane::Flight::transmission_answered);
        if let Retry::Gap { expected } = *retry {
            let first = lane.first_open();
            if !newest {
                return Vec::new();
            }
            // The shard lacks a message before this one. What lies between the first open and the expected one has been
            // applied, but its answer is not known: a repeat is answered again (P4). So all open ones go again.
            if first <= expected && expected < sequence {
                lane.again_from(first);
                return Vec::new();
            }
        }
        lane.again_from(sequence);
        if lane.paused.replace(retry.clone()).is_some() {
            return Vec::new();
        }
        match *retry {
            Retry::MapBehind { ours } => vec![Event::StaleMap { shard, ours }],
            _ => vec![Event::Backoff { shard, reason: retry.clone() }],
        }
    }

    fn lane(&mut self, shard: ShardId) -> &mut super::lane::Lane {
        self.lanes.get_mut(&shard).expect("the answer was found to be of one of our lanes")
    }
}
