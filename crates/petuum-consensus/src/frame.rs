//! The bytes of one log entry, the same in the log and on the wire, so that an entry is encoded once, by its leader:
//!
//! ```text
//! crc u32 BE | version u8 = 1 | kind u8 | 0 u16 | term u64 BE | index u64 BE | body
//! ```
//!
//! The CRC-32C covers everything behind it. Kinds: 0 blank (no body), 1 normal (the caller's bytes), 2 membership (a
//! record of `Members`). An entry is decoded only where it belongs: another index than asked for is damage.

use crate::record::Members;
use crate::types::{CommittedLeader, Entry, LogId, Payload};
use bytes::{BufMut, Bytes, BytesMut};
use openraft::EntryPayload;

use petuum_types::{checksum, codec};

const VERSION: u8 = 1;
/// Bytes in front of the body.
pub(crate) const HEADER_BYTES: usize = 24;
const CRC_BYTES: usize = 4;

/// Why bytes are no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a log entry of {0} bytes; its header alone has {HEADER_BYTES}")]
    Short(usize),
    #[error("a log entry whose checksum is {expected:08x}, but {got:08x} was written with it")]
    Checksum { expected: u32, got: u32 },
    #[error("a log entry of version {version}, kind {kind}; this version reads version {VERSION}, kinds 0 to 2")]
    Unknown { version: u8, kind: u8 },
    #[error("the log entry of index {got} where index {expected} belongs")]
    Index { expected: u64, got: u64 },
    #[error("the members in a log entry: {0}")]
    Members(String),
}

impl From<codec::Error> for Malformed {
    fn from(error: codec::Error) -> Self {
        Self::Members(error.to_string())
    }
}

/// The stored form of an entry. Bytes that came in that form are not copied.
pub(crate) fn encode(entry: &Entry) -> Bytes {
    let (term, index) = (entry.log_id.leader_id.term, entry.log_id.index);
    match &entry.payload {
        EntryPayload::Blank => build(0, term, index, &[]),
        EntryPayload::Membership(membership) => build(2, term, index, &codec::encode(&Members::from(membership))),
        EntryPayload::Normal(payload) => match &payload.stored {
            Some(stored) if header(stored).is_ok_and(|h| (h.term, h.index) == (term, index)) => stored.clone(),
            _ => build(1, term, index, &payload.bytes),
        },
    }
}

fn build(kind: u8, term: u64, index: u64, body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + body.len());
    out.put_u32(0);
    out.put_u8(VERSION);
    out.put_u8(kind);
    out.put_u16(0);
    out.put_u64(term);
    out.put_u64(index);
    out.put_slice(body);
    let crc = checksum::crc(&out[CRC_BYTES..]);
    out[..CRC_BYTES].copy_from_slice(&crc.to_be_bytes());
    out.freeze()
}

struct Header {
    crc: u32,
    version: u8,
    kind: u8,
    term: u64,
    index: u64,
}

fn header(stored: &[u8]) -> Result<Header, Malformed> {
    let head: &[u8; HEADER_BYTES] = stored.first_chunk().ok_or(Malformed::Short(stored.len()))?;
    let number = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().expect("8 of 24 bytes"));
    Ok(Header {
        crc: u32::from_be_bytes([head[0], head[1], head[2], head[3]]),
        version: head[4],
        kind: head[5],
        term: number(8),
        index: number(16),
    })
}

/// Reads the entry that belongs at `index`.
///
/// # Errors
/// [`Malformed`], never a panic, whatever the bytes.
pub(crate) fn decode(index: u64, stored: &Bytes) -> Result<Entry, Malformed> {
    let head = header(stored)?;
    let expected = checksum::crc(&stored[CRC_BYTES..]);
    if expected != head.crc {
        return Err(Malformed::Checksum { expected, got: head.crc });
    }
    if head.index != index {
        return Err(Malformed::Index { expected: index, got: head.index });
    }
    let body = stored.slice(HEADER_BYTES..);
    let payload = match (head.version, head.kind) {
        (VERSION, 0) if body.is_empty() => EntryPayload::Blank,
        (VERSION, 1) => EntryPayload::Normal(Payload { bytes: body, stored: Some(stored.clone()) }),
        (VERSION, 2) => {
            let members: Members = codec::decode(&body)?;
            EntryPayload::Membership(members.into_membership().map_err(Malformed::Members)?)
        }
        (version, kind) => return Err(Malformed::Unknown { version, kind }),
    };
    Ok(Entry { log_id: log_id(&head), payload })
}

/// Only where an entry belongs, from its header.
pub(crate) fn decode_id(stored: &[u8]) -> Result<LogId, Malformed> {
    header(stored).map(|head| log_id(&head))
}

fn log_id(head: &Header) -> LogId {
    LogId { leader_id: CommittedLeader::new(head.term), index: head.index }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Membership;
    use openraft::BasicNode;
    use std::collections::{BTreeMap, BTreeSet};

    fn entry(payload: EntryPayload<Payload, u64, BasicNode>) -> Entry {
        Entry { log_id: LogId { leader_id: CommittedLeader::new(3), index: 0x0102 }, payload }
    }

    fn examples() -> [Entry; 3] {
        let nodes = BTreeMap::from([(1, BasicNode::new("a:1")), (2, BasicNode::new("b:2"))]);
        let membership = Membership::new(vec![BTreeSet::from([1, 2])], nodes).unwrap();
        [
            entry(EntryPayload::Blank),
            entry(EntryPayload::Normal(Payload::new(Bytes::from_static(b"body")))),
            entry(EntryPayload::Membership(membership)),
        ]
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn golden() {
        let golden = [
            "60b0452a 01 00 0000 0000000000000003 0000000000000102",
            "eb5ba021 01 01 0000 0000000000000003 0000000000000102 626f6479",
            "4587975f 01 02 0000 0000000000000003 0000000000000102 01 01 020102 02 01 03613a31 02 03623a32",
        ];
        assert_eq!(examples().map(|entry| hex(&encode(&entry))), golden.map(|hex| hex.replace(' ', "")));
    }

    #[test]
    fn every_kind_round_trips_and_is_not_encoded_twice() {
        for entry in examples() {
            let stored = encode(&entry);
            let read = decode(0x0102, &stored).unwrap();
            assert_eq!(read, entry);
            assert_eq!(decode_id(&stored).unwrap(), entry.log_id);
            let again = encode(&read);
            assert_eq!(again, stored);
            if matches!(entry.payload, EntryPayload::Normal(_)) {
                assert_eq!(again.as_ptr(), stored.as_ptr(), "a follower's entry was copied");
            }
        }
    }

    #[test]
    fn a_stored_form_of_another_place_is_not_reused() {
        let stored = encode(&examples()[1]);
        let mut moved = decode(0x0102, &stored).unwrap();
        moved.log_id.index = 0x0103;
        assert_eq!(decode(0x0103, &encode(&moved)).unwrap(), moved);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        for entry in examples() {
            let stored = encode(&entry);
            for end in 0..stored.len() {
                assert!(decode(0x0102, &stored.slice(..end)).is_err(), "{end} bytes");
            }
            for bit in 0..stored.len() * 8 {
                let mut flipped = stored.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(0x0102, &flipped.into()).is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn another_index_is_named() {
        let stored = encode(&examples()[0]);
        assert_eq!(decode(9, &stored).unwrap_err(), Malformed::Index { expected: 9, got: 0x0102 });
    }
}
