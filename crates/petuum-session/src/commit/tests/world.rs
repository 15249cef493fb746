//! Random worlds: one committer, a few shards, and a network that loses, doubles, re-orders and refuses.
//!
//! Oracles: each part of a committed clock is applied exactly once, all shards apply a clock or none does, no tick is
//! sent before all parts of its clock are held (P3), an acknowledged clock is ticked everywhere in the end (G2), a clock
//! given up leaves nothing behind (P4), and there is always something to send or to wait for (G8).

use super::fake::{BAD, FakeShard};
use super::*;
use petuum_types::Sequence;
use petuum_types::message::Kind;
use petuum_types::outcome::{Outcome, Retry};
use proptest::prelude::*;
use std::collections::BTreeSet;

const STAGED_BYTES: usize = 40;

struct World {
    committer: Committer,
    shards: BTreeMap<ShardId, FakeShard>,
    requests: Vec<(ShardId, WorkerMessage)>,
    replies: Vec<(ShardId, Sequence, Outcome)>,
    /// Lanes of which a message or an answer was lost: some timer of the transport will notice.
    broken: BTreeSet<ShardId>,
    paused: BTreeSet<ShardId>,
    /// The parts of each clock's last attempt.
    wanted: BTreeMap<Clock, BTreeMap<ShardId, Vec<Bytes>>>,
    acknowledged: Clock,
    attempt: u8,
}

impl World {
    fn new(shards: u32, staleness: u32) -> Self {
        let settings = Settings {
            staged_bytes: STAGED_BYTES,
            lane_in_flight_messages: 4,
            lane_in_flight_bytes: 350,
            unacked_bytes: 90,
            ..Settings::new(Staleness(staleness))
        };
        let start = session(shards, 5);
        let fakes = start.shards.iter().map(|shard| (*shard, FakeShard::new(Clock(5), STAGED_BYTES))).collect();
        Self {
            committer: Committer::new(start, settings),
            shards: fakes,
            requests: Vec::new(),
            replies: Vec::new(),
            broken: BTreeSet::new(),
            paused: BTreeSet::new(),
            wanted: BTreeMap::new(),
            acknowledged: Clock(5),
            attempt: 0,
        }
    }

    fn shard(&self, pick: u8) -> ShardId {
        ShardId(u32::from(pick) % u32::try_from(self.shards.len()).unwrap())
    }

    fn step(&mut self, action: u8, pick: u8) {
        let shard = self.shard(pick);
        match action {
            0..40 => self.commit(pick),
            40..90 => drop(self.send(shard)),
            90..150 => self.deliver_request(pick, pick & 0xe0 == 0),
            150..205 => self.deliver_reply(pick, pick & 0xe0 == 0),
            205..215 => self.lose_request(pick),
            215..225 => self.lose_reply(pick),
            225..235 => self.answer_early(pick),
            235..245 => self.reconnect(shard),
            _ => self.resume(shard),
        }
    }

    /// Up to three parts, spread by the bits of `pick`; one in eight is bad.
    fn commit(&mut self, pick: u8) {
        let clock = self.committer.next_clock();
        let mut parts: BTreeMap<ShardId, Vec<Bytes>> = BTreeMap::new();
        for part in 0..pick % 4 {
            self.attempt = self.attempt.wrapping_add(1);
            let bad = pick & 0x1c == 0x1c && part == 0;
            let payload =
                vec![if bad { BAD } else { b'.' }, part, self.attempt, u8::try_from(clock.0).unwrap(), 0, 0, 0];
            parts.entry(self.shard(pick >> (2 * part + 1))).or_default().push(Bytes::from(payload));
        }
        let room = self.committer.room();
        let result = self.committer.commit(clock, parts.clone());
        assert_eq!(result.is_ok(), room, "{result:?}");
        if room {
            self.wanted.insert(clock, parts);
        }
    }

    fn send(&mut self, shard: ShardId) -> bool {
        let Some(message) = self.committer.next_message(shard) else { return false };
        if message.kind == Kind::Tick {
            for (shard, parts) in &self.wanted[&message.clock] {
                let fake = &self.shards[shard];
                let held = fake.staged.get(&message.clock).map_or(0, BTreeMap::len);
                assert!(fake.clock > message.clock || held == parts.len(), "P3: {message:?}, {shard} holds {held}");
            }
        }
        self.requests.push((shard, message));
        true
    }

    fn deliver_request(&mut self, pick: u8, doubled: bool) {
        if self.requests.is_empty() {
            return;
        }
        let at = usize::from(pick) % self.requests.len();
        let (shard, message) = if doubled { self.requests[at].clone() } else { self.requests.remove(at) };
        let outcome = self.shards.get_mut(&shard).unwrap().take(&message);
        self.replies.push((shard, message.sequence, outcome));
    }

    fn deliver_reply(&mut self, pick: u8, doubled: bool) {
        if self.replies.is_empty() {
            return;
        }
        let at = usize::from(pick) % self.replies.len();
        let (shard, sequence, outcome) = if doubled { self.replies[at].clone() } else { self.replies.remove(at) };
        for event in self.committer.on_outcome(shard, sequence, &outcome) {
            self.check(event);
        }
    }

    fn check(&mut self, event: Event) {
        match event {
            Event::Acknowledged { clock } => {
                assert_eq!(clock, self.acknowledged);
                assert!(self.shards.values().any(|shard| shard.clock > clock));
                self.acknowledged = clock.next();
            }
            Event::TickedEverywhere { clock } => assert!(self.shards.values().all(|shard| shard.clock > clock)),
            Event::Aborted { clock, end, .. } => {
                assert_eq!(self.wanted.split_off(&clock).len() as u64, end.0 - clock.0);
                for shard in self.shards.values() {
                    assert!(shard.clock <= clock && shard.staged.range(clock..).next().is_none(), "P4: {shard:?}");
                }
            }
            Event::Backoff { shard, .. } => drop(self.paused.insert(shard)),
            other => panic!("{other:?}"),
        }
    }

    fn lose_request(&mut self, pick: u8) {
        if !self.requests.is_empty() {
            let (shard, _) = self.requests.remove(usize::from(pick) % self.requests.len());
            self.broken.insert(shard);
        }
    }

    fn lose_reply(&mut self, pick: u8) {
        if !self.replies.is_empty() {
            let (shard, ..) = self.replies.remove(usize::from(pick) % self.replies.len());
            self.broken.insert(shard);
        }
    }

    /// A leader answers before apply; "unknown" may have been applied.
    fn answer_early(&mut self, pick: u8) {
        if self.requests.is_empty() {
            return;
        }
        let (shard, message) = self.requests.remove(usize::from(pick >> 2) % self.requests.len());
        let retry = match pick % 4 {
            0 => Retry::Busy(String::new()),
            1 => Retry::Unregistered,
            2 => Retry::NotLeader { leader: None },
            _ => {
                self.shards.get_mut(&shard).unwrap().take(&message);
                Retry::Unknown(String::new())
            }
        };
        self.replies.push((shard, message.sequence, Outcome::Retry(retry)));
    }

    fn reconnect(&mut self, shard: ShardId) {
        self.committer.on_lost(shard);
        self.broken.remove(&shard);
        self.paused.remove(&shard);
    }

    fn resume(&mut self, shard: ShardId) {
        self.committer.resume(shard);
        self.paused.remove(&shard);
    }

    /// The network is mended: all must end, without a timer unless something was lost.
    fn settle(&mut self) {
        let shards: Vec<ShardId> = self.shards.keys().copied().collect();
        for _ in 0..10_000 {
            let sent = shards.iter().filter(|shard| self.send(**shard)).count();
            if sent == 0 && self.requests.is_empty() && self.replies.is_empty() {
                if self.committer.flushed() {
                    return self.check_end();
                }
                let waiting: Vec<_> = self.paused.union(&self.broken).copied().collect();
                assert!(!waiting.is_empty(), "stuck: {:#?}", self.committer);
                assert!(!self.committer.waiting_for().is_empty(), "it says whom it waits for");
                waiting.into_iter().for_each(|shard| self.reconnect(shard));
            }
            while !self.requests.is_empty() {
                self.deliver_request(0, false);
            }
            while !self.replies.is_empty() {
                self.deliver_reply(0, false);
            }
        }
        panic!("no end: {:#?}", self.committer);
    }

    fn check_end(&self) {
        assert_eq!(self.committer.acked(), self.committer.next_clock());
        assert!(self.committer.waiting_for().is_empty());
        for (id, shard) in &self.shards {
            assert_eq!(shard.clock, self.committer.next_clock(), "all shards or none");
            assert!(shard.staged.is_empty());
            let wanted: Vec<(Clock, Vec<Bytes>)> = (self.wanted.iter())
                .map(|(clock, parts)| (*clock, parts.get(id).cloned().unwrap_or_default()))
                .collect();
            assert_eq!(shard.applied, wanted, "each part of each clock once");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn g2_every_clock_once_in_all_shards_or_in_none(
        shards in 1u32..4,
        staleness in 0u32..4,
        actions in prop::collection::vec(any::<(u8, u8)>(), 0..500),
    ) {
        let mut world = World::new(shards, staleness);
        for (action, pick) in actions {
            world.step(action, pick);
        }
        world.settle();
    }
}
