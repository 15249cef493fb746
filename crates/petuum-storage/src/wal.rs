//! Damage in the write-ahead log that RocksDB would take for a torn tail (G9).
//!
//! After a crash RocksDB keeps what is before the first record it cannot read. That is right for a tail that was never
//! synced, and wrong for a bit that flipped in the middle: what is behind it was acknowledged, and would be gone
//! without a word. RocksDB cannot tell the two apart, so every write carries a *floor*, the sequence number up to
//! which the log was synced before, and one more record with the new floor follows each sync. At open the log is read
//! past its damage: if any record there has a floor above the last sequence number that RocksDB can recover,
//! acknowledged writes are lost and the store refuses to open. Records lost in a torn tail never have that mark.
//!
//! One kind of damage RocksDB 11.8 does not survive at all: a record that cannot be read and whose type byte is one of
//! recycled logs, which noise in a torn tail can have. Its reader (`ReadPhysicalRecord` in log_reader.cc) then returns
//! without having moved on and is called again, for ever. Such a tail is cut off before RocksDB sees it.
//!
//! Not here: logs that are missing or shorter than they were, if they are not the last one; RocksDB notices those.
//!
//! ```text
//! a log file    blocks of 32 KiB, each a row of records, filled up with zeros if fewer than 7 bytes are left
//! a record      CRC-32C of (type, payload), masked, u32 LE │ length u16 LE │ type u8 │ payload
//! a payload     (whole, or the first part of a batch) sequence u64 LE │ count u32 LE │ 3 │ 8 │ floor u64 LE │ …
//! ```

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The write-ahead logs of a directory (files `*.log`), oldest first.
pub type ReadWals = Arc<dyn Fn(&Path) -> io::Result<Vec<Box<dyn Read>>> + Send + Sync>;

/// Makes one of the logs that [`ReadWals`] returned, by its place among them, end after so many bytes, durably.
pub type CutWal = Arc<dyn Fn(&Path, usize, u64) -> io::Result<()> + Send + Sync>;

const BLOCK_BYTES: usize = 32 * 1024;
const HEADER_BYTES: usize = 7;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;
/// Sequence and count, before a batch's records.
const BATCH_HEADER_BYTES: usize = 12;
/// RocksDB's tag of a record that only the log sees, and the length of ours.
const FLOOR_TAG: [u8; 2] = [3, 8];

/// Types of records of recycled logs, which this store never writes.
const RECYCLED: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// Where a log's damage begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The log's place among the logs.
    pub(crate) log: usize,
    /// Bytes before the damage.
    pub(crate) keep: u64,
}

/// What a walk through the logs found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The greatest floor.
    pub(crate) floor: u64,
    /// Bytes that are no record have been passed.
    damaged: bool,
    /// There is a record behind them, so they are no mere torn tail.
    pub(crate) goes_on_behind_damage: bool,
    /// The last sequence number before any damage.
    pub(crate) whole: u64,
    /// The last sequence number of a batch that is not at its end yet.
    begun: u64,
    /// The logs that RocksDB would read for ever.
    pub(crate) endless: Vec<Cut>,
    /// Where the damage of the log that is walked through begins.
    cut: Option<Cut>,
}

/// The logs of a directory on the operating system's file system.
pub(crate) fn files(dir: &Path) -> io::Result<Vec<Box<dyn Read>>> {
    paths(dir)?.into_iter().map(|path| Ok(Box::new(File::open(path)?) as Box<dyn Read>)).collect()
}

/// Cuts one of them.
pub(crate) fn cut_file(dir: &Path, log: usize, keep: u64) -> io::Result<()> {
    let path = paths(dir)?.into_iter().nth(log).ok_or(ErrorKind::NotFound)?;
    let file = File::options().write(true).open(path)?;
    file.set_len(keep)?;
    file.sync_all()
}

/// Oldest first.
fn paths(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
        if let (Some(number), true) = (number, path.extension().is_some_and(|extension| extension == "log")) {
            logs.push((number, path));
        }
    }
    logs.sort();
    Ok(logs.into_iter().map(|(_, path)| path).collect())
}

impl Walk {
    /// Walks through all logs, oldest first.
    pub(crate) fn through(logs: Vec<Box<dyn Read>>) -> io::Result<Self> {
        let mut walk = Self::default();
        let mut block = vec![0; BLOCK_BYTES];
        for (number, mut log) in logs.into_iter().enumerate() {
            walk.cut = None;
            for begin in (0..).step_by(BLOCK_BYTES) {
                let filled = fill(&mut *log, &mut block)?;
                walk.block(number, begin, &block[..filled]);
                if filled < BLOCK_BYTES {
                    break;
                }
            }
        }
        Ok(walk)
    }

    fn block(&mut self, log: usize, begin: u64, block: &[u8]) {
        let mut rest = block;
        // RocksDB reads a block up to its first damage and goes on with the next.
        let mut readable = true;
        while rest.len() >= HEADER_BYTES {
            if let Some((kind, payload)) = record(rest) {
                self.record(kind, payload);
                rest = &rest[HEADER_BYTES + payload.len()..];
            } else {
                // Lengths are not to be believed any more: the next record may begin at any byte.
                if std::mem::take(&mut readable) {
                    let keep = begin + (block.len() - rest.len()) as u64;
                    self.damage(Cut { log, keep }, rest[HEADER_BYTES - 1]);
                }
                self.damaged = true;
                rest = &rest[1..];
            }
        }
        // A whole block may end in a few bytes of filling, a file only in a record.
        self.damaged |= block.len() < BLOCK_BYTES && !rest.is_empty();
    }

    /// The first damage of a block, and what its type byte says.
    fn damage(&mut self, at: Cut, kind: u8) {
        let cut = *self.cut.get_or_insert(at);
        if RECYCLED.contains(&kind) && self.endless.last() != Some(&cut) {
            self.endless.push(cut);
        }
    }

    fn record(&mut self, kind: u8, payload: &[u8]) {
        self.goes_on_behind_damage |= self.damaged;
        if kind == LAST && !self.damaged {
            self.whole = self.begun;
        }
        let Some((header, batch)) = payload.split_first_chunk::<BATCH_HEADER_BYTES>() else { return };
        if !matches!(kind, FULL | FIRST) {
            return;
        }
        let [s0, s1, s2, s3, s4, s5, s6, s7, c0, c1, c2, c3] = *header;
        let sequence = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        self.begun = (sequence.saturating_add(u32::from_le_bytes([c0, c1, c2, c3]).into())).saturating_sub(1);
        if kind == FULL && !self.damaged {
            self.whole = self.begun;
        }
        if let Some(floor) = batch.strip_prefix(&FLOOR_TAG).and_then(<[u8]>::first_chunk) {
            self.floor = self.floor.max(u64::from_le_bytes(*floor));
        }
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
