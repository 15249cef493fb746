//! What a worker may read of a table of unit vectors, and what must be left of it in the end.
//!
//! Every row has two columns per worker. In each clock a worker adds 1 to its own count column and a *mark*, drawn anew
//! for each attempt, to its mark column, in every row. So each column of a row tells exactly which clocks of which
//! worker it contains, and the mark whether they are those of the attempt that was committed: a clock counted twice,
//! lost, half applied or mixed from two attempts shows in a single read (G1-G5). Pure: no time, no I/O.
//!
//! A read by `p` at clock `c` under staleness `s` shows of worker `q` at least `c - s` clocks (G4), of `p` itself exactly
//! what it has done (G5), never less than the same session of `p` has seen of that row (G5), and never more than `q` has
//! attempted (G2). All threads of a session see what one of them adds or has seen.

mod latest;
mod progress;
mod reads;

use std::ops::Range;

use progress::Progress;

pub use latest::Floors;
pub use reads::Seen;

/// Marks are drawn from here; large, so that sums of different marks differ.
const MARKS: Range<i64> = 1..1 << 40;

/// A rule of the oracle that a run has broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

/// A session of a worker, as its registration was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Its incarnation.
    pub incarnation: u64,
    /// The clock it begins at.
    pub start: u64,
    /// If the worker was removed before: the clock it was removed at. Its clocks from there up to `start` are lost.
    pub rejoined_from: Option<u64>,
}

impl Registered {
    /// A worker that registers for the first time, or takes over from its predecessor.
    #[must_use]
    pub const fn new(incarnation: u64, start: u64) -> Self {
        Self { incarnation, start, rejoined_from: None }
    }
}

/// The oracle of one table.
#[derive(Clone, Debug)]
pub struct UnitVectors {
    staleness: u64,
    removals: bool,
    workers: Vec<Progress>,
    /// By worker: what its session has seen.
    seen: Vec<Seen>,
    random: fastrand::Rng,
    reads: u64,
}

impl UnitVectors {
    /// For `workers` workers that read with `staleness`.
    #[must_use]
    pub fn new(workers: usize, staleness: u64, seed: u64) -> Self {
        Self {
            staleness,
            removals: false,
            workers: vec![Progress::default(); workers],
            seen: vec![Seen::default(); workers],
            random: fastrand::Rng::with_seed(seed),
            reads: 0,
        }
    }

    /// Workers may be removed from their job. Until a removed one registers again nobody here knows at which clock it
    /// was: of other workers' clocks only those acknowledged are sure to be seen.
    #[must_use]
    pub const fn with_removals(mut self) -> Self {
        self.removals = true;
        self
    }

    /// Columns of a row: the workers' counts, then their marks.
    #[must_use]
    pub fn width(&self) -> usize {
        2 * self.workers.len()
    }

    /// Rows checked so far.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Clocks of a worker that are known to be acknowledged.
    #[must_use]
    pub fn acked(&self, worker: usize) -> u64 {
        self.workers[worker].acked
    }

    /// Workers that are not judged any more: they were removed, joined and were removed again before anybody was told.
    #[must_use]
    pub fn unjudged(&self) -> usize {
        self.workers.iter().filter(|progress| progress.unknown).count()
    }

    /// Clocks of a worker that have been attempted.
    #[must_use]
    pub fn attempted(&self, worker: usize) -> u64 {
        self.workers[worker].attempted()
    }

    /// Whether no later session of the worker is known. Only the latest may attempt clocks; what an earlier one does
    /// from now on must have no effect (G7).
    #[must_use]
    pub fn is_latest(&self, worker: usize, incarnation: u64) -> bool {
        let progress = &self.workers[worker];
        progress.incarnation == incarnation && !progress.removed
    }

    /// A worker was removed from the job at clock `at`: its clocks before that count, those from it on do not. `removal`
    /// is the incarnation that the removal drew. To be told of every removal, before a later session registers.
    /// Gives whether it is news.
    ///
    /// # Errors
    /// [`Violation`]: acknowledged clocks do not count (G1), or there are more than were attempted (G2).
    pub fn removed(&mut self, worker: usize, removal: u64, at: u64) -> Result<bool, Violation> {
        let progress = &mut self.workers[worker];
        if removal <= progress.removal {
            return Ok(false);
        }
        progress.removal = removal;
        // A session that it never heard of may have joined at a later clock than it has attempted, and done nothing.
        let joined_unheard = at > progress.attempted();
        progress.unknown |= joined_unheard && !progress.removed;
        if !joined_unheard && !(progress.acked..=progress.attempted()).contains(&at) {
            return Err(Violation(format!(
                "worker {worker} was removed at clock {at}; {} clocks were acknowledged and {} attempted",
                progress.acked,
                progress.attempted()
            )));
        }
        progress.keep(at);
        (progress.inherited, progress.flushed, progress.removed) = (at, at, true);
        Ok(true)
    }

    /// A worker's new session was told where to begin: every clock before that counts, but those lost in a removal;
    /// none from it on does. One that is older than the latest known changes nothing.
    ///
    /// # Errors
    /// [`Violation`]: acknowledged clocks are missing (G1), or there are more than were attempted (G2).
    pub fn registered(&mut self, worker: usize, session: Registered) -> Result<(), Violation> {
        let Registered { incarnation, start, rejoined_from } = session;
        let progress = &mut self.workers[worker];
        if incarnation <= progress.incarnation {
            return Ok(());
        }
        let kept = rejoined_from.unwrap_or(start);
        let joined_unheard = rejoined_from.is_some() && kept > progress.attempted();
        progress.unknown |= joined_unheard && !progress.removed;
        if !joined_unheard && !(progress.acked..=progress.attempted()).contains(&kept) || start < kept {
            return Err(Violation(format!(
                "worker {worker} begins at clock {start}, its first {kept} clocks count; {} clocks were acknowledged and \
                 {} attempted",
                progress.acked,
                progress.attempted()
            )));
        }
        progress.keep(kept);
        progress.keep(start);
        (progress.acked, progress.incarnation, progress.inherited) = (start, incarnation, kept);
        (progress.flushed, progress.removed) = (start, false);
        self.seen[worker] = Seen::default();
        Ok(())
    }

    /// A worker's latest session is about to update clock `clock`; returns the mark to add.
    ///
    /// # Panics
    /// If the clock before it was not attempted.
    pub fn attempt(&mut self, worker: usize, clock: u64) -> i64 {
        let progress = &mut self.workers[worker];
        assert_eq!(progress.attempted(), clock, "clocks are attempted in order, each once by a session");
        let mark = self.random.i64(MARKS);
        let (count, marks) = progress.after(clock);
        progress.after.push((count + 1, marks + mark));
        mark
    }

    /// A session of a worker was told that its clocks from `clock` on were given up: none of them may ever be seen.
    ///
    /// # Errors
    /// [`Violation`]: some of them were acknowledged (G1).
    pub fn gave_up(&mut self, worker: usize, incarnation: u64, clock: u64) -> Result<(), Violation> {
        if !self.is_latest(worker, incarnation) {
            return Ok(());
        }
        let progress = &mut self.workers[worker];
        if clock < progress.acked {
            let acked = progress.acked;
            return Err(Violation(format!("worker {worker} gave up clock {clock}; {acked} clocks were acknowledged")));
        }
        progress.keep(clock.min(progress.attempted()));
        let (count, _) = progress.after(progress.attempted());
        // Its own updates were seen before they were sent; they are gone.
        self.seen[worker].forget_beyond(worker, count);
        Ok(())
    }

    /// A mark that is no part of any attempt, for a session that has been replaced.
    pub fn void_mark(&mut self) -> i64 {
        self.random.i64(MARKS)
    }

    /// A session of a worker knows that its first `clocks` clocks are acknowledged.
    ///
    /// # Errors
    /// [`Violation`]: a session that was replaced or removed had clocks acknowledged that do not count (G1, G7).
    ///
    /// # Panics
    /// If more are acknowledged than were attempted.
    pub fn acknowledged(&mut self, worker: usize, incarnation: u64, clocks: u64) -> Result<(), Violation> {
        let progress = &mut self.workers[worker];
        if incarnation == progress.incarnation && !progress.removed {
            assert!(clocks <= progress.attempted(), "an acknowledgement of what was not sent");
            progress.acked = progress.acked.max(clocks);
        } else if clocks > progress.inherited {
            return Err(Violation(format!(
                "worker {worker}, incarnation {incarnation}, had {clocks} clocks acknowledged; its successor {} found {}",
                progress.incarnation, progress.inherited
            )));
        }
        Ok(())
    }

    /// The end: a row, on whichever replica, must hold every worker's first `clocks` clocks and no others.
    ///
    /// # Errors
    /// [`Violation`] naming row and column.
    pub fn final_row(&self, row: u64, values: &[i64], clocks: u64) -> Result<(), Violation> {
        let count = self.workers.len();
        if values.len() != 2 * count {
            return Err(Violation(format!("row {row} has {} columns; expected {}", values.len(), 2 * count)));
        }
        for (worker, progress) in self.workers.iter().enumerate().filter(|(_, progress)| !progress.unknown) {
            let value = values[worker];
            let (expected, marks) = progress.after(clocks.min(progress.attempted()));
            if value != expected {
                return Err(Violation(format!(
                    "in the end row {row} holds {value} clocks of worker {worker}; expected {expected}"
                )));
            }
            check_marks(worker, row, value, values[count + worker], marks)?;
        }
        Ok(())
    }
}

fn check_marks(worker: usize, row: u64, clocks: i64, marks: i64, expected: i64) -> Result<(), Violation> {
    if marks == expected {
        return Ok(());
    }
    Err(Violation(format!(
        "row {row} holds {clocks} clocks of worker {worker} with marks {marks}; expected {expected}: updates of an \
         attempt that was not committed, or of only a part of one"
    )))
}

#[cfg(test)]
mod tests;
