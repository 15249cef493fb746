//! What a session has done so far, in figures.

use petuum_session::Counters;
use std::collections::BTreeMap;
use std::time::Duration;

/// Figures of a session since its registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionReport {
    /// Clocks this worker has ended.
    pub clocks: u64,
    /// Clocks acknowledged.
    pub acked: u64,
    /// Messages sent, by kind, and answers of every kind.
    pub counters: CounterReport,
    /// How often a shard's messages were decided by another node than before.
    pub failovers: u64,
    /// The longest time from a call of `clock()`, of the worker's last thread, to the acknowledgement of its first tick; what
    /// the call waited for room and for slower workers (P6) is in it.
    pub longest_commit_gap: Duration,
    /// How long ago the last call that kept the worker's lease was begun: a heartbeat that was answered, or the registration.
    pub since_renewal: Duration,
    /// Rows read from servers and answered from the cache.
    pub rows_read: u64,
    /// Rows the cache could show.
    pub rows_cached: u64,
    /// How often a row was shown whose min clock minus its reader's clock was the key.
    pub clock_differentials: BTreeMap<i64, u64>,
}

/// The committer's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterReport {
    /// Parts sent for the first time.
    pub stages: u64,
    /// Their bytes.
    pub stage_bytes: u64,
    /// Ticks sent for the first time.
    pub ticks: u64,
    /// Aborts sent for the first time.
    pub aborts: u64,
    /// Messages sent again.
    pub retries: u64,
    /// Answers to messages that had been answered: what the servers recognised as repeats.
    pub repeats: u64,
    /// Answers that asked for another attempt.
    pub retry_answers: u64,
}

impl From<Counters> for CounterReport {
    fn from(c: Counters) -> Self {
        Self {
            stages: c.stages,
            stage_bytes: c.stage_bytes,
            ticks: c.ticks,
            aborts: c.aborts,
            retries: c.retries,
            repeats: c.repeats,
            retry_answers: c.retry_answers,
        }
    }
}
