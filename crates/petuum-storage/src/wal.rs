//! What the write-ahead logs say of themselves: which writes they hold, up to where each can be read, and up to where
//! the store was durable (G9).
//!
//! After a crash RocksDB keeps what is before the first record it cannot read. That is right for a tail that was never
//! synced, and wrong for a bit that flipped in the middle: what is behind it was acknowledged, and would be gone
//! without a word. RocksDB cannot tell the two apart, so every write carries a *floor*, the sequence number up to
//! which the log was synced before, and one more record with the new floor follows each sync. A record anywhere in the
//! logs, also behind damage, whose floor is above the last write that can be replayed proves that acknowledged writes are
//! lost. Records lost in a torn tail never have that mark.
//!
//! ```text
//! a payload     (whole, or the first part of a batch) sequence u64 LE │ count u32 LE │ 3 │ 8 │ floor u64 LE │ …
//! ```

use crate::blocks::{self, Damage, FIRST, FULL, Found, LAST, MIDDLE};
use std::io::{self, Read};

/// Sequence and count, before a batch's records.
const BATCH_HEADER_BYTES: usize = 12;
/// RocksDB's tag of a record that only the log sees, and the length of ours.
const FLOOR_TAG: [u8; 2] = [3, 8];
/// RocksDB's kinds of a record that names the log before: its number, its bytes, its last sequence number.
const PREDECESSOR: [u8; 2] = [130, 131];
/// What is looked at of a batch: the header, the tag and the floor.
const HEAD_BYTES: usize = BATCH_HEADER_BYTES + FLOOR_TAG.len() + 8;

/// What was found in one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    /// Its file.
    pub(crate) name: String,
    /// The number in its name: the order of the logs.
    pub(crate) number: u64,
    /// Sequence number of the first batch before any damage.
    first: Option<u64>,
    /// The last sequence number of the last whole batch before any damage.
    whole: Option<u64>,
    /// The greatest floor, behind damage too.
    pub(crate) floor: u64,
    /// Where it cannot be read, block by block.
    pub(crate) damages: Vec<Damage>,
    /// The last sequence number of a batch whose end has not come yet.
    begun: Option<u64>,
    bytes: u64,
    predecessor: Option<Predecessor>,
}

/// What a log says of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Predecessor {
    number: u64,
    bytes: u64,
    last: u64,
}

/// The number of a log's name.
pub(crate) fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

impl Log {
    /// Reads a log to its end.
    pub(crate) fn read(name: String, number: u64, file: &mut dyn Read) -> io::Result<Self> {
        let mut log = Self { name, number, ..Self::default() };
        let mut head = Head::default();
        log.bytes = blocks::walk(file, |found| match found {
            Found::Record { kind, payload } => log.record(kind, payload, &mut head),
            Found::Damage(damage) => {
                log.damages.push(damage);
                head.complete = true;
            }
        })?;
        Ok(log)
    }

    fn record(&mut self, kind: u8, payload: &[u8], head: &mut Head) {
        match kind {
            FULL | FIRST => *head = Head::default(),
            MIDDLE | LAST => {}
            kind if PREDECESSOR.contains(&kind) && self.damages.is_empty() => {
                self.predecessor = Predecessor::read(payload);
                return;
            }
            // Of the log itself: no batch.
            _ => return,
        }
        let ends = matches!(kind, FULL | LAST);
        if head.take(payload, ends) {
            self.batch(&head.bytes);
        }
        if ends && self.damages.is_empty() {
            self.whole = self.begun.or(self.whole);
        }
    }

    /// A batch by its first bytes.
    fn batch(&mut self, head: &[u8]) {
        let Some((header, records)) = head.split_first_chunk::<BATCH_HEADER_BYTES>() else { return };
        let [s0, s1, s2, s3, s4, s5, s6, s7, c0, c1, c2, c3] = *header;
        let sequence = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        let last = sequence.saturating_add(u32::from_le_bytes([c0, c1, c2, c3]).into()).saturating_sub(1);
        if self.damages.is_empty() {
            if self.first.is_none() {
                self.first = Some(sequence);
                self.whole = sequence.checked_sub(1);
            }
            self.begun = Some(last);
        }
        if let Some(floor) = records.strip_prefix(&FLOOR_TAG).and_then(<[u8]>::first_chunk) {
            self.floor = self.floor.max(u64::from_le_bytes(*floor));
        }
    }
}

impl Predecessor {
    fn read(payload: &[u8]) -> Option<Self> {
        let (number, rest) = payload.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let last = rest.first_chunk()?;
        let [number, bytes, last] = [number, bytes, last].map(|field| u64::from_le_bytes(*field));
        Some(Self { number, bytes, last })
    }
}

/// The first bytes of a batch. A block may end anywhere inside of them, and then they come in two parts.
#[derive(Default)]
struct Head {
    bytes: Vec<u8>,
    /// Nothing more is taken.
    complete: bool,
}

impl Head {
    /// Takes the next part of a batch; true once there is enough, or it has ended.
    fn take(&mut self, payload: &[u8], ends: bool) -> bool {
        if self.complete {
            return false;
        }
        let missing = HEAD_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&payload[..payload.len().min(missing)]);
        self.complete = ends || self.bytes.len() == HEAD_BYTES;
        self.complete
    }
}

/// Up to which sequence number logs, oldest first, can be replayed one behind the other; none if they hold no write.
pub(crate) fn replayable(logs: &[Log]) -> Option<u64> {
    let mut reached = None;
    for log in logs {
        let Some(first) = log.first else { continue };
        if reached.is_some_and(|reached: u64| first > reached.saturating_add(1)) {
            break;
        }
        reached = reached.max(log.whole);
    }
    reached
}

/// The first and the last sequence number of logs, oldest first, that are one whole chain: whoever replays some of it
/// replays all. None if they are not, or if they hold nothing.
pub(crate) fn chain(logs: &[Log]) -> Option<(u64, u64)> {
    let linked = |pair: &[Log]| {
        let reached = replayable(std::slice::from_ref(&pair[0]));
        let names = |p: Predecessor| {
            p.number == pair[0].number && p.bytes == pair[0].bytes && reached.is_none_or(|last| p.last == last)
        };
        pair[1].predecessor.is_some_and(names) || pair[1].bytes == 0
    };
    let first = logs.iter().find_map(|log| log.first)?;
    let last = replayable(logs)?;
    logs.windows(2).all(linked).then_some((first, last))
}

/// Up to which sequence number writes are known to have been durable.
pub(crate) fn durable(logs: &[Log]) -> u64 {
    logs.iter().map(|log| log.floor).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of one write and its floor, as the log has it.
    fn batch(sequence: u64, floor: u64) -> Vec<u8> {
        let mut bytes = sequence.to_le_bytes().to_vec();
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(FLOOR_TAG);
        bytes.extend(floor.to_le_bytes());
        bytes.extend([7; 30]);
        bytes
    }

    /// A block that ends inside a batch's first bytes had hidden the batch, and a whole log was refused as damaged.
    #[test]
    fn a_batch_is_known_wherever_a_block_ends_in_it() {
        let bytes = batch(9, 8);
        for cut in 0..bytes.len() {
            for second in cut..bytes.len() {
                let (mut log, mut head) = (Log::default(), Head::default());
                log.record(FULL, &batch(8, 7), &mut head);
                log.record(FIRST, &bytes[..cut], &mut head);
                log.record(MIDDLE, &bytes[cut..second], &mut head);
                log.record(LAST, &bytes[second..], &mut head);
                assert_eq!((log.first, log.whole, log.floor), (Some(8), Some(9), 8), "cut at {cut} and {second}");
            }
        }
    }

    #[test]
    fn what_a_log_says_of_the_one_before_is_no_batch() {
        const PREDECESSOR: u8 = 130;
        let (mut log, mut head) = (Log::default(), Head::default());
        log.record(PREDECESSOR, &batch(4, 99), &mut head);
        log.record(FIRST, &batch(8, 7)[..5], &mut head);
        log.record(PREDECESSOR, &batch(4, 99), &mut head);
        log.record(LAST, &batch(8, 7)[5..], &mut head);
        assert_eq!((log.first, log.whole, log.floor), (Some(8), Some(8), 7));
    }

    #[test]
    fn a_batch_without_its_end_is_not_whole() {
        let (mut log, mut head) = (Log::default(), Head::default());
        log.record(FULL, &batch(8, 7), &mut head);
        log.record(FIRST, &batch(9, 8), &mut head);
        assert_eq!((log.whole, log.floor), (Some(8), 8));
    }
    /// A log of so many bytes that holds writes, and what it says of the log before.
    fn log(number: u64, writes: (u64, u64), bytes: u64, predecessor: Option<Predecessor>) -> Log {
        let (first, whole) = (Some(writes.0), Some(writes.1));
        Log { number, first, whole, bytes, predecessor, ..Log::default() }
    }

    #[test]
    fn g9_logs_are_a_chain_only_if_each_names_the_one_before() {
        let named = Predecessor { number: 4, bytes: 100, last: 9 };
        let chain_of = |second| chain(&[log(4, (1, 9), 100, None), log(7, (10, 12), 50, second)]);
        assert_eq!(chain_of(Some(named)), Some((1, 12)));
        let others = [
            None,
            Some(Predecessor { number: 5, ..named }),
            Some(Predecessor { bytes: 101, ..named }),
            Some(Predecessor { last: 8, ..named }),
        ];
        assert!(others.iter().all(|other| chain_of(*other).is_none()));
        // One that was just begun says nothing yet.
        assert_eq!(chain(&[log(4, (1, 9), 100, None), Log { number: 7, ..Log::default() }]), Some((1, 9)));
        assert_eq!(chain(&[]), None);
    }
}
