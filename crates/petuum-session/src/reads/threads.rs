//! The clocks of a worker's threads. The worker's is the least of them.
//!
//! Invariant: no thread is before the worker, so that one tick finishes at most one clock.

use petuum_types::Clock;

/// Which clock each thread is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadClocks {
    clocks: Vec<Clock>,
}

impl ThreadClocks {
    /// All threads at the worker's start clock.
    ///
    /// # Panics
    /// Without a thread.
    #[must_use]
    pub fn new(threads: usize, start: Clock) -> Self {
        assert!(threads > 0, "a worker has at least one thread");
        Self { clocks: vec![start; threads] }
    }

    /// The thread ends its clock. The clock that the worker has finished with it, if this was the last thread in it.
    ///
    /// # Panics
    /// If there is no such thread, as all methods.
    pub fn tick(&mut self, thread: usize) -> Option<Clock> {
        let before = self.least();
        self.clocks[thread] = self.clocks[thread].next();
        (self.least() > before).then_some(before)
    }

    /// The thread's clock: it governs what its reads must contain.
    #[must_use]
    pub fn clock(&self, thread: usize) -> Clock {
        self.clocks[thread]
    }

    /// The worker's clock.
    #[must_use]
    pub fn least(&self) -> Clock {
        self.clocks.iter().copied().min().expect("there is a thread")
    }

    /// How many threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.clocks.len()
    }

    /// All threads go back to a clock that was given up (P4).
    pub(super) fn restart(&mut self, clock: Clock) {
        self.clocks.fill(clock);
    }
}
