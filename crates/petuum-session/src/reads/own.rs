//! A worker's updates between `clock()` and the answer that contains them (P10, G5).
//!
//! Not here: the way to the shards; the committer has the same updates as encoded parts.
//!
//! Invariant: for every clock from `floor` up to the worker's own, all its updates are here. So a row whose answer
//! contains the own clocks below some `own_clock >= floor` is shown whole by adding the clocks from `own_clock` on.

use crate::updates::ClockUpdates;
use petuum_chaos::{Mutant, mutated};
use petuum_types::limits::OWN_CLOCKS_MAX;
use petuum_types::{Clock, RowId, TableId, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Updates of finished clocks.
#[derive(Clone, Debug)]
pub(super) struct OwnUpdates {
    clocks: BTreeMap<Clock, Arc<ClockUpdates>>,
    bytes: usize,
    limit: usize,
    /// Answers must contain the own clocks below this.
    floor: Clock,
}

impl OwnUpdates {
    pub(super) const fn new(limit: usize, start: Clock) -> Self {
        // What earlier incarnations committed is known here only from answers.
        Self { clocks: BTreeMap::new(), bytes: 0, limit, floor: start }
    }

    /// The own clock that an answer must have reached.
    pub(super) const fn floor(&self) -> Clock {
        self.floor
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a finished clock's updates. Past the limits, of bytes and of clocks, the oldest go, and the floor rises instead:
    /// under a large staleness a row could stay cached for ever, and each look at it would cost more than the one before.
    pub(super) fn push(&mut self, clock: Clock, updates: Arc<ClockUpdates>) {
        if mutated(Mutant::OwnWritesDroppedAtClock) {
            return;
        }
        self.bytes += updates.bytes();
        self.clocks.insert(clock, updates);
        while (self.bytes > self.limit || self.clocks.len() > OWN_CLOCKS_MAX)
            && let Some((oldest, _)) = self.clocks.first_key_value()
        {
            self.forget_below(oldest.next());
        }
    }

    /// Forgets the clocks below this one: answers that lack them are shown no more.
    pub(super) fn forget_below(&mut self, clock: Clock) {
        self.floor = self.floor.max(clock);
        let kept = self.clocks.split_off(&clock);
        self.replace(kept);
    }

    /// Forgets the clocks from this one on: they were given up (P4), and no answer will contain them.
    pub(super) fn forget_from(&mut self, clock: Clock) {
        let mut kept = std::mem::take(&mut self.clocks);
        kept.split_off(&clock);
        self.floor = self.floor.min(clock);
        self.replace(kept);
    }

    fn replace(&mut self, kept: BTreeMap<Clock, Arc<ClockUpdates>>) {
        self.bytes = kept.values().map(|updates| updates.bytes()).sum();
        self.clocks = kept;
    }

    pub(super) fn touches(&self, from: Clock, table: TableId, row: RowId) -> bool {
        self.clocks.range(from..).any(|(_, updates)| updates.touches(table, row))
    }

    /// Adds the clocks from `from` on to a row, in clock order.
    pub(super) fn overlay(&self, from: Clock, table: TableId, row: RowId, values: &mut Values) {
        self.clocks.range(from..).for_each(|(_, updates)| updates.overlay(table, row, values));
    }
}
