//! The committer's state, what goes in (`commit`) and what comes out (`next_message`).
//!
//! Invariants:
//! * `pending` holds the clocks from the first not ticked everywhere up to `next`, without a hole;
//! * a tick of a clock is sent only once no part of it, nor of a clock before it, is unacknowledged in any shard (P3);
//! * a clock that is given up has sent no tick anywhere (P4), so that all shards apply a clock or none does (G2);
//! * while aborts are open nothing new of their clocks exists here, so nothing of a new attempt can go out.

use super::counters::Counters;
use super::event::End;
use super::giving_up::Abort;
use super::lane::{Draft, Lane};
use super::pending::Pending;
use super::settings::{SessionStart, Settings};
use bytes::Bytes;
use petuum_types::limits::PART_BYTES_MAX;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::{Clock, Error, ErrorKind, ShardId};
use std::collections::{BTreeMap, VecDeque};

/// A session's commits: which message goes to which shard next, and what the answers mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Committer {
    pub(super) start: SessionStart,
    pub(super) settings: Settings,
    pub(super) lanes: BTreeMap<ShardId, Lane>,
    pub(super) pending: VecDeque<Pending>,
    /// The clock to commit next.
    pub(super) next: Clock,
    pub(super) abort: Option<Abort>,
    pub(super) end: Option<End>,
    pub(super) counters: Counters,
}

impl Committer {
    /// A session from its registration on: at clock `start.start` in every shard, nothing sent. A process that restarts
    /// makes a new one under its new incarnation; what the old one had queued is either ticked everywhere by the
    /// takeover (P5) or gone.
    ///
    /// # Panics
    /// Without a shard: a map has at least one.
    #[must_use]
    pub fn new(start: SessionStart, settings: Settings) -> Self {
        assert!(!start.shards.is_empty(), "a map has at least one shard");
        let lanes = start.shards.iter().map(|shard| (*shard, Lane::new(start.start))).collect();
        let next = start.start;
        let counters = Counters::default();
        Self { start, settings, lanes, pending: VecDeque::new(), next, abort: None, end: None, counters }
    }

    /// P6: whether a clock may be queued now. False while min(s, window_clocks) + 1 clocks or `unacked_bytes` wait
    /// unacknowledged, while a clock is being aborted, and for ever once the session has ended.
    #[must_use]
    pub fn room(&self) -> bool {
        let unacked = self.unacked_clocks();
        self.end.is_none()
            && self.abort.is_none()
            && unacked < self.settings.window()
            && (unacked == 0 || self.unacked_bytes() < self.settings.unacked_bytes)
    }

    /// Queues a clock's parts, as [`crate::cut`] made them; none at all for an empty clock, which ticks all the same.
    /// Once queued it stays, unchanged, until it is ticked everywhere or given up.
    ///
    /// # Errors
    /// Nothing is queued on: the session's end ([`ErrorKind::Replaced`], [`ErrorKind::Evicted`],
    /// [`ErrorKind::OldGeneration`], [`ErrorKind::Internal`]); another clock than the next or an open abort
    /// ([`ErrorKind::FailedPrecondition`]); no room ([`ErrorKind::ResourceExhausted`], retryable); a clock that can
    /// never fit, or a part for no shard of the map ([`ErrorKind::InvalidArgument`], final; it names the limit).
    pub fn commit(&mut self, clock: Clock, parts: BTreeMap<ShardId, Vec<Bytes>>) -> Result<(), Error> {
        self.check_alive()?;
        if clock != self.next {
            let message = format!("committing {clock}; expected {}, the next", self.next);
            return Err(Error::new(ErrorKind::FailedPrecondition, message));
        }
        if let Some(abort) = &self.abort {
            return Err(abort.in_progress());
        }
        self.check_fits(clock, &parts)?;
        if !self.room() {
            return Err(self.no_room(clock));
        }
        self.pending.push_back(Pending::new(clock, parts));
        self.next = clock.next();
        Ok(())
    }

    fn check_fits(&self, clock: Clock, parts: &BTreeMap<ShardId, Vec<Bytes>>) -> Result<(), Error> {
        let invalid = |message| Err(Error::new(ErrorKind::InvalidArgument, message));
        for (shard, payloads) in parts {
            if !self.lanes.contains_key(shard) {
                return invalid(format!("{clock} has parts for {shard}, which {} does not have", self.start.epoch));
            }
            if let Some(part) = payloads.iter().find(|part| part.len() > PART_BYTES_MAX) {
                return invalid(format!(
                    "{clock} has a part of {} bytes for {shard}; the limit is {PART_BYTES_MAX} bytes per part",
                    part.len()
                ));
            }
            let bytes: usize = payloads.iter().map(Bytes::len).sum();
            if bytes > self.settings.staged_bytes {
                return invalid(format!(
                    "{clock} has {bytes} bytes of updates for {shard}; the limit is {} staged bytes per worker and \
                     shard: end clocks more often, use more shards or more workers",
                    self.settings.staged_bytes
                ));
            }
        }
        Ok(())
    }

    fn no_room(&self, clock: Clock) -> Error {
        let message = format!(
            "no room for {clock}: {} clocks, {} bytes wait unacknowledged; the limits are {} clocks, {} bytes",
            self.unacked_clocks(),
            self.unacked_bytes(),
            self.settings.window(),
            self.settings.unacked_bytes
        );
        Error::new(ErrorKind::ResourceExhausted, message)
    }

    /// The next message for a shard, to be sent now behind all that were returned before; `None` if there is none, the
    /// lane is paused or full. Messages to be sent again come first, in order and with the same bytes. To be asked again
    /// after every outcome, of any shard: an acknowledgement there can allow a tick here.
    pub fn next_message(&mut self, shard: ShardId) -> Option<WorkerMessage> {
        if self.end.is_some() {
            return None;
        }
        let lane = self.lanes.get_mut(&shard).filter(|lane| lane.paused.is_none())?;
        if let Some(message) = lane.resend() {
            self.counters.retries += 1;
            return Some(message);
        }
        let draft = self.draft(shard)?;
        let lane = self.lanes.get_mut(&shard).expect("looked up above");
        let bytes = petuum_types::message::HEADER_BYTES + draft.payload.len();
        if !lane.has_room(bytes, &self.settings) {
            return None;
        }
        lane.advance(&draft);
        self.counters.sent(draft.kind, draft.payload.len());
        Some(lane.send(draft, &self.start))
    }

    /// What the shard gets next for the first time. Aborts before all else; a tick that is allowed before the stages of
    /// later clocks; a tick that is not allowed yet holds up nothing.
    fn draft(&self, shard: ShardId) -> Option<Draft> {
        let lane = &self.lanes[&shard];
        if let Some(&clock) = lane.aborts.front() {
            return Some(Draft { kind: Kind::Abort, clock, count: 0, payload: Bytes::new() });
        }
        let clock = lane.tick_next;
        if let Some(pending) = self.pending_at(clock).filter(|p| p.may_tick() && self.all_staged_before(clock)) {
            return Some(Draft { kind: Kind::Tick, clock, count: pending.count(shard), payload: Bytes::new() });
        }
        self.draft_stage(shard, lane)
    }

    fn draft_stage(&self, shard: ShardId, lane: &Lane) -> Option<Draft> {
        let first = self.pending.front()?.clock;
        // A lane may stand at a clock that is done meanwhile; all it had of it was sent.
        let (mut clock, mut number) = lane.stage_next.max((first, 0));
        loop {
            let pending = self.pending.get(self.pending_index(clock)?)?;
            if let Some(part) = pending.part(shard, number) {
                if !lane.has_staging_room(clock, part.len(), &self.settings) {
                    return None;
                }
                // P3: the whole clock lies here, and this shard's ticks have come so far: one entry does both.
                let at_once = pending.is_one_part() && lane.tick_next == clock && self.all_staged_before(clock);
                let kind = if at_once { Kind::StageTick } else { Kind::Stage };
                return Some(Draft { kind, clock, count: number, payload: part.clone() });
            }
            (clock, number) = (clock.next(), 0);
        }
    }

    /// Whether no part of an earlier clock can be refused any more. That this lane has been sent their ticks is not
    /// enough: a stage that ticks can still be refused, and a tick behind it would come out of order.
    fn all_staged_before(&self, clock: Clock) -> bool {
        self.pending.iter().take_while(|pending| pending.clock < clock).all(Pending::may_tick)
    }

    fn pending_index(&self, clock: Clock) -> Option<usize> {
        let first = self.pending.front()?.clock;
        usize::try_from(clock.0.checked_sub(first.0)?).ok()
    }

    pub(super) fn pending_at(&self, clock: Clock) -> Option<&Pending> {
        self.pending.get(self.pending_index(clock)?).filter(|pending| pending.clock == clock)
    }

    pub(super) fn pending_at_mut(&mut self, clock: Clock) -> Option<&mut Pending> {
        let index = self.pending_index(clock)?;
        self.pending.get_mut(index).filter(|pending| pending.clock == clock)
    }

    pub(super) fn check_alive(&self) -> Result<(), Error> {
        self.end.as_ref().map_or(Ok(()), |end| Err(end.error(self.start.worker)))
    }
}

impl Lane {
    fn advance(&mut self, draft: &Draft) {
        match draft.kind {
            Kind::Abort => {
                self.aborts.pop_front();
            }
            Kind::Tick => self.tick_next = draft.clock.next(),
            Kind::Stage => self.stage_next = (draft.clock, draft.count + 1),
            Kind::StageTick => {
                self.stage_next = (draft.clock, draft.count + 1);
                self.tick_next = draft.clock.next();
            }
        }
    }
}
