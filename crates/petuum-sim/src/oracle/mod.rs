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

use std::collections::BTreeMap;
use std::ops::Range;

pub use latest::Floors;

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

/// What one worker has done so far.
#[derive(Clone, Debug)]
struct Progress {
    /// What the worker's columns of a row hold after so many clocks: how many of them count, and the sum of their marks.
    after: Vec<(i64, i64)>,
    /// Clocks known to be acknowledged.
    acked: u64,
    /// Clocks known to be ticked in every shard.
    flushed: u64,
    /// The latest session known.
    incarnation: u64,
    /// Clocks of sessions before the latest that count; what such a session did beyond must not.
    inherited: u64,
    /// The version of the last removal known.
    removal: u64,
    /// Whether it is out of the job.
    removed: bool,
    /// Whether removals passed unseen, so that nobody here knows which of its clocks count: it is not judged any more.
    unknown: bool,
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
    fn attempted(&self) -> u64 {
        self.after.len() as u64 - 1
    }

    /// What the columns hold after `clocks` clocks, at most those attempted.
    fn after(&self, clocks: u64) -> (i64, i64) {
        self.after[usize::try_from(clocks).expect("at most those attempted")]
    }

    /// Only the first `clocks` clocks are there; those beyond what was attempted count for nothing.
    fn keep(&mut self, clocks: u64) {
        let held = self.after(clocks.min(self.attempted()));
        self.after.resize(usize::try_from(clocks).expect("a clock of a run") + 1, held);
    }

    /// The marks of `count` counted clocks, if that is what some number of clocks from `low` on comes to.
    fn marks_of(&self, count: i64, low: u64) -> Option<i64> {
        let low = usize::try_from(low.min(self.attempted())).expect("at most those attempted");
        let at = low + self.after[low..].partition_point(|(counted, _)| *counted < count);
        self.after.get(at).filter(|(counted, _)| *counted == count).map(|(_, marks)| *marks)
    }
}

/// The oracle of one table.
#[derive(Clone, Debug)]
pub struct UnitVectors {
    staleness: u64,
    removals: bool,
    workers: Vec<Progress>,
    /// By reader, row: the counts the reader's session has seen.
    seen: BTreeMap<(usize, u64), Vec<i64>>,
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
            seen: BTreeMap::new(),
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
        self.seen.retain(|(reader, _), _| *reader != worker);
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
        for (_, seen) in self.seen.iter_mut().filter(|((reader, _), _)| *reader == worker) {
            seen[worker] = seen[worker].min(count);
        }
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

    /// A worker's latest session, at `clock`, has read a row.
    ///
    /// # Errors
    /// [`Violation`] naming row, column, and what was allowed.
    pub fn read(&mut self, reader: usize, clock: u64, row: u64, values: &[i64]) -> Result<(), Violation> {
        self.read_together(reader, &[(clock, row, values)])
    }

    /// The threads of a worker's latest session have read rows at the same time, and added to none meanwhile: (clock, row,
    /// values) of each read. None may show less than what was seen before all of them; between them there is no order.
    ///
    /// # Errors
    /// [`Violation`] naming row, column, and what was allowed.
    pub fn read_together(&mut self, reader: usize, reads: &[(u64, u64, &[i64])]) -> Result<(), Violation> {
        let count = self.workers.len();
        reads.iter().try_for_each(|(clock, row, values)| self.judge(reader, *clock, *row, values))?;
        for (_, row, values) in reads {
            let seen = self.seen.entry((reader, *row)).or_insert_with(|| vec![0; count]);
            seen.iter_mut().zip(*values).for_each(|(seen, value)| *seen = (*seen).max(*value));
        }
        self.reads += reads.len() as u64;
        Ok(())
    }

    /// One read, against what was seen before.
    fn judge(&self, reader: usize, clock: u64, row: u64, values: &[i64]) -> Result<(), Violation> {
        let count = self.workers.len();
        if values.len() != 2 * count {
            return Err(Violation(format!("row {row} has {} columns; expected {}", values.len(), 2 * count)));
        }
        let seen = self.seen.get(&(reader, row));
        for (worker, progress) in self.workers.iter().enumerate().filter(|(_, progress)| !progress.unknown) {
            let value = values[worker];
            let attempted = progress.attempted();
            let sure = if self.removals { progress.acked } else { attempted };
            let stale = clock.saturating_sub(self.staleness).min(sure);
            let low = if worker == reader { attempted } else { stale };
            let before = seen.map_or(0, |seen| seen[worker]);
            let (least, most) = (progress.after(low).0.max(before), progress.after(attempted).0);
            let marks = progress.marks_of(value, low).filter(|_| (least..=most).contains(&value));
            let Some(marks) = marks else {
                return Err(Violation(format!(
                    "worker {reader} at clock {clock} read {value} clocks of worker {worker} in row {row}; expected \
                     {least} to {most} (staleness {}, seen before {before})",
                    self.staleness
                )));
            };
            check_marks(worker, row, value, values[count + worker], marks)?;
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
