//! What one worker has done so far: which of its clocks count, and what its columns hold after each.

/// What one worker has done so far.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// What the worker's columns of a row hold after so many clocks: how many of them count, and the sum of their marks.
    pub(super) after: Vec<(i64, i64)>,
    /// Clocks known to be acknowledged.
    pub(super) acked: u64,
    /// Clocks known to be ticked in every shard.
    pub(super) flushed: u64,
    /// The latest session known.
    pub(super) incarnation: u64,
    /// Clocks of sessions before the latest that count; what such a session did beyond must not.
    pub(super) inherited: u64,
    /// The version of the last removal known.
    pub(super) removal: u64,
    /// Whether it is out of the job.
    pub(super) removed: bool,
    /// Whether removals passed unseen, so that nobody here knows which of its clocks count: it is not judged any more.
    pub(super) unknown: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            after: vec![(0, 0)],
            acked: 0,
            flushed: 0,
            incarnation: 0,
            inherited: 0,
            removal: 0,
            removed: false,
            unknown: false,
        }
    }
}

impl Progress {
    pub(super) fn attempted(&self) -> u64 {
        self.after.len() as u64 - 1
    }

    /// What the columns hold after `clocks` clocks, at most those attempted.
    pub(super) fn after(&self, clocks: u64) -> (i64, i64) {
        self.after[usize::try_from(clocks).expect("at most those attempted")]
    }

    /// Only the first `clocks` clocks are there; those beyond what was attempted count for nothing.
    pub(super) fn keep(&mut self, clocks: u64) {
        let held = self.after(clocks.min(self.attempted()));
        self.after.resize(usize::try_from(clocks).expect("a clock of a run") + 1, held);
    }

    /// The marks of `count` counted clocks, if that is what some number of clocks from `low` on comes to.
    pub(super) fn marks_of(&self, count: i64, low: u64) -> Option<i64> {
        let low = usize::try_from(low.min(self.attempted())).expect("at most those attempted");
        let at = low + self.after[low..].partition_point(|(counted, _)| *counted < count);
        self.after.get(at).filter(|(counted, _)| *counted == count).map(|(_, marks)| *marks)
    }
}
