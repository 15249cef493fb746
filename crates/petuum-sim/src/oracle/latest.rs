//! Reads without a session that ask for what is acknowledged (P12): they hold every clock that was ticked everywhere before
//! they were asked, whoever leads by then.

use super::{UnitVectors, Violation, check_marks};

/// What a read that is asked now must hold of each worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floors(Vec<i64>);

impl UnitVectors {
    /// A session of a worker knows that its first `clocks` clocks are ticked in every shard.
    pub fn flushed(&mut self, worker: usize, incarnation: u64, clocks: u64) {
        if self.is_latest(worker, incarnation) {
            let progress = &mut self.workers[worker];
            progress.flushed = progress.flushed.max(clocks);
        }
    }

    /// To be taken before the read is asked.
    #[must_use]
    pub fn floors(&self) -> Floors {
        Floors(self.workers.iter().map(|progress| progress.after(progress.flushed).0).collect())
    }

    /// A row as somebody without a session has read it.
    ///
    /// # Errors
    /// [`Violation`] naming row, column, and what was allowed.
    pub fn read_latest(&mut self, row: u64, values: &[i64], floors: &Floors) -> Result<(), Violation> {
        let count = self.workers.len();
        if values.len() != 2 * count {
            return Err(Violation(format!("row {row} has {} columns; expected {}", values.len(), 2 * count)));
        }
        for (worker, progress) in self.workers.iter().enumerate().filter(|(_, progress)| !progress.unknown) {
            let (value, least, most) = (values[worker], floors.0[worker], progress.after(progress.attempted()).0);
            let marks = progress.marks_of(value, 0).filter(|_| (least..=most).contains(&value));
            let Some(marks) = marks else {
                return Err(Violation(format!(
                    "a read of the latest row {row} shows {value} clocks of worker {worker}; expected {least} to {most}"
                )));
            };
            check_marks(worker, row, value, values[count + worker], marks)?;
        }
        self.reads += 1;
        Ok(())
    }
}
