//! Transitions of a worker: join, takeover, eviction and leave, each a fence and a settle (P5, P15).
//!
//! The incarnation is the version: lower ones are stale, an equal one is a repeat. Between fence and settle nobody speaks
//! for the worker, so its clock and its staged parts stay what the fence answered.

use crate::member::{Member, Standing};
use crate::shard::Shard;
use crate::table::Touched;
use petuum_chaos::{Mutant, mutated};
use petuum_types::command::{ShardAnswer, WorkerKey};
use petuum_types::{Clock, Incarnation, LogIndex, Sequence};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Where a settle takes a worker.
pub(crate) struct Goal {
    pub(crate) incarnation: Incarnation,
    /// C: the worker's clock in every shard.
    pub(crate) clock: Clock,
    /// Whether the worker goes on, or is removed.
    pub(crate) keep: bool,
}

impl Shard {
    /// First half: from here on no lower incarnation speaks, and `incarnation` not yet.
    pub(crate) fn fence(&mut self, key: WorkerKey, incarnation: Incarnation, admit: bool) -> ShardAnswer {
        let job = match self.jobs.get_mut(&key.job) {
            Some(job) if job.generation == key.generation => job,
            Some(job) => return other_generation(key, job.generation),
            None => return ShardAnswer::Refused(format!("{} is not open here", key.job)),
        };
        if key.worker.0 >= job.workers {
            return ShardAnswer::Refused(format!("{}; {} has {} workers", key.worker, key.job, job.workers));
        }
        let min_clock = job.min_clock;
        let member = match job.members.entry(key.worker) {
            std::collections::btree_map::Entry::Vacant(place) => place.insert(Member::new(incarnation)),
            std::collections::btree_map::Entry::Occupied(place) => {
                let member = place.into_mut();
                match incarnation.cmp(&member.incarnation) {
                    Ordering::Less if mutated(Mutant::LowerFenceTaken) => member,
                    Ordering::Less => return ShardAnswer::Stale { incarnation: member.incarnation },
                    // A repeat changes nothing, also not the sequences, and is answered as the first time.
                    Ordering::Equal if mutated(Mutant::RepeatedFenceResets) => member,
                    Ordering::Equal => return ShardAnswer::Clock(member.fenced_at),
                    Ordering::Greater => member,
                }
            }
        };
        if admit && !member.is_live() && !mutated(Mutant::JoinNotCountedAtFence) {
            // Counted from this entry on, so that the min clock cannot run ahead of the joiner. A worker that was removed
            // here at a later clock than the min clock is counted there: its clocks below were applied, and C, the greatest
            // of all answers and of that clock, is not lower.
            member.standing = Standing::Live;
            member.clock = min_clock.max(member.clock);
        }
        member.incarnation = incarnation;
        member.settled = false;
        member.fenced_at = member.clock;
        (member.next, member.floor) = (Sequence(0), Sequence(0));
        member.refusals = BTreeMap::new();
        let fenced_at = member.fenced_at;
        if admit && mutated(Mutant::MinClockResetOnJoin) {
            job.min_clock = Clock::ZERO;
        }
        ShardAnswer::Clock(fenced_at)
    }

    /// Second half: the worker is at C, here as everywhere, and goes on or is removed.
    pub(crate) fn settle(&mut self, index: LogIndex, key: WorkerKey, to: Goal, touched: &mut Touched) -> ShardAnswer {
        let job = match self.jobs.get(&key.job) {
            Some(job) if job.generation == key.generation => job,
            Some(job) => return other_generation(key, job.generation),
            None => return ShardAnswer::Refused(format!("{} is not open here", key.job)),
        };
        let Some(member) = job.members.get(&key.worker).filter(|m| m.incarnation >= to.incarnation) else {
            return ShardAnswer::Refused(format!("{} of {} has not been fenced here", to.incarnation, key.worker));
        };
        if member.incarnation > to.incarnation {
            return ShardAnswer::Stale { incarnation: member.incarnation };
        }
        if member.settled {
            // A repeat is only confirmed: the incarnation may have ticked on and staged since (P5).
            return ShardAnswer::Done;
        }
        if let Some(reason) = misfit(member, &to) {
            return ShardAnswer::Refused(format!("{}, {}: {reason}", key.worker, to.incarnation));
        }
        self.tick_up_to(index, key, to.clock, touched);
        let member = self.member_mut(key);
        // All of lower incarnations: this one could not stage before it was settled.
        member.staged = crate::member::Staged::default();
        member.start = to.clock;
        member.settled = true;
        member.standing = if to.keep { Standing::Live } else { Standing::Removed };
        self.jobs.get_mut(&key.job).expect("the job was just looked up").raise_min_clock();
        ShardAnswer::Done
    }
}

/// Why a settle cannot follow the fence that was applied. The control group's state and this shard's disagree: nothing
/// is changed, and the driver looks again.
fn misfit(member: &Member, to: &Goal) -> Option<String> {
    if to.clock < member.clock {
        return Some(format!("settled at {}, but the fence answered {}", to.clock, member.clock));
    }
    if to.keep && !member.is_live() && !mutated(Mutant::JoinNotCountedAtFence) {
        return Some("to go on, but it is not counted here; its fence did not admit it".into());
    }
    None
}

fn other_generation(key: WorkerKey, ours: petuum_types::Generation) -> ShardAnswer {
    ShardAnswer::Refused(format!("{} is at {ours}; the command is of {}", key.job, key.generation))
}
