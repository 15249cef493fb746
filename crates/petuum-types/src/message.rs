//! What a worker sends to a shard (P2-P4). The same bytes travel on the wire and stand in the log.
//!
//! ```text
//! version u8 = 1 | kind u8 | 0 u16 | worker u32 | job u64 | generation u64 | incarnation u64 | sequence u64 |
//! map epoch u64 | clock u64 | acknowledged below u64 | count u32 | 0 u32 | payload
//! ```
//! Little endian. `count` is the part's number for a stage and the number of staged parts for a tick. The payload is a
//! part ([`crate::part`]) for stages and empty otherwise.

use crate::{Clock, Generation, Incarnation, JobId, MapEpoch, Sequence, WorkerId};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 72;
const VERSION: u8 = 1;

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Hold the payload as part `count` of the clock; touch no row.
    Stage = 1,
    /// Apply the `count` staged parts of the clock and advance the worker's clock.
    Tick = 2,
    /// Stage the payload and tick at once: the whole clock lies in this shard.
    StageTick = 3,
    /// Forget what is staged of the clock.
    Abort = 4,
}

/// One message of a worker to a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerMessage {
    /// What it asks for.
    pub kind: Kind,
    /// The job.
    pub job: JobId,
    /// The job's generation as the worker knows it.
    pub generation: Generation,
    /// The worker.
    pub worker: WorkerId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Gapless per (incarnation, shard) from 0.
    pub sequence: Sequence,
    /// The shard map the parts were cut for.
    pub epoch: MapEpoch,
    /// The clock of the updates.
    pub clock: Clock,
    /// The worker has the answers to everything below; the shard may forget refusals.
    pub acked_below: Sequence,
    /// A stage's part number, or a tick's number of staged parts.
    pub count: u32,
    /// A part, or nothing.
    pub payload: Bytes,
}

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than a header.
    #[error("a worker message of {0} bytes; expected at least {HEADER_BYTES}")]
    Short(usize),
    /// Another version.
    #[error("a worker message of version {0}; expected {VERSION}: client and server versions do not match")]
    Version(u8),
    /// An unknown kind.
    #[error("a worker message of kind {0}; expected 1 to 4")]
    Kind(u8),
    /// A payload where none belongs.
    #[error("a {kind:?} message with a payload of {bytes} bytes; expected none")]
    Payload {
        /// The message's kind.
        kind: Kind,
        /// Its payload's length.
        bytes: usize,
    },
}

impl WorkerMessage {
    /// Whether the message carries a part.
    #[must_use]
    pub const fn has_part(&self) -> bool {
        matches!(self.kind, Kind::Stage | Kind::StageTick)
    }

    /// Bytes on the wire and in the log.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    /// Appends the message's bytes.
    pub fn encode_into(&self, out: &mut BytesMut) {
        out.reserve(self.encoded_len());
        out.put_u8(VERSION);
        out.put_u8(self.kind as u8);
        out.put_u16_le(0);
        out.put_u32_le(self.worker.0);
        out.put_u64_le(self.job.0);
        out.put_u64_le(self.generation.0);
        out.put_u64_le(self.incarnation.0);
        out.put_u64_le(self.sequence.0);
        out.put_u64_le(self.epoch.0);
        out.put_u64_le(self.clock.0);
        out.put_u64_le(self.acked_below.0);
        out.put_u32_le(self.count);
        out.put_u32_le(0);
        out.put_slice(&self.payload);
    }

    /// The message's bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.encode_into(&mut out);
        out.freeze()
    }

    /// Reads a message; its payload shares `bytes`' memory.
    ///
    /// # Errors
    /// [`Malformed`], never a panic, whatever the bytes.
    pub fn decode(bytes: &Bytes) -> Result<Self, Malformed> {
        let head: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed::Short(bytes.len()))?;
        if head[0] != VERSION {
            return Err(Malformed::Version(head[0]));
        }
        let kind = match head[1] {
            1 => Kind::Stage,
            2 => Kind::Tick,
            3 => Kind::StageTick,
            4 => Kind::Abort,
            other => return Err(Malformed::Kind(other)),
        };
        let word = |i: usize| u32::from_le_bytes(*head[i..].first_chunk().expect("within the header"));
        let long = |i: usize| u64::from_le_bytes(*head[i..].first_chunk().expect("within the header"));
        let message = Self {
            kind,
            worker: WorkerId(word(4)),
            job: JobId(long(8)),
            generation: Generation(long(16)),
            incarnation: Incarnation(long(24)),
            sequence: Sequence(long(32)),
            epoch: MapEpoch(long(40)),
            clock: Clock(long(48)),
            acked_below: Sequence(long(56)),
            count: word(64),
            payload: bytes.slice(HEADER_BYTES..),
        };
        if !message.has_part() && !message.payload.is_empty() {
            return Err(Malformed::Payload { kind, bytes: message.payload.len() });
        }
        Ok(message)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn example(kind: Kind, payload: &'static [u8]) -> WorkerMessage {
        WorkerMessage {
            kind,
            job: JobId(1),
            generation: Generation(2),
            worker: WorkerId(3),
            incarnation: Incarnation(4),
            sequence: Sequence(5),
            epoch: MapEpoch(6),
            clock: Clock(7),
            acked_below: Sequence(8),
            count: 9,
            payload: Bytes::from_static(payload),
        }
    }

    #[test]
    fn golden_bytes_and_round_trip() {
        let bytes = example(Kind::Stage, b"PART").encode();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let expected = concat!(
            "01",
            "01",
            "0000",
            "03000000",
            "0100000000000000",
            "0200000000000000",
            "0400000000000000",
            "0500000000000000",
            "0600000000000000",
            "0700000000000000",
            "0800000000000000",
            "09000000",
            "00000000",
            "50415254",
        );
        assert_eq!(hex, expected);
        assert_eq!(WorkerMessage::decode(&bytes).unwrap(), example(Kind::Stage, b"PART"));
    }

    #[test]
    fn a_tick_with_a_payload_is_refused() {
        let bytes = example(Kind::Tick, b"x").encode();
        assert_eq!(WorkerMessage::decode(&bytes), Err(Malformed::Payload { kind: Kind::Tick, bytes: 1 }));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = WorkerMessage::decode(&Bytes::from(bytes));
        }
    }
}
