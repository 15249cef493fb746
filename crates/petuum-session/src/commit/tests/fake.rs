//! One shard as far as one worker sees it: the least that keeps P2-P4.

use bytes::Bytes;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::{Outcome, Refusal, Retry};
use petuum_types::{Clock, Sequence};
use std::collections::BTreeMap;

/// A payload that starts so is refused in apply.
pub(super) const BAD: u8 = b'!';

#[derive(Clone, Debug)]
pub(super) struct FakeShard {
    /// Every message taken, by sequence, and what was answered.
    log: Vec<(WorkerMessage, Outcome)>,
    pub(super) clock: Clock,
    pub(super) staged: BTreeMap<Clock, BTreeMap<u32, Bytes>>,
    /// What each tick applied.
    pub(super) applied: Vec<(Clock, Vec<Bytes>)>,
    staged_bytes_max: usize,
}

impl FakeShard {
    pub(super) const fn new(clock: Clock, staged_bytes_max: usize) -> Self {
        Self { log: Vec::new(), clock, staged: BTreeMap::new(), applied: Vec::new(), staged_bytes_max }
    }

    pub(super) fn take(&mut self, message: &WorkerMessage) -> Outcome {
        let next = self.log.len() as u64;
        if message.sequence.0 > next {
            return Outcome::Retry(Retry::Gap { expected: Sequence(next) });
        }
        if message.sequence.0 < next {
            let (taken, outcome) = &self.log[usize::try_from(message.sequence.0).unwrap()];
            assert_eq!(taken, message, "two contents never share a sequence");
            return if message.has_part() && *outcome == Outcome::Accepted && message.clock < self.clock {
                Outcome::Ticked
            } else {
                outcome.clone()
            };
        }
        let outcome = self.apply(message);
        self.log.push((message.clone(), outcome.clone()));
        outcome
    }

    fn apply(&mut self, message: &WorkerMessage) -> Outcome {
        let clock = message.clock;
        if clock < self.clock {
            return Outcome::Ticked;
        }
        if message.kind == Kind::Abort {
            self.staged.remove(&clock);
            return Outcome::Accepted;
        }
        if message.has_part() {
            if message.payload.first() == Some(&BAD) {
                return Outcome::Refused(Refusal::Malformed("bad".into()));
            }
            let held: usize = self.staged.values().flat_map(BTreeMap::values).map(Bytes::len).sum();
            assert!(held + message.payload.len() <= self.staged_bytes_max, "the committer keeps the staging limit");
            let earlier = self.staged.entry(clock).or_default().insert(message.count, message.payload.clone());
            assert_eq!(earlier, None, "a part is staged once per attempt");
        }
        if message.kind != Kind::Stage {
            return self.tick(message);
        }
        Outcome::Accepted
    }

    fn tick(&mut self, message: &WorkerMessage) -> Outcome {
        assert_eq!(message.clock, self.clock, "ticks go in clock order");
        let parts: Vec<Bytes> = self.staged.remove(&self.clock).unwrap_or_default().into_values().collect();
        if message.kind == Kind::Tick {
            assert_eq!(parts.len(), message.count as usize, "a tick names the parts that are held");
        }
        self.applied.push((self.clock, parts));
        self.clock = self.clock.next();
        Outcome::Accepted
    }
}
