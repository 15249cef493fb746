//! The form that RocksDB gives its logs, the write-ahead ones and the manifest alike: reading it past its damage.
//!
//! ```text
//! a log file    blocks of 32 KiB, each a row of records, filled up with zeros if fewer than 7 bytes are left
//! a record      CRC-32C of (type, payload), masked, u32 LE │ length u16 LE │ type u8 │ payload
//! ```
//!
//! One kind of damage RocksDB 11.8 does not survive: a record that cannot be read and whose type byte is one of
//! recycled logs, which noise in a torn tail can have. Its reader (`ReadPhysicalRecord` in log_reader.cc) then returns
//! without having moved on and is called again, for ever.

use std::io::{self, ErrorKind, Read};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 32 * 1024;
const HEADER_BYTES: usize = 7;
/// Where a record's type byte lies.
pub(crate) const KIND_AT: u64 = 6;

/// A whole record.
pub(crate) const FULL: u8 = 1;
/// The first, and the last, part of a record that is longer than its block.
pub(crate) const FIRST: u8 = 2;
/// See [`FIRST`].
pub(crate) const MIDDLE: u8 = 3;
/// See [`FIRST`].
pub(crate) const LAST: u8 = 4;
/// A type that RocksDB never writes: the record's CRC cannot be right with it.
pub(crate) const NEVER_WRITTEN: u8 = 0x7e;
/// Types of records of recycled logs, which this store never writes.
const RECYCLED: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// What lies next in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A record that is as it was written.
    Record { kind: u8, payload: &'a [u8] },
    /// The first bytes of a block that are no record; records may follow.
    Damage(Damage),
}

/// Where a block's damage begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Bytes of the file before it.
    pub(crate) at: u64,
    /// RocksDB would read it for ever.
    pub(crate) endless: bool,
}

/// Visits what lies in a log, in order.
pub(crate) fn walk(log: &mut dyn Read, mut visit: impl FnMut(Found<'_>)) -> io::Result<u64> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut begin = 0;
    loop {
        let filled = fill(log, &mut block)?;
        walk_block(begin, &block[..filled], &mut visit);
        begin += filled as u64;
        if filled < BLOCK_BYTES {
            return Ok(begin);
        }
    }
}

fn walk_block(begin: u64, block: &[u8], visit: &mut impl FnMut(Found<'_>)) {
    let mut rest = block;
    // RocksDB reads a block up to its first damage and goes on with the next.
    let mut readable = true;
    let mut damage = |rest: &[u8], kind: u8, visit: &mut dyn FnMut(Found<'_>)| {
        if std::mem::take(&mut readable) {
            let at = begin + (block.len() - rest.len()) as u64;
            visit(Found::Damage(Damage { at, endless: RECYCLED.contains(&kind) }));
        }
    };
    while rest.len() >= HEADER_BYTES {
        if let Some((kind, payload)) = record(rest) {
            visit(Found::Record { kind, payload });
            rest = &rest[HEADER_BYTES + payload.len()..];
        } else {
            damage(rest, rest[HEADER_BYTES - 1], visit);
            // Lengths are not to be believed any more: the next record may begin at any byte.
            rest = &rest[1..];
        }
    }
    // A whole block may end in a few bytes of filling, a file only in a record.
    if block.len() < BLOCK_BYTES && !rest.is_empty() {
        damage(rest, 0, visit);
    }
}

/// Type and payload of the record at the beginning of these bytes.
fn record(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let [c0, c1, c2, c3, l0, l1, kind] = *header;
    let end = HEADER_BYTES + usize::from(u16::from_le_bytes([l0, l1]));
    // RocksDB never writes type 0; zeros are space that was set aside.
    if kind == 0 || end > bytes.len() {
        return None;
    }
    let crc = crc32c::crc32c(&bytes[HEADER_BYTES - 1..end]);
    let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
    (masked == u32::from_le_bytes([c0, c1, c2, c3])).then_some((kind, &bytes[HEADER_BYTES..end]))
}

fn fill(log: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match log.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
