//! The sum of all rows at round log indices, remembered for a while as part of the state (G6): replicas under load are
//! rarely seen at one index, and these they all have in common.

use crate::table::Tables;
use petuum_types::LogIndex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Every how many log indices the sum of all rows is remembered.
pub const MARK_INTERVAL: u64 = 1024;
/// How many marks are kept.
const MARKS_MAX: usize = 16;

/// The remembered sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Marks(VecDeque<(LogIndex, u64)>);

impl Marks {
    /// Before the entry at `to` changes anything: notes a multiple between the two indices.
    pub(crate) fn passed(&mut self, from: LogIndex, to: LogIndex, tables: &Tables) {
        let multiple = to.0 - to.0 % MARK_INTERVAL;
        if multiple > from.0 && multiple < to.0 {
            self.push(LogIndex(multiple), tables);
        }
    }

    /// After the entry at `index`.
    pub(crate) fn reached(&mut self, index: LogIndex, tables: &Tables) {
        if index.0.is_multiple_of(MARK_INTERVAL) {
            self.push(index, tables);
        }
    }

    /// Oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LogIndex, u64)> {
        self.0.iter().copied()
    }

    fn push(&mut self, index: LogIndex, tables: &Tables) {
        if self.0.len() == MARKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((index, tables.sum()));
    }
}
