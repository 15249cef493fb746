//! What a caller may set, with defaults and bounds.

use petuum_net::transport::{Connector, Tcp};
use petuum_types::{Error, ErrorKind, limits};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// Settings and components of a client.
#[derive(Clone)]
pub struct Options {
    /// How long any call waits before it ends in a typed error; at least 100 ms.
    pub deadline: Duration,
    /// How long a read waits for one replica before it asks the next one too; 10 ms or more.
    pub hedge_after: Duration,
    /// Pause before something refused for now is tried again; 1 ms or more. Half of it is drawn at random.
    pub retry_pause: Duration,
    /// How long a commit stream may be silent while answers are due before it is given up; 500 ms or more.
    pub stall_after: Duration,
    /// How connections are made.
    pub connector: Arc<dyn Connector>,
    /// Seed of request ids and pauses.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            hedge_after: Duration::from_millis(100),
            retry_pause: Duration::from_millis(40),
            stall_after: Duration::from_secs(2),
            connector: Arc::new(Tcp),
            // The standard library draws a hasher's keys from the operating system.
            seed: RandomState::new().build_hasher().finish(),
        }
    }
}

impl Options {
    /// Whether every setting is within its bounds.
    ///
    /// # Errors
    /// `InvalidArgument` naming the first that is not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let least = [
            ("deadline", self.deadline, 100),
            ("hedge_after", self.hedge_after, 10),
            ("retry_pause", self.retry_pause, 1),
            ("stall_after", self.stall_after, 500),
        ];
        match least.iter().find(|(_, set, least)| *set < Duration::from_millis(*least)) {
            Some((name, set, least)) => {
                let message = format!("{name} = {set:?} in a client's options; expected {least} ms or more");
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// Settings of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Threads that share the worker's cache and end clocks together, 1 or more.
    pub threads: u32,
    /// Come back after a removal, at the join clock; what the worker had done past its removal is lost (P17).
    pub rejoin: bool,
    /// Clocks that may wait unacknowledged, less one (P6); bounded by the tables' staleness too.
    pub window_clocks: u64,
    /// Bytes that may wait unacknowledged before `clock()` blocks.
    pub unacked_bytes: usize,
    /// Bytes of cached rows.
    pub cache_bytes: usize,
    /// Bytes of a part; 64 to 1 MiB.
    pub part_bytes: usize,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            rejoin: false,
            window_clocks: limits::WINDOW_CLOCKS,
            unacked_bytes: limits::UNACKED_BYTES,
            cache_bytes: limits::CACHE_BYTES,
            part_bytes: limits::PART_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_their_bounds_are_named() {
        assert_eq!(Options::default().check(), Ok(()));
        let error = Options { deadline: Duration::from_millis(99), ..Options::default() }.check().unwrap_err();
        assert!(error.message().contains("deadline = 99ms") && error.message().contains("100 ms or more"), "{error}");
        let error = Options { stall_after: Duration::ZERO, ..Options::default() }.check().unwrap_err();
        assert!(error.message().contains("stall_after"), "{error}");
    }
}
