//! What a worker's session may read of a row (G2, G4, G5), and what it has seen.

use std::collections::BTreeMap;

use super::{UnitVectors, Violation, check_marks};

/// What a worker's session has seen up to a moment: by row, of each worker how many clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<u64, Vec<i64>>);

impl Seen {
    fn add(&mut self, row: u64, counts: &[i64]) {
        let seen = self.0.entry(row).or_insert_with(|| vec![0; counts.len()]);
        seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen = (*seen).max(*count));
    }

    /// Its own updates were seen before they were sent; those beyond `count` are gone.
    pub(super) fn forget_beyond(&mut self, worker: usize, count: i64) {
        self.0.values_mut().for_each(|seen| seen[worker] = seen[worker].min(count));
    }
}

impl UnitVectors {
    /// What a worker's session has seen so far: a read that begins now may show no less.
    #[must_use]
    pub fn seen(&self, reader: usize) -> Seen {
        self.seen[reader].clone()
    }

    /// A worker's latest session, at `clock`, has read a row, and none of its other reads ended meanwhile.
    ///
    /// # Errors
    /// [`Violation`] naming row, column, and what was allowed.
    pub fn read(&mut self, reader: usize, clock: u64, row: u64, values: &[i64]) -> Result<(), Violation> {
        self.read_since(reader, &self.seen(reader), &[(clock, row, values)])
    }

    /// A thread of a worker's latest session has read rows: (clock, row, values) of each. When it began, the session had
    /// `seen` that much; what other threads have read since is in no order with it. Nothing was added meanwhile.
    ///
    /// # Errors
    /// [`Violation`] naming row, column, and what was allowed.
    pub fn read_since(&mut self, reader: usize, seen: &Seen, reads: &[(u64, u64, &[i64])]) -> Result<(), Violation> {
        let count = self.workers.len();
        reads.iter().try_for_each(|(clock, row, values)| self.judge(reader, *clock, *row, values, seen))?;
        reads.iter().for_each(|(_, row, values)| self.seen[reader].add(*row, &values[..count]));
        self.reads += reads.len() as u64;
        Ok(())
    }

    /// One read, against what was seen before.
    fn judge(&self, reader: usize, clock: u64, row: u64, values: &[i64], seen: &Seen) -> Result<(), Violation> {
        let count = self.workers.len();
        if values.len() != 2 * count {
            return Err(Violation(format!("row {row} has {} columns; expected {}", values.len(), 2 * count)));
        }
        let seen = seen.0.get(&row);
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
}
