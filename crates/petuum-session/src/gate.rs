//! How far a worker may run ahead of the slowest one (P6, second half): what it knows of the shards' min clocks.
//!
//! Not the unacknowledged window, which is the committer's; not the freshness of one read, which is P10's.
//!
//! Invariant: a noted min clock never goes back (G3), however late an answer arrives.

use petuum_types::{Clock, ShardId, Staleness};
use std::collections::BTreeMap;

/// P6: a worker never runs more than s + 1 clocks past the least min clock of all shards. Whether it may begin the
/// iteration `clock`, given the greatest staleness of the job's tables.
#[must_use]
pub fn may_start(clock: Clock, staleness_max: Staleness, least_min_clock: Clock) -> bool {
    clock.0 <= least_min_clock.0.saturating_add(u64::from(staleness_max.0)).saturating_add(1)
}

/// The min clocks that the shards are known to have reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MinClocks {
    seen: BTreeMap<ShardId, Clock>,
}

impl MinClocks {
    /// Nothing is known yet: every shard counts as at clock 0.
    #[must_use]
    pub fn new(shards: impl IntoIterator<Item = ShardId>) -> Self {
        Self { seen: shards.into_iter().map(|shard| (shard, Clock::ZERO)).collect() }
    }

    /// A shard showed this min clock. Lower ones than seen, and shards of another map, change nothing.
    pub fn note_min_clock(&mut self, shard: ShardId, clock: Clock) {
        if let Some(seen) = self.seen.get_mut(&shard) {
            *seen = clock.max(*seen);
        }
    }

    /// The least of all shards'.
    #[must_use]
    pub fn least(&self) -> Clock {
        self.seen.values().copied().min().unwrap_or(Clock::ZERO)
    }

    /// The shards not known to have reached `clock`, with what is known of them: whom to ask, and who is waited for.
    pub fn below(&self, clock: Clock) -> impl Iterator<Item = (ShardId, Clock)> + '_ {
        self.seen.iter().filter(move |(_, seen)| **seen < clock).map(|(shard, seen)| (*shard, *seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_a_worker_runs_at_most_s_plus_one_clocks_ahead() {
        let s = Staleness(2);
        assert!(may_start(Clock(8), s, Clock(5)));
        assert!(!may_start(Clock(9), s, Clock(5)));
        assert!(may_start(Clock(1), Staleness(0), Clock(0)));
        assert!(!may_start(Clock(2), Staleness(0), Clock(0)));
        assert!(may_start(Clock(u64::MAX), Staleness(u32::MAX), Clock(u64::MAX)));
    }

    #[test]
    fn g3_min_clocks_never_go_back_and_the_slowest_are_named() {
        let mut clocks = MinClocks::new([ShardId(0), ShardId(1)]);
        clocks.note_min_clock(ShardId(0), Clock(4));
        clocks.note_min_clock(ShardId(0), Clock(3));
        assert_eq!(clocks.least(), Clock(0));
        clocks.note_min_clock(ShardId(1), Clock(2));
        clocks.note_min_clock(ShardId(9), Clock(1));
        assert_eq!(clocks.least(), Clock(2));
        assert_eq!(clocks.below(Clock(4)).collect::<Vec<_>>(), [(ShardId(1), Clock(2))]);
    }
}
