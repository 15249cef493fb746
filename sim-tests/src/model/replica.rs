//! A shard as the model keeps it: the real machine, what it is compared by, and what the oracles look at.
//!
//! Two shards are the same to the model if their snapshots are, apart from log indices: the applied index, the index of
//! the last command, the index that last changed a row, and the sums made with them. No answer to a message or command
//! depends on those, and no read of the model names one, so that shards which differ in nothing else behave alike.

use super::bounds::{ATTEMPTS_MAX, CLOCKS_MAX};
use super::job::{JOB, JobPlan, TABLE, Tally, WORKERS, tally, tally_part};
use petuum_shard::{Applied, ReadOutcome, Shard};
use petuum_types::entry::Entry;
use petuum_types::read::Read;
use petuum_types::{Clock, LogIndex, codec};
use std::hash::{Hash, Hasher};

/// What the oracles look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) min_clock: u8,
    pub(super) members: [Member; WORKERS],
    /// Some update is in the rows more than once.
    pub(super) twice: bool,
}

/// A worker in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) incarnation: u64,
    pub(super) settled: bool,
    pub(super) live: bool,
    pub(super) clock: u8,
    /// Updates in the rows: a bit per clock, by attempt.
    pub(super) applied: [u8; ATTEMPTS_MAX as usize],
    /// Updates staged.
    pub(super) staged: [u8; ATTEMPTS_MAX as usize],
}

impl Member {
    /// The attempts whose update of a clock is in the rows.
    pub(super) fn applied_by(&self, clock: u8) -> impl Iterator<Item = usize> + '_ {
        (0..self.applied.len()).filter(move |attempt| self.applied[*attempt] & (1 << clock) != 0)
    }

    /// Clocks in the rows, of any attempt.
    pub(super) fn applied_clocks(&self) -> u8 {
        self.applied.iter().fold(0, |all, clocks| all | clocks)
    }

    /// Clocks staged, of any attempt.
    pub(super) fn staged_clocks(&self) -> u8 {
        self.staged.iter().fold(0, |all, clocks| all | clocks)
    }
}

/// A shard.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) shard: Shard,
    pub(super) facts: Facts,
    key: Vec<u8>,
}

impl PartialEq for Replica {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Replica {}

impl Hash for Replica {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl Replica {
    pub(super) fn new(shard: Shard, plan: &JobPlan) -> Self {
        let mut facts = Facts::default();
        // Of the head record, all but the indices; no table is dropped in a model.
        let mut key = codec::encode(&(shard.id(), shard.epoch(), shard.slots()));
        for (tag, body) in Records::of(&shard) {
            match tag {
                HEAD | END => {}
                ROW => {
                    key.extend_from_slice(&body[..CHANGED.start]);
                    key.extend_from_slice(&body[CHANGED.end..]);
                }
                _ => {
                    key.push(tag);
                    key.extend_from_slice(&(body.len() as u64).to_le_bytes());
                    key.extend_from_slice(&body);
                }
            }
            if tag == PART {
                let word = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().expect("within a part's head"));
                note_staged(&mut facts, small(word(8)), &tally_part(&body[PART_HEAD_BYTES..]));
            }
        }
        facts.min_clock = shard.min_clock(JOB).map_or(0, |clock| small(clock.0));
        for worker in shard.workers(JOB) {
            let member = &mut facts.members[worker.worker.0 as usize];
            member.incarnation = worker.incarnation.0;
            (member.settled, member.live, member.clock) = (worker.settled, worker.live, small(worker.clock.0));
        }
        note_applied(&mut facts, &rows(&shard, plan));
        Self { shard, facts, key }
    }

    /// The shard after one more entry, and its answer.
    pub(super) fn apply(&self, entry: &Entry) -> (Shard, Applied) {
        let mut shard = self.shard.clone();
        let index = LogIndex(shard.applied().0 + 1);
        let applied = shard.apply(index, entry);
        (shard, applied)
    }
}

fn small(clock: u64) -> u8 {
    u8::try_from(clock).expect("a model has few clocks")
}

fn note_staged(facts: &mut Facts, clock: u8, updates: &Tally) {
    for (member, attempts) in facts.members.iter_mut().zip(updates) {
        for (staged, clocks) in member.staged.iter_mut().zip(attempts) {
            let is_there = clocks.iter().any(|count| *count > 0);
            assert!(!is_there || clocks[usize::from(clock)] == 1, "a part staged for another clock than its updates'");
            *staged |= u8::from(is_there) << clock;
        }
    }
}

fn note_applied(facts: &mut Facts, updates: &Tally) {
    for (member, attempts) in facts.members.iter_mut().zip(updates) {
        for (applied, clocks) in member.applied.iter_mut().zip(attempts) {
            for (clock, count) in (0..CLOCKS_MAX).zip(clocks) {
                *applied |= u8::from(*count > 0) << clock;
                facts.twice |= *count > 1;
            }
        }
    }
}

/// All rows of a shard, by a real read that asks for nothing.
fn rows(shard: &Shard, plan: &JobPlan) -> Tally {
    let at = shard.id().0 as usize;
    let read = Read {
        job: JOB,
        generation: petuum_types::Generation(1),
        epoch: plan.map.epoch,
        reader: None,
        table: TABLE,
        rows: vec![plan.rows[at]],
        min_clock: Clock::ZERO,
        own_clock: Clock::ZERO,
        min_index: LogIndex(0),
    };
    let mut out = Tally::default();
    if let ReadOutcome::Answer(answer) = shard.read(&read) {
        tally(&mut out, 0, answer.rows[0].values.as_i64().expect("the table is i64"));
    }
    out
}

// The snapshot's format, as petuum-shard's `snapshot` module describes it.
const HEAD: u8 = 1;
const PART: u8 = 4;
const ROW: u8 = 6;
const END: u8 = 255;
const PREAMBLE_BYTES: usize = 8;
const RECORD_HEADER_BYTES: usize = 16;
const PART_HEAD_BYTES: usize = 32;
/// Where a row record says which log index changed it.
const CHANGED: std::ops::Range<usize> = 16..24;

/// A snapshot's records: tag and body.
struct Records {
    stream: Vec<u8>,
    at: usize,
}

impl Records {
    fn of(shard: &Shard) -> Self {
        let pieces = shard.view().pieces(64 * 1024);
        Self { stream: pieces.flat_map(|piece| piece.to_vec()).collect(), at: PREAMBLE_BYTES }
    }
}

impl Iterator for Records {
    type Item = (u8, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        let header: &[u8; RECORD_HEADER_BYTES] = self.stream.get(self.at..)?.first_chunk()?;
        let tag = header[0];
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let start = self.at + RECORD_HEADER_BYTES;
        self.at = start + length;
        Some((tag, self.stream[start..self.at].to_vec()))
    }
}
