//! A control leader's soft state: which shards have answered which duty.
//!
//! The edge sends each errand, with its own pacing and at most one in flight per id, feeds the answers back, and proposes
//! what is complete. Everything may be lost, repeated or done by several drivers at once: shards answer repeats without
//! harm, and apply takes each record once (P5). A new leader starts with `Driver::new()`.
//!
//! Not here: what work there is ([`crate::duty`]); sending, timing, leadership (the server's).
//!
//! Invariant: nothing is proposed before every shard of the *current* map has answered (P5: the map is read again before C
//! is computed and before it is handed out).

use crate::command::ControlCommand;
use crate::duty::{self, DutyId, duties};
use crate::state::Control;
use petuum_chaos::{Mutant, mutated};
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::map::ShardMap;
use petuum_types::{Clock, ShardId};
use std::collections::{BTreeMap, BTreeSet};

/// Names one errand: one duty in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrandId {
    /// The duty.
    pub duty: DutyId,
    /// The shard.
    pub shard: ShardId,
}

/// A command a shard has not confirmed yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Errand {
    /// Its name.
    pub id: ErrandId,
    /// Where to send it.
    pub shard: ShardId,
    /// What to log there.
    pub command: ShardCommand,
}

/// What a shard has answered to a duty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answered {
    Done,
    Clock(Clock),
    /// The shard has seen a higher version. It comes from this group's log, so the state will say the same soon; until
    /// then there is nothing to send.
    Stale,
}

/// Which shards have answered which duty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Driver {
    answers: BTreeMap<DutyId, BTreeMap<ShardId, Answered>>,
}

impl Driver {
    /// Knows of no answer.
    #[must_use]
    pub const fn new() -> Self {
        Self { answers: BTreeMap::new() }
    }

    /// Every errand not confirmed yet, in order; forgets what the state no longer asks for.
    pub fn step(&mut self, state: &Control) -> Vec<Errand> {
        let duties = duties(state);
        let ids: BTreeSet<DutyId> = duties.iter().map(|duty| duty.id).collect();
        self.answers.retain(|id, _| ids.contains(id));
        let mut errands = Vec::new();
        for duty in duties {
            let answered = self.answers.get(&duty.id);
            let unanswered = duty.commands.into_iter().filter(|(s, _)| !answered.is_some_and(|a| a.contains_key(s)));
            errands.extend(unanswered.map(|(shard, command)| {
                let id = ErrandId { duty: duty.id, shard };
                Errand { id, shard, command }
            }));
        }
        errands
    }

    /// Takes a shard's answer. One to a duty that is over changes nothing; a refusal, or an answer of the wrong kind,
    /// leaves the errand to be sent again.
    pub fn answer(&mut self, state: &Control, id: &ErrandId, answer: ShardAnswer) {
        if duty::command(state, &id.duty, id.shard).is_none() {
            return;
        }
        let answered = match (id.duty, answer) {
            (_, ShardAnswer::Stale { .. }) => Answered::Stale,
            (DutyId::Fence { .. }, ShardAnswer::Clock(clock)) => Answered::Clock(clock),
            (DutyId::Fence { .. }, _) => return,
            (_, ShardAnswer::Done) => Answered::Done,
            _ => return,
        };
        let shards = self.answers.entry(id.duty).or_default();
        // The first answer stands: under one fence a clock moves only by this transition's own settling, to a C that is
        // recorded by then.
        let first = *shards.entry(id.shard).or_insert(answered);
        if answered == Answered::Stale && first != Answered::Stale {
            shards.insert(id.shard, Answered::Stale);
        }
    }

    /// What to propose now: the record of every duty that every shard of the current map has answered. The same is given
    /// again until the state shows it.
    pub fn proposals(&mut self, state: &Control) -> Vec<ControlCommand> {
        let Some(map) = state.map() else {
            return Vec::new();
        };
        duty::outstanding(state).iter().filter_map(|id| self.record(id, map)).collect()
    }

    fn record(&self, id: &DutyId, map: &ShardMap) -> Option<ControlCommand> {
        let greatest = self.complete(id, map)?;
        let epoch = map.epoch;
        Some(match *id {
            DutyId::Own { epoch } => ControlCommand::MapReady { epoch },
            DutyId::OpenJob { job, .. } => ControlCommand::JobReady { job, epoch },
            DutyId::CreateTable { table } => ControlCommand::TableReady { table, epoch },
            DutyId::DropTable { table } => ControlCommand::TableGone { table, epoch },
            DutyId::Fence { worker, incarnation } => {
                ControlCommand::RecordClock { key: worker, incarnation, clock: greatest, epoch }
            }
            DutyId::Settle { worker, incarnation } => ControlCommand::RecordSettled { key: worker, incarnation, epoch },
        })
    }

    /// If every shard of the map has done the duty: the greatest clock answered (P5), 0 for duties without clocks.
    fn complete(&self, id: &DutyId, map: &ShardMap) -> Option<Clock> {
        let answers = self.answers.get(id)?;
        if mutated(Mutant::TakeoverTakesLeast) {
            let clock = |shard| match answers.get(shard) {
                Some(Answered::Clock(clock)) => Some(*clock),
                Some(Answered::Done) => Some(Clock::ZERO),
                Some(Answered::Stale) | None => None,
            };
            return map.shards.keys().map(clock).min().flatten();
        }
        map.shards.keys().try_fold(Clock::ZERO, |greatest, shard| match answers.get(shard)? {
            Answered::Done => Some(greatest),
            Answered::Clock(clock) => Some(greatest.max(*clock)),
            Answered::Stale => None,
        })
    }
}
