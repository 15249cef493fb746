//! What is remembered of clocks that are being given up. How they are, and why, is in `abort`.

use petuum_types::outcome::Refusal;
use petuum_types::{Clock, Error, ErrorKind};

/// Clocks being given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Abort {
    /// The first.
    pub(super) from: Clock,
    /// One past the last.
    pub(super) end: Clock,
    pub(super) refusal: Refusal,
    /// Aborts not acknowledged, in all lanes.
    pub(super) open: usize,
}

impl Abort {
    pub(super) fn in_progress(&self) -> Error {
        let message = format!(
            "{} was refused and is being given up ({} shards have not confirmed): {}",
            self.from, self.open, self.refusal
        );
        Error::new(ErrorKind::Unavailable, message)
    }
}
