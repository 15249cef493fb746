//! Figures of a session for reports. No rule reads them.

use petuum_types::message::Kind;
use std::hash::{Hash, Hasher};

/// How much a committer has sent, and how much of it again.
///
/// All counters are equal and hash alike: two committers that differ only in how often they had to repeat themselves
/// are in the same state, which keeps a model check finite.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Parts sent, each once.
    pub stages: u64,
    /// Bytes of those parts.
    pub stage_bytes: u64,
    /// Ticks sent, each once; a stage that ticks counts here and as a stage.
    pub ticks: u64,
    /// Aborts sent, each once.
    pub aborts: u64,
    /// Messages sent again, with the same bytes.
    pub retries: u64,
    /// Answers to messages that were answered already: the repeats that shards recognised and this side heard of.
    pub repeats: u64,
    /// Answers that asked to send again.
    pub retry_answers: u64,
}

impl Counters {
    pub(super) const fn sent(&mut self, kind: Kind, bytes: usize) {
        if matches!(kind, Kind::Stage | Kind::StageTick) {
            self.stages += 1;
            self.stage_bytes += bytes as u64;
        }
        if matches!(kind, Kind::Tick | Kind::StageTick) {
            self.ticks += 1;
        }
        if matches!(kind, Kind::Abort) {
            self.aborts += 1;
        }
    }
}

impl PartialEq for Counters {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Counters {}

impl Hash for Counters {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
