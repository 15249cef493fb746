//! One clock between `commit` and its last tick.
//!
//! Invariants: `unstaged` counts the parts whose stage is not acknowledged; payloads are kept exactly until it is 0.

use bytes::Bytes;
use petuum_chaos::{Mutant, mutated};
use petuum_types::{Clock, ShardId};
use std::collections::BTreeMap;

/// A clock on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) clock: Clock,
    /// Parts by shard, until all are held; then only how many there were.
    parts: BTreeMap<ShardId, Parts>,
    unstaged: usize,
    /// Bytes of all parts.
    pub(super) bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parts {
    payloads: Vec<Bytes>,
    count: u32,
}

impl Pending {
    pub(super) fn new(clock: Clock, parts: BTreeMap<ShardId, Vec<Bytes>>) -> Self {
        let bytes = parts.values().flatten().map(Bytes::len).sum();
        let parts: BTreeMap<_, _> = parts
            .into_iter()
            .filter(|(_, payloads)| !payloads.is_empty())
            .map(|(shard, payloads)| {
                let count = u32::try_from(payloads.len()).expect("staged bytes bound the parts of a clock");
                (shard, Parts { payloads, count })
            })
            .collect();
        let unstaged = parts.values().map(|parts| parts.payloads.len()).sum();
        Self { clock, parts, unstaged, bytes }
    }

    /// How many parts the shard gets.
    pub(super) fn count(&self, shard: ShardId) -> u32 {
        self.parts.get(&shard).map_or(0, |parts| parts.count)
    }

    /// A part that the shard does not hold for sure yet; `None` past the last.
    pub(super) fn part(&self, shard: ShardId, number: u32) -> Option<&Bytes> {
        self.parts.get(&shard)?.payloads.get(number as usize)
    }

    /// P3: the whole clock is one part.
    pub(super) fn is_one_part(&self) -> bool {
        self.parts.values().map(|parts| parts.count).sum::<u32>() == 1
    }

    /// P3: every part in every shard is acknowledged, so that ticks may go.
    pub(super) fn may_tick(&self) -> bool {
        self.unstaged == 0 || (self.unstaged == 1 && mutated(Mutant::TickBeforeLastAck))
    }

    /// A part is acknowledged.
    pub(super) fn staged(&mut self) {
        self.unstaged = self.unstaged.saturating_sub(1);
        if self.unstaged == 0 {
            self.forget_payloads();
        }
    }

    /// A shard has ticked this clock, which it does only when every shard holds its parts (P3, P4).
    pub(super) fn staged_everywhere(&mut self) {
        self.unstaged = 0;
        self.forget_payloads();
    }

    fn forget_payloads(&mut self) {
        self.parts.values_mut().for_each(|parts| parts.payloads = Vec::new());
    }
}
