//! Which examples are whose: example `i` belongs to worker `i mod N`.
//!
//! A pure function of positions, so that every worker finds its part without talking to anybody, and a restarted
//! worker finds the same part again. Threads of a worker subdivide its part by position within it.

use petuum_types::WorkerId;

/// One part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    part: u64,
    parts: u64,
}

impl Partition {
    /// Every example.
    pub const WHOLE: Self = Self { part: 0, parts: 1 };
    /// No example: reading it finds out the shape of a data set and checks the files.
    pub const NONE: Self = Self { part: 1, parts: 1 };

    /// A worker's part.
    ///
    /// # Panics
    /// Unless `worker < workers`.
    #[must_use]
    pub fn of(worker: WorkerId, workers: u32) -> Self {
        assert!(worker.0 < workers, "{worker} of {workers} workers; expected one below");
        Self { part: u64::from(worker.0), parts: u64::from(workers) }
    }

    /// Whether an example belongs to this part.
    #[must_use]
    pub const fn owns(self, example: u64) -> bool {
        example % self.parts == self.part
    }

    /// How many of `total` examples belong to this part.
    #[must_use]
    pub const fn count(self, total: u64) -> u64 {
        if self.part >= self.parts { 0 } else { (total + self.parts - 1 - self.part) / self.parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_cover() {
        for workers in 1..6u32 {
            for total in 0..20u64 {
                let parts: Vec<_> = (0..workers).map(|w| Partition::of(WorkerId(w), workers)).collect();
                assert!((0..total).all(|i| parts.iter().filter(|p| p.owns(i)).count() == 1));
                for part in parts {
                    assert_eq!(part.count(total), (0..total).filter(|i| part.owns(*i)).count() as u64);
                }
            }
        }
        assert_eq!((Partition::NONE.count(9), Partition::NONE.owns(0)), (0, false));
    }
}
