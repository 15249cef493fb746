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

use std::collections::BTreeMap;
use std::ops::Range;

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
        Self { after: vec![(0, 0)], acked: 0, incarnation: 0, inherited: 0, removal: 0, removed: false, unknown: false }
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
    ///
    /// # Errors
    /// [`Violation`]: acknowledged clocks do not count (G1), or there are more than were attempted (G2).
    pub fn removed(&mut self, worker: usize, removal: u64, at: u64) -> Result<(), Violation> {
        let progress = &mut self.workers[worker];
        if removal <= progress.removal {
            return Ok(());
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
        (progress.inherited, progress.removed) = (at, true);
        Ok(())
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
        progress.removed = false;
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
mod tests {
    use super::*;

    /// Two workers that have attempted two clocks each, one acknowledged, and the row as it should be.
    fn oracle(staleness: u64) -> (UnitVectors, Vec<i64>) {
        let mut oracle = UnitVectors::new(2, staleness, 1);
        let mut row = vec![0; 4];
        for worker in 0..2 {
            oracle.registered(worker, Registered::new(1, 0)).unwrap();
            for clock in 0..2 {
                row[worker] += 1;
                row[2 + worker] += oracle.attempt(worker, clock);
            }
            oracle.acknowledged(worker, 1, 1).unwrap();
        }
        (oracle, row)
    }

    #[test]
    fn reads_at_the_same_time_have_no_order_and_later_ones_of_any_thread_see_as_much_as_all_of_them() {
        let (mut oracle, row) = oracle(9);
        let mut older = row.clone();
        (older[1], older[3]) = (0, 0);
        oracle.read_together(0, &[(2, 7, &row[..]), (2, 7, &older[..])]).unwrap();
        let later = oracle.read_together(0, &[(2, 7, &row[..]), (2, 7, &older[..])]).unwrap_err();
        assert!(later.to_string().contains("seen before 2"), "{later}");
        assert_eq!(oracle.reads(), 2);
    }

    #[test]
    fn what_is_allowed_passes() {
        let (mut oracle, row) = oracle(1);
        oracle.read(0, 2, 7, &row).unwrap();
        oracle.final_row(7, &row, 2).unwrap();
        assert_eq!((oracle.reads(), oracle.width(), oracle.attempted(0), oracle.acked(0)), (1, 4, 2, 1));
    }

    #[test]
    fn counts_out_of_bounds_are_named() {
        let (mut oracle, row) = oracle(0);
        let mut says = |column: usize, value: i64| {
            let mut row = row.clone();
            row[column] = value;
            oracle.read(0, 2, 7, &row).unwrap_err().to_string()
        };
        assert!(says(0, 1).contains("read 1 clocks of worker 0 in row 7; expected 2 to 2"), "own writes");
        assert!(says(1, 1).contains("expected 2 to 2"), "staleness");
        assert!(says(1, 3).contains("expected 2 to 2"), "more than attempted");
        assert!(says(1, -1).contains("read -1 clocks"));
        assert!(says(3, 0).contains("with marks 0"), "another attempt");
    }

    #[test]
    fn a_row_never_goes_back() {
        let (mut oracle, mut row) = oracle(9);
        oracle.read(0, 2, 7, &row).unwrap();
        row[1] = 1;
        assert!(oracle.read(0, 2, 7, &row).unwrap_err().to_string().contains("seen before 2"));
        // Another row may lag, and so may what a new session sees.
        row[3] = oracle.workers[1].after(1).1;
        oracle.read(0, 2, 8, &row).unwrap();
        oracle.registered(0, Registered::new(2, 2)).unwrap();
        oracle.read(0, 2, 7, &row).unwrap();
    }

    #[test]
    fn a_session_begins_between_what_is_acknowledged_and_what_was_attempted() {
        let (oracle, _) = oracle(0);
        assert!(
            oracle
                .clone()
                .registered(0, Registered::new(2, 0))
                .unwrap_err()
                .to_string()
                .contains("1 clocks were acknowledged")
        );
        assert!(oracle.clone().registered(0, Registered::new(2, 3)).unwrap_err().to_string().contains("2 attempted"));
        let mut resumed = oracle.clone();
        resumed.registered(0, Registered::new(2, 1)).unwrap();
        assert_eq!(resumed.attempted(0), 1);
    }

    #[test]
    fn the_end_is_exact() {
        let (oracle, mut row) = oracle(0);
        assert!(oracle.final_row(7, &row, 1).is_err());
        row[2] += 1;
        assert!(oracle.final_row(7, &row, 2).unwrap_err().to_string().contains("marks"));
        assert!(oracle.final_row(7, &row[1..], 2).unwrap_err().to_string().contains("3 columns"));
    }

    #[test]
    fn clocks_lost_in_a_removal_count_nowhere_and_those_kept_do() {
        let (mut oracle, row) = oracle(0);
        let rejoined = Registered { incarnation: 3, start: 5, rejoined_from: Some(1) };
        oracle.registered(0, rejoined).unwrap();
        let marks = oracle.workers[0].after(5).1;
        let mut now = row.clone();
        (now[0], now[2]) = (1, marks);
        oracle.read(1, 2, 7, &now).unwrap();
        assert!(oracle.read(1, 2, 7, &row).is_err(), "a lost clock is there");
        now[0] += 1;
        now[2] += oracle.attempt(0, 5);
        oracle.read(1, 2, 7, &now).unwrap();
        let mut told = oracle.clone();
        told.removed(0, 4, 5).unwrap();
        assert!(!told.is_latest(0, 3) && told.acknowledged(0, 3, 6).is_err(), "its last clock does not count");
        // Joined at 9 and removed there, before anybody heard of it.
        told.removed(0, 6, 9).unwrap();
        told.registered(0, Registered { incarnation: 7, start: 11, rejoined_from: Some(9) }).unwrap();
        assert!(told.is_latest(0, 7) && told.attempted(0) == 11);
        assert!(oracle.clone().removed(0, 4, 4).is_err(), "the clock at which it began is known to count");
        let early = Registered { incarnation: 4, start: 6, rejoined_from: Some(4) };
        assert!(oracle.registered(0, early).is_err(), "the clock at which it began is known to count");
    }

    #[test]
    fn what_a_replaced_session_has_acknowledged_must_count() {
        let (mut oracle, _) = oracle(0);
        oracle.registered(0, Registered::new(2, 1)).unwrap();
        assert!(oracle.is_latest(0, 2) && !oracle.is_latest(0, 1));
        oracle.acknowledged(0, 1, 1).unwrap();
        assert!(oracle.acknowledged(0, 1, 2).unwrap_err().to_string().contains("its successor 2 found 1"));
        // Its registration heard late changes nothing.
        oracle.registered(0, Registered::new(1, 0)).unwrap();
        assert!(oracle.is_latest(0, 2));
    }
}
