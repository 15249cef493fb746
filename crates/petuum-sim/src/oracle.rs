//! What a worker may read of a table of unit vectors, and what must be left of it in the end.
//!
//! Every row has two columns per worker. In each clock a worker adds 1 to its own count column and a *mark*, drawn anew
//! for each attempt, to its mark column, in every row. So each column of a row tells exactly which clocks of which
//! worker it contains, and the mark whether they are those of the attempt that was committed: a clock counted twice,
//! lost, half applied or mixed from two attempts shows in a single read (G1-G5). Pure: no time, no I/O.
//!
//! A read by `p` at clock `c` under staleness `s` shows of worker `q` at least `c - s` clocks (G4), of `p` itself exactly
//! what it has done (G5), never less than the same session of `p` has seen of that row (G5), and never more than `q` has
//! attempted (G2).

use std::collections::BTreeMap;
use std::ops::Range;

/// Marks are drawn from here; large, so that sums of different marks differ.
const MARKS: Range<i64> = 1..1 << 40;

/// A rule of the oracle that a run has broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

/// What one worker has done so far.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Marks of the clocks attempted, the latest attempt of each: clock `c`'s is at `c`.
    marks: Vec<i64>,
    /// Clocks known to be acknowledged.
    acked: u64,
}

impl Progress {
    fn attempted(&self) -> u64 {
        self.marks.len() as u64
    }
}

/// The oracle of one table.
#[derive(Clone, Debug)]
pub struct UnitVectors {
    staleness: u64,
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
            workers: vec![Progress::default(); workers],
            seen: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
            reads: 0,
        }
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

    /// Clocks of a worker that have been attempted.
    #[must_use]
    pub fn attempted(&self, worker: usize) -> u64 {
        self.workers[worker].attempted()
    }

    /// A worker's new session was told to begin at `start`: every clock before it counts, none from it on does.
    ///
    /// # Errors
    /// [`Violation`]: acknowledged clocks are missing (G1), or there are more than were attempted (G2).
    pub fn registered(&mut self, worker: usize, start: u64) -> Result<(), Violation> {
        let progress = &mut self.workers[worker];
        if !(progress.acked..=progress.attempted()).contains(&start) {
            return Err(Violation(format!(
                "worker {worker} begins at clock {start}; {} clocks were acknowledged and {} attempted",
                progress.acked,
                progress.attempted()
            )));
        }
        progress.marks.truncate(usize::try_from(start).expect("clocks that were attempted"));
        progress.acked = start;
        self.seen.retain(|(reader, _), _| *reader != worker);
        Ok(())
    }

    /// A worker is about to update clock `clock`; returns the mark to add.
    ///
    /// # Panics
    /// If the clock before it was not attempted.
    pub fn attempt(&mut self, worker: usize, clock: u64) -> i64 {
        let marks = &mut self.workers[worker].marks;
        assert_eq!(marks.len() as u64, clock, "clocks are attempted in order, each once by a session");
        let mark = self.random.i64(MARKS);
        marks.push(mark);
        mark
    }

    /// A worker's first `clocks` clocks are acknowledged.
    pub fn acknowledged(&mut self, worker: usize, clocks: u64) {
        let progress = &mut self.workers[worker];
        assert!(clocks <= progress.attempted(), "an acknowledgement of what was not sent");
        progress.acked = progress.acked.max(clocks);
    }

    /// A worker at `clock` has read a row.
    ///
    /// # Errors
    /// [`Violation`] naming row, column, and what was allowed.
    pub fn read(&mut self, reader: usize, clock: u64, row: u64, values: &[i64]) -> Result<(), Violation> {
        let count = self.workers.len();
        if values.len() != 2 * count {
            return Err(Violation(format!("row {row} has {} columns; expected {}", values.len(), 2 * count)));
        }
        self.reads += 1;
        let seen = self.seen.entry((reader, row)).or_insert_with(|| vec![0; count]);
        for (worker, progress) in self.workers.iter().enumerate() {
            let value = values[worker];
            let attempted = progress.attempted();
            let stale = clock.saturating_sub(self.staleness);
            let low = if worker == reader { attempted } else { stale.max(seen[worker].cast_unsigned()) };
            let clocks = u64::try_from(value).ok().filter(|clocks| (low..=attempted).contains(clocks));
            let Some(clocks) = clocks else {
                return Err(Violation(format!(
                    "worker {reader} at clock {clock} read {value} clocks of worker {worker} in row {row}; expected \
                     {low} to {attempted} (staleness {}, seen before {})",
                    self.staleness, seen[worker]
                )));
            };
            seen[worker] = value;
            check_mark(progress, worker, clocks, row, values[count + worker])?;
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
        for (worker, progress) in self.workers.iter().enumerate() {
            let value = values[worker];
            if u64::try_from(value) != Ok(clocks) {
                return Err(Violation(format!(
                    "in the end row {row} holds {value} clocks of worker {worker}; expected {clocks}"
                )));
            }
            check_mark(progress, worker, clocks, row, values[count + worker])?;
        }
        Ok(())
    }
}

fn check_mark(progress: &Progress, worker: usize, clocks: u64, row: u64, mark: i64) -> Result<(), Violation> {
    let committed = &progress.marks[..usize::try_from(clocks).expect("at most those attempted")];
    let expected: i64 = committed.iter().sum();
    if mark == expected {
        return Ok(());
    }
    Err(Violation(format!(
        "row {row} holds {clocks} clocks of worker {worker} with marks {mark}; expected {expected}: updates of an attempt \
         that was not committed, or of only a part of one"
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
            oracle.registered(worker, 0).unwrap();
            for clock in 0..2 {
                row[worker] += 1;
                row[2 + worker] += oracle.attempt(worker, clock);
            }
            oracle.acknowledged(worker, 1);
        }
        (oracle, row)
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
        row[3] = oracle.workers[1].marks[0];
        oracle.read(0, 2, 8, &row).unwrap();
        oracle.registered(0, 2).unwrap();
        oracle.read(0, 2, 7, &row).unwrap();
    }

    #[test]
    fn a_session_begins_between_what_is_acknowledged_and_what_was_attempted() {
        let (oracle, _) = oracle(0);
        assert!(oracle.clone().registered(0, 0).unwrap_err().to_string().contains("1 clocks were acknowledged"));
        assert!(oracle.clone().registered(0, 3).unwrap_err().to_string().contains("2 attempted"));
        let mut resumed = oracle.clone();
        resumed.registered(0, 1).unwrap();
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
}
