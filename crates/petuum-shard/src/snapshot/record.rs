//! The shapes of records, shared by writer and reader.

use crate::marks::Marks;
use crate::member::Member;
use petuum_types::{
    Clock, Generation, JobId, LogIndex, MapEpoch, RowId, ShardId, TableId, TableSchema, WorkerId, checksum,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// The first bytes of a stream.
pub(super) const PREAMBLE: [u8; 8] = *b"PTSH\x01\0\0\0";
/// Where the version stands in it.
pub(super) const VERSION_AT: usize = 4;
/// Bytes of a record before its body.
pub(super) const RECORD_HEADER_BYTES: usize = 16;
/// The longest body: a row of 1,000,000 i64 with its head fits, and no damaged length makes a reader wait for more.
pub(super) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a row record before the values.
pub(super) const ROW_HEAD_BYTES: usize = 24;
/// Bytes of a part record before the payload.
pub(super) const PART_HEAD_BYTES: usize = 32;

const _: () = assert!(petuum_types::limits::ROW_COLUMNS_MAX as usize * 8 + ROW_HEAD_BYTES <= BODY_BYTES_MAX);
const _: () = assert!(petuum_types::limits::PART_BYTES_MAX + PART_HEAD_BYTES <= BODY_BYTES_MAX);

/// A record's kind; the order of records in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Tag {
    Head = 1,
    Job = 2,
    Member = 3,
    Part = 4,
    Table = 5,
    Row = 6,
    End = 255,
}

impl Tag {
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Head),
            2 => Some(Self::Job),
            3 => Some(Self::Member),
            4 => Some(Self::Part),
            5 => Some(Self::Table),
            6 => Some(Self::Row),
            255 => Some(Self::End),
            _ => None,
        }
    }
}

/// The state's single values.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) id: ShardId,
    pub(super) applied: LogIndex,
    pub(super) last_command: LogIndex,
    pub(super) epoch: MapEpoch,
    pub(super) slots: Range<u16>,
    pub(super) dropped: BTreeSet<TableId>,
    pub(super) marks: Marks,
}

/// A job without its members.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobRecord {
    pub(super) job: JobId,
    pub(super) generation: Generation,
    pub(super) workers: u32,
    pub(super) min_clock: Clock,
}

/// A member without its staged parts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MemberRecord {
    pub(super) job: JobId,
    pub(super) worker: WorkerId,
    pub(super) member: Member,
}

/// A table without its rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TableRecord {
    pub(super) schema: TableSchema,
    pub(super) non_finite: u64,
}

/// Which staged part a part record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartHead {
    pub(super) job: JobId,
    pub(super) worker: WorkerId,
    pub(super) clock: Clock,
    pub(super) epoch: MapEpoch,
    pub(super) part: u32,
}

impl PartHead {
    pub(super) fn bytes(&self) -> [u8; PART_HEAD_BYTES] {
        let mut out = [0; PART_HEAD_BYTES];
        out[..8].copy_from_slice(&self.job.0.to_le_bytes());
        out[8..16].copy_from_slice(&self.clock.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.epoch.0.to_le_bytes());
        out[24..28].copy_from_slice(&self.worker.0.to_le_bytes());
        out[28..].copy_from_slice(&self.part.to_le_bytes());
        out
    }

    pub(super) fn read(head: &[u8; PART_HEAD_BYTES]) -> Self {
        let (long, word) = (|at| long(head, at), |at| word(head, at));
        Self {
            job: JobId(long(0)),
            clock: Clock(long(8)),
            epoch: MapEpoch(long(16)),
            worker: WorkerId(word(24)),
            part: word(28),
        }
    }
}

/// Which row a row record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowHead {
    pub(super) table: TableId,
    pub(super) row: RowId,
    pub(super) changed: LogIndex,
}

impl RowHead {
    pub(super) fn bytes(&self) -> [u8; ROW_HEAD_BYTES] {
        let mut out = [0; ROW_HEAD_BYTES];
        out[..4].copy_from_slice(&self.table.0.to_le_bytes());
        out[8..16].copy_from_slice(&self.row.0.to_le_bytes());
        out[16..].copy_from_slice(&self.changed.0.to_le_bytes());
        out
    }

    pub(super) fn read(head: &[u8; ROW_HEAD_BYTES]) -> Self {
        Self { table: TableId(word(head, 0)), row: RowId(long(head, 8)), changed: LogIndex(long(head, 16)) }
    }
}

/// What the end record says.
pub(super) fn end_body(records: u64, rows_sum: u64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&records.to_le_bytes());
    out[8..].copy_from_slice(&rows_sum.to_le_bytes());
    out
}

/// A record's tag and length as they stand before its chain.
pub(super) fn frame(tag: u8, body_bytes: usize) -> [u8; 8] {
    let length = u32::try_from(body_bytes).ok().filter(|_| body_bytes <= BODY_BYTES_MAX).expect("bodies are bounded");
    let [a, b, c, d] = length.to_le_bytes();
    [tag, 0, 0, 0, a, b, c, d]
}

/// The chain before the first record.
pub(super) fn first_chain() -> u64 {
    checksum::hash(0, &PREAMBLE)
}

/// A record's chain up to its body, to which the body's pieces are added by [`checksum::hash`].
pub(super) fn chain_frame(before: u64, frame: &[u8; 8]) -> u64 {
    checksum::hash(before, frame)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("within a fixed head"))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("within a fixed head"))
}
