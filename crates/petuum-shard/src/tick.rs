//! Messages in `apply`: the final word on each (P4), and ticks, by which staged parts become rows (P3).
//!
//! Everything is checked before anything changes, so that a refused message leaves no trace but its refusal.

use crate::member::Member;
use crate::shard::Shard;
use crate::stage;
use crate::table::Touched;
use petuum_chaos::{Mutant, mutated};
use petuum_types::command::WorkerKey;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::{Outcome, Refusal, Retry};
use petuum_types::{Clock, LogIndex};

/// What a message that passed every check does.
enum Effect {
    /// Nothing: the clock has been ticked.
    AlreadyTicked,
    /// What its kind says.
    TakePlace,
}

impl Shard {
    /// Judges one message and carries it out. `entry_bytes` is the size of all payloads that came in its entry.
    pub(crate) fn apply_message(
        &mut self,
        index: LogIndex,
        message: &WorkerMessage,
        entry_bytes: usize,
        touched: &mut Touched,
    ) -> Outcome {
        let admitted = match self.admission(message) {
            Err(_) if mutated(Mutant::DedupByLeaderOnly) => self.speaker(message),
            admitted => admitted,
        };
        let effect = match admitted {
            Err(outcome) => return outcome,
            Ok(member) => self.check_content(member, message),
        };
        let refusals_max = self.settings.refusals_max;
        let key = key_of(message);
        let member = self.member_mut(key);
        if mutated(Mutant::SequenceGapAccepted) {
            member.next = message.sequence;
        }
        let forgotten = mutated(Mutant::RefusalForgottenByNext);
        member.forget_refusals(if forgotten { message.sequence } else { message.acked_below });
        match effect {
            Err(refusal) => return refuse(member, refusal, refusals_max),
            Ok(Effect::AlreadyTicked) => {
                member.consume();
                return Outcome::Ticked;
            }
            Ok(Effect::TakePlace) => member.consume(),
        }
        match message.kind {
            Kind::Stage => {
                let payload = stage::kept(&message.payload, entry_bytes);
                member.staged.insert(message.clock, message.epoch, message.count, payload);
                if mutated(Mutant::VisibleBeforeTick) {
                    self.tables.apply_part(index, &message.payload, touched);
                }
            }
            Kind::Tick => self.tick(index, key, touched),
            Kind::StageTick => {
                member.staged.insert(message.clock, message.epoch, 0, message.payload.clone());
                self.tick(index, key, touched);
            }
            Kind::Abort => drop(member.staged.take(message.clock)),
        }
        Outcome::Accepted
    }

    fn check_content(&self, member: &Member, message: &WorkerMessage) -> Result<Effect, Refusal> {
        let (clock, expected) = (message.clock, member.clock);
        let out_of_order = Err(Refusal::ClockOrder { expected, got: clock });
        if clock < expected {
            // Only this incarnation's own ticks may be confirmed to it; and a clock that was ticked cannot be given up.
            let own = clock >= member.start && message.kind != Kind::Abort;
            return if own { Ok(Effect::AlreadyTicked) } else { out_of_order };
        }
        if matches!(message.kind, Kind::Tick | Kind::StageTick) {
            if clock > expected {
                return out_of_order;
            }
            check_parts(member, message)?;
        }
        match message.kind {
            Kind::Stage => self.check_stage(member, message)?,
            Kind::StageTick => self.check_part(message.job, &message.payload)?,
            Kind::Tick | Kind::Abort => {}
        }
        Ok(Effect::TakePlace)
    }

    /// Applies what is staged of the member's clock and advances it, in one step (G3).
    fn tick(&mut self, index: LogIndex, key: WorkerKey, touched: &mut Touched) {
        let job = self.jobs.get_mut(&key.job).expect("the job was just looked up");
        let member = job.members.get_mut(&key.worker).expect("the member was just looked up");
        let clock = member.clock;
        for part in member.staged.take(clock).values() {
            if mutated(Mutant::VisibleBeforeTick) {
                continue;
            }
            member.non_finite += self.tables.apply_part(index, part, touched);
        }
        member.clock = clock.next();
        if clock == job.min_clock {
            job.raise_min_clock();
        }
    }

    /// Ticks a member up to `end` from what it holds staged (P5); a clock without parts here is an empty tick.
    pub(crate) fn tick_up_to(&mut self, index: LogIndex, key: WorkerKey, end: Clock, touched: &mut Touched) {
        let mut parts = self.member_mut(key).staged.take_below(end);
        if mutated(Mutant::SettleTicksNothing) {
            parts.clear();
        }
        let left_out: u64 = parts.iter().map(|part| self.tables.apply_part(index, part, touched)).sum();
        let member = self.member_mut(key);
        member.non_finite += left_out;
        member.clock = end;
    }
}

/// A tick names how many parts it applies; the single part of a stage-and-tick stands alone.
fn check_parts(member: &Member, message: &WorkerMessage) -> Result<(), Refusal> {
    let held = member.staged.parts_of(message.clock);
    let expected = if message.kind == Kind::Tick { message.count } else { 0 };
    if held == expected { Ok(()) } else { Err(Refusal::MissingParts { clock: message.clock, expected, held }) }
}

/// Consumes the sequence and remembers why, or asks to come again where there is no room to remember.
fn refuse(member: &mut Member, refusal: Refusal, refusals_max: usize) -> Outcome {
    if member.refusals.len() >= refusals_max {
        return Outcome::Retry(Retry::Busy(format!(
            "{refusals_max} refusals of this worker are not acknowledged; acknowledge them and send again"
        )));
    }
    member.refusals.insert(member.next, refusal.clone());
    member.consume();
    Outcome::Refused(refusal)
}

fn key_of(message: &WorkerMessage) -> WorkerKey {
    WorkerKey { job: message.job, generation: message.generation, worker: message.worker }
}
