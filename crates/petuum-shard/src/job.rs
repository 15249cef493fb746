//! A job as a shard knows it.

use crate::member::Member;
use petuum_chaos::{Mutant, mutated};
use petuum_types::{Clock, Generation, WorkerId};
use std::collections::BTreeMap;

/// A job's generation, members and min clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Job {
    pub(crate) generation: Generation,
    /// How many workers the job has; ids are below.
    pub(crate) workers: u32,
    /// The least clock of live members. Only grows, and stays when nobody is left (G3).
    pub(crate) min_clock: Clock,
    pub(crate) members: BTreeMap<WorkerId, Member>,
}

impl Job {
    pub(crate) const fn new(generation: Generation, workers: u32) -> Self {
        Self { generation, workers, min_clock: Clock::ZERO, members: BTreeMap::new() }
    }

    /// Takes in that a member advanced or left. Members that are not settled yet count: clocks must not run ahead of a
    /// worker that is joining (P15).
    pub(crate) fn raise_min_clock(&mut self) {
        let least = self.members.values().filter(|m| m.is_live()).map(|m| m.clock).min();
        if mutated(Mutant::MinClockOfGreatest) {
            let greatest = self.members.values().filter(|m| m.is_live()).map(|m| m.clock).max();
            self.min_clock = greatest.unwrap_or_default().max(self.min_clock);
            return;
        }
        if let Some(least) = least {
            assert!(least >= self.min_clock, "a live worker at {least} below the min clock {}", self.min_clock);
            self.min_clock = least;
        }
    }
}
