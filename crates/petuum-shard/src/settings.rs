//! Limits that `apply` enforces.

use petuum_types::limits;

/// Limits that every replica of a shard must agree on, because [`crate::Shard::apply`] refuses by them: a replica with
/// others would come to another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Bytes of parts staged per worker in this shard (P2). Default and bound: [`limits::STAGED_BYTES_MAX`]. Too low, and
    /// large clocks are refused; memory is at most this times the job's workers.
    pub staged_bytes_max: usize,
    /// Refusals remembered per worker (P4); a client that acknowledges none of them is told to wait. Default and bound:
    /// [`limits::REFUSALS_MAX`].
    pub refusals_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { staged_bytes_max: limits::STAGED_BYTES_MAX, refusals_max: limits::REFUSALS_MAX }
    }
}
