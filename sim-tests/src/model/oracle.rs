//! What must hold: of one step of a shard, of the shards together, and at the end.

use super::bounds::Bounds;
use super::job::{JobPlan, SHARDS, WORKERS};
use super::replica::{Facts, Member};
use std::fmt;

/// A guarantee that a schedule breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// G2: an update in some shard twice, or of two processes, or in one shard and not in another that should have it;
    /// or an acknowledged one lost.
    Once,
    /// G3: a clock that went back, or that advanced without its updates, or updates without their clock.
    Clock,
    /// G4: a min clock that promises an update which is not in the rows.
    Staleness,
    /// G7: a fenced incarnation took effect.
    Fencing,
    /// Nothing can happen any more, and somebody is not done.
    Stuck,
    /// An answer that no machine may give to another: a driver's command or a tick refused.
    Refused,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "G2",
            Self::Clock => "G3",
            Self::Staleness => "G4",
            Self::Fencing => "G7",
            Self::Stuck => "no stuck state",
            Self::Refused => "no command or tick is refused",
        })
    }
}

/// Judges one entry of one shard. `speaker` is the (worker, incarnation) of a worker's message.
pub(super) fn judge_step(before: &Facts, after: &Facts, speaker: Option<(usize, u64)>) -> Option<Flaw> {
    if after.twice {
        return Some(Flaw::Once);
    }
    if let Some((worker, incarnation)) = speaker {
        let fenced = incarnation != before.members[worker].incarnation || !before.members[worker].settled;
        if fenced && before != after {
            return Some(Flaw::Fencing);
        }
    }
    if after.min_clock < before.min_clock {
        return Some(Flaw::Clock);
    }
    before.members.iter().zip(&after.members).find_map(|(b, a)| {
        let new = a.applied_clocks() & !b.applied_clocks();
        if a.clock < b.clock || b.applied_clocks() & !a.applied_clocks() != 0 {
            Some(Flaw::Clock)
        } else if new & below(before.min_clock) != 0 {
            // A read may have been answered without it that should have contained it.
            Some(Flaw::Staleness)
        } else {
            None
        }
    })
}

/// What the oracles know besides the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Known {
    /// By worker: which attempt's update of each clock was acknowledged, as attempt + 1 in four bits per clock.
    pub(super) acknowledged: [u16; WORKERS],
    /// By worker: the clock of its first removal. From there on clocks may be missing: a later join skips them.
    pub(super) skips_from: [Option<u8>; WORKERS],
}

/// Judges the shards together.
pub(super) fn judge_state(shards: [&Facts; SHARDS], known: &Known, plan: &JobPlan, bounds: &Bounds) -> Option<Flaw> {
    let pairs = (0..WORKERS).flat_map(|worker| (0..bounds.clocks).map(move |clock| (worker, clock)));
    pairs.into_iter().find_map(|(worker, clock)| {
        let homes = (0..SHARDS).filter(|shard| plan.reaches(clock, *shard));
        let acknowledged = (known.acknowledged[worker] >> (4 * clock)) & 0xf;
        let clock = Update { worker, clock, acknowledged: usize::from(acknowledged).checked_sub(1) };
        let skipped = known.skips_from[worker].is_some_and(|at| clock.clock >= at);
        judge_update(shards, &clock, homes.collect::<Vec<_>>().as_slice(), skipped)
    })
}

struct Update {
    worker: usize,
    clock: u8,
    acknowledged: Option<usize>,
}

fn judge_update(shards: [&Facts; SHARDS], of: &Update, homes: &[usize], skipped: bool) -> Option<Flaw> {
    let member = |shard: usize| -> &Member { &shards[shard].members[of.worker] };
    let mut by = (0..SHARDS).flat_map(|shard| member(shard).applied_by(of.clock)).chain(of.acknowledged);
    let attempt = by.next();
    if by.any(|other| Some(other) != attempt) {
        return Some(Flaw::Once);
    }
    let bit = 1u8 << of.clock;
    let is_ticked = !skipped && (0..SHARDS).any(|shard| of.clock < member(shard).clock);
    (0..SHARDS).find_map(|shard| {
        let here = member(shard);
        let is_home = homes.contains(&shard);
        if here.applied_clocks() & bit != 0 {
            return (!is_home || of.clock >= here.clock).then_some(Flaw::Clock);
        }
        if !is_home {
            return None;
        }
        if of.clock < here.clock && !skipped {
            return Some(Flaw::Clock);
        }
        if attempt.is_some() && of.clock < shards[shard].min_clock {
            return Some(Flaw::Staleness);
        }
        // P3: a tick in one shard proves that every shard holds its parts.
        let held = attempt.map_or(here.staged_clocks(), |attempt| here.staged[attempt]);
        ((attempt.is_some() || is_ticked) && held & bit == 0).then_some(Flaw::Once)
    })
}

/// Judges a registration that is answered: the worker is at `start` everywhere, with all before it and nothing after.
pub(super) fn judge_start(shards: [&Facts; SHARDS], worker: usize, incarnation: u64, start: u8) -> Option<Flaw> {
    shards.iter().find_map(|facts| {
        let member = &facts.members[worker];
        if member.incarnation != incarnation || !member.settled || !member.live || member.clock != start {
            return Some(Flaw::Clock);
        }
        (member.staged_clocks() != 0).then_some(Flaw::Fencing)
    })
}

/// Judges the end of a worker that has finished all clocks from `start` on as its last process.
pub(super) fn judge_finish(
    shards: [&Facts; SHARDS],
    plan: &JobPlan,
    of: (usize, usize),
    clocks: std::ops::Range<u8>,
) -> bool {
    let (worker, attempt) = of;
    (0..SHARDS).all(|shard| {
        let member = &shards[shard].members[worker];
        let all = clocks.clone().filter(|clock| plan.reaches(*clock, shard)).fold(0u8, |bits, c| bits | (1 << c));
        member.clock == clocks.end && member.applied[attempt] & below(clocks.end) & !below(clocks.start) == all
    })
}

/// The bits of all clocks below one.
pub(super) const fn below(clock: u8) -> u8 {
    (1 << clock) - 1
}
