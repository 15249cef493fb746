//! Which shards of one commit stream owe answers, and for how long they have been silent.
//!
//! Each shard is judged by itself: one that hangs must not hide behind others that the same node answers for (G8).

use petuum_types::ShardId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What one node's stream is waited for.
pub(super) struct Silence {
    patience: Duration,
    shards: BTreeMap<ShardId, Waiting>,
}

struct Waiting {
    /// Messages sent and not answered.
    due: usize,
    /// When an answer came last, or when something was sent and nothing was due.
    heard: Instant,
    /// Given up how often in a row.
    stalls: u32,
}

impl Waiting {
    /// A slow node is not hurried: each stall in a row is waited for twice as long, up to eight times.
    fn end(&self, patience: Duration) -> Option<Instant> {
        (self.due > 0).then(|| self.heard + patience * (1 << self.stalls.min(3)))
    }
}

impl Silence {
    /// Nothing is due.
    pub(super) const fn new(patience: Duration) -> Self {
        Self { patience, shards: BTreeMap::new() }
    }

    /// A message for a shard has been sent.
    pub(super) fn sent(&mut self, shard: ShardId) {
        let now = Instant::now();
        let waiting = self.shards.entry(shard).or_insert(Waiting { due: 0, heard: now, stalls: 0 });
        if waiting.due == 0 {
            waiting.heard = now;
        }
        waiting.due += 1;
    }

    /// A shard has answered a message.
    pub(super) fn heard(&mut self, shard: ShardId) {
        if let Some(waiting) = self.shards.get_mut(&shard) {
            *waiting = Waiting { due: waiting.due.saturating_sub(1), heard: Instant::now(), stalls: 0 };
        }
    }

    /// When the next shard will have been silent for too long.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.shards.values().filter_map(|waiting| waiting.end(self.patience)).min()
    }

    /// The shards that have been silent for too long. Nothing is due from them any more: what they were sent is sent
    /// again, elsewhere.
    pub(super) fn give_up(&mut self) -> Vec<ShardId> {
        let (now, patience) = (Instant::now(), self.patience);
        let silent = self.shards.iter_mut().filter(|(_, waiting)| waiting.end(patience).is_some_and(|end| end <= now));
        silent
            .map(|(shard, waiting)| {
                (waiting.due, waiting.stalls) = (0, waiting.stalls + 1);
                *shard
            })
            .collect()
    }

    /// Whether any shard owes an answer.
    pub(super) fn is_due(&self) -> bool {
        self.shards.values().any(|waiting| waiting.due > 0)
    }

    /// The stream has ended; nothing is due on a new one. Who stalled before is still waited for longer.
    pub(super) fn ended(&mut self) {
        self.shards.values_mut().for_each(|waiting| waiting.due = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const PATIENCE: Duration = Duration::from_secs(2);
    const HANGS: ShardId = ShardId(0);
    const ANSWERS: ShardId = ShardId(1);

    #[tokio::test(start_paused = true)]
    async fn g8_a_silent_shard_does_not_hide_behind_others_that_answer() {
        let mut silence = Silence::new(PATIENCE);
        silence.sent(HANGS);
        for _ in 0..3 {
            silence.sent(ANSWERS);
            advance(PATIENCE / 2).await;
            silence.heard(ANSWERS);
        }
        assert_eq!(silence.give_up(), [HANGS]);
        assert!(!silence.is_due() && silence.give_up().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_that_stalls_again_is_waited_for_longer_until_it_answers() {
        let mut silence = Silence::new(PATIENCE);
        for times in [1, 2, 4, 8, 8] {
            silence.sent(HANGS);
            let end = Instant::now() + times * PATIENCE;
            assert_eq!(silence.next_end(), Some(end));
            advance(times * PATIENCE).await;
            assert_eq!(silence.give_up(), [HANGS]);
            silence.ended();
        }
        silence.sent(HANGS);
        silence.heard(HANGS);
        silence.sent(HANGS);
        assert_eq!(silence.next_end(), Some(Instant::now() + PATIENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_first_message_that_is_due() {
        let mut silence = Silence::new(PATIENCE);
        silence.sent(ANSWERS);
        silence.heard(ANSWERS);
        advance(10 * PATIENCE).await;
        silence.sent(ANSWERS);
        assert!(silence.give_up().is_empty());
    }
}
