//! Bytes to state. Nothing of a record is believed before its chain is checked; no input panics.

use super::record::{
    BODY_BYTES_MAX, Head, JobRecord, MemberRecord, PART_HEAD_BYTES, PREAMBLE, PartHead, RECORD_HEADER_BYTES,
    ROW_HEAD_BYTES, RowHead, TableRecord, Tag, VERSION_AT, chain_frame, end_body, first_chain,
};
use crate::job::Job;
use crate::member::{Member, Standing};
use crate::settings::Settings;
use crate::shard::Shard;
use crate::table::Table;
use bytes::{Buf, Bytes, BytesMut};
use petuum_chaos::{Mutant, mutated};
use petuum_types::part::Part;
use petuum_types::{ShardId, Slot, Values, checksum, codec, slot::SLOTS};

/// Why bytes are no snapshot of this shard. The receiver throws it away and asks for another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damaged {
    /// It does not begin like a snapshot of this version.
    #[error("a snapshot that begins with {got:02x?}; expected {PREAMBLE:02x?} (the fifth byte is the version)")]
    Preamble {
        /// The first bytes.
        got: [u8; 8],
    },
    /// Bytes of a record, or before it, are not what was written.
    #[error("record {record} of a snapshot fails its checksum")]
    Checksum {
        /// Which, from 0.
        record: u64,
    },
    /// A record's length cannot be.
    #[error("record {record} of a snapshot claims {bytes} bytes; the longest has {BODY_BYTES_MAX}")]
    Length {
        /// Which.
        record: u64,
        /// As claimed.
        bytes: usize,
    },
    /// A whole record that this version cannot take.
    #[error("record {record} of a snapshot: {reason}")]
    Record {
        /// Which.
        record: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The end is missing.
    #[error("a snapshot cut short after {records} records")]
    Cut {
        /// Whole records received.
        records: u64,
    },
    /// Bytes follow the end.
    #[error("{bytes} bytes after the end of a snapshot")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

/// A shard being put together from a snapshot's bytes.
#[derive(Debug)]
pub struct Restore {
    shard: Shard,
    /// Received and not yet understood: less than a record.
    buffer: BytesMut,
    chain: u64,
    records: u64,
    /// `None` before the preamble.
    last: Option<Tag>,
    started: bool,
    row_before: Option<(petuum_types::TableId, Slot, petuum_types::RowId)>,
    part_before: Option<PartHead>,
    failed: Option<Damaged>,
}

impl Restore {
    /// Awaits the first byte of a snapshot of shard `id`.
    #[must_use]
    pub fn new(id: ShardId, settings: Settings) -> Self {
        Self {
            shard: Shard::new(id, settings),
            buffer: BytesMut::new(),
            chain: first_chain(),
            records: 0,
            last: None,
            started: false,
            row_before: None,
            part_before: None,
            failed: None,
        }
    }

    /// Takes in the next bytes; pieces may be cut anywhere.
    ///
    /// # Errors
    /// [`Damaged`] as soon as it shows; from then on every call gives the same.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Damaged> {
        if let Some(damaged) = &self.failed {
            return Err(damaged.clone());
        }
        self.buffer.extend_from_slice(piece);
        let result = self.take_records();
        self.failed = result.clone().err();
        result
    }

    /// The shard, once every byte has come.
    ///
    /// # Errors
    /// [`Damaged`] if the end is missing or something was wrong before.
    pub fn finish(self) -> Result<Shard, Damaged> {
        match self.failed {
            Some(damaged) => Err(damaged),
            None if self.last == Some(Tag::End) => Ok(self.shard),
            None => Err(Damaged::Cut { records: self.records }),
        }
    }

    fn take_records(&mut self) -> Result<(), Damaged> {
        if !self.started {
            let Some(got) = self.buffer.first_chunk() else { return Ok(()) };
            if *got != PREAMBLE {
                return Err(Damaged::Preamble { got: *got });
            }
            debug_assert_eq!(got[VERSION_AT], 1);
            self.buffer.advance(PREAMBLE.len());
            self.started = true;
        }
        while let Some((tag, body)) = self.next_record()? {
            let record = self.records;
            self.take(tag, &body).map_err(|reason| Damaged::Record { record, reason })?;
            self.records += 1;
        }
        if self.last == Some(Tag::End) && !self.buffer.is_empty() {
            return Err(Damaged::Trailing { bytes: self.buffer.len() });
        }
        Ok(())
    }

    /// The next whole record, checked against its chain.
    fn next_record(&mut self) -> Result<Option<(u8, Bytes)>, Damaged> {
        let record = self.records;
        let Some(header) = self.buffer.first_chunk::<RECORD_HEADER_BYTES>() else { return Ok(None) };
        let (frame, chain) = header.split_first_chunk::<8>().expect("16 bytes hold 8");
        let bytes = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]) as usize;
        if bytes > BODY_BYTES_MAX {
            return Err(Damaged::Length { record, bytes });
        }
        let end = RECORD_HEADER_BYTES + bytes;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let expected = checksum::hash(chain_frame(self.chain, frame), &self.buffer[RECORD_HEADER_BYTES..end]);
        if chain != expected.to_le_bytes() {
            return Err(Damaged::Checksum { record });
        }
        self.chain = expected;
        let tag = frame[0];
        let mut whole = self.buffer.split_to(end);
        whole.advance(RECORD_HEADER_BYTES);
        Ok(Some((tag, whole.freeze())))
    }

    fn take(&mut self, tag: u8, body: &Bytes) -> Result<(), String> {
        let tag = Tag::from_byte(tag).ok_or(format!("tag {tag} is unknown to this version"))?;
        let in_order = match self.last {
            None => tag == Tag::Head,
            Some(Tag::Head) => tag > Tag::Head,
            Some(last) => tag >= last && last != Tag::End,
        };
        if !in_order {
            return Err(format!("a {tag:?} record after {:?}", self.last));
        }
        self.last = Some(tag);
        match tag {
            Tag::Head => self.head(decode(body)?),
            Tag::Job => self.job(&decode(body)?),
            Tag::Member => self.member(decode(body)?),
            Tag::Part => self.part(body),
            Tag::Table => self.table(decode(body)?),
            Tag::Row => self.row(body),
            Tag::End => self.end(body),
        }
    }

    fn head(&mut self, head: Head) -> Result<(), String> {
        if head.id != self.shard.id {
            return Err(format!("a snapshot of {}; expected {}", head.id, self.shard.id));
        }
        if head.slots.end > SLOTS {
            return Err(format!("slots {:?}", head.slots));
        }
        self.shard.applied = head.applied;
        self.shard.last_command = head.last_command;
        self.shard.epoch = head.epoch;
        self.shard.slots = head.slots;
        self.shard.tables.dropped = head.dropped;
        if !mutated(Mutant::SnapshotForgetsMarks) {
            self.shard.marks = head.marks;
        }
        Ok(())
    }

    fn job(&mut self, record: &JobRecord) -> Result<(), String> {
        let jobs = &mut self.shard.jobs;
        ascending(jobs.last_key_value().map(|(id, _)| *id), record.job)?;
        let job = Job { min_clock: record.min_clock, ..Job::new(record.generation, record.workers) };
        jobs.insert(record.job, job);
        Ok(())
    }

    fn member(&mut self, record: MemberRecord) -> Result<(), String> {
        let job = self.shard.jobs.get_mut(&record.job).ok_or(format!("a member of {}, unknown", record.job))?;
        ascending(job.members.last_key_value().map(|(id, _)| *id), record.worker)?;
        if record.member.standing == Standing::Live && record.member.clock < job.min_clock {
            return Err(format!("{} is live below the min clock", record.worker));
        }
        job.members.insert(record.worker, record.member);
        Ok(())
    }

    fn part(&mut self, body: &Bytes) -> Result<(), String> {
        let head = PartHead::read(body.first_chunk().ok_or("a part record without a head")?);
        let order = |h: PartHead| (h.job, h.worker, h.clock, h.part);
        ascending(self.part_before.map(order), order(head))?;
        self.part_before = Some(head);
        let payload = Bytes::copy_from_slice(&body[PART_HEAD_BYTES..]);
        Part::parse(&payload).map_err(|e| e.to_string())?;
        let member = self.member_of(&head).ok_or(format!("a part of {}, who holds none", head.worker))?;
        if member.staged.clocks.get(&head.clock).is_some_and(|staged| staged.epoch != head.epoch) {
            return Err(format!("parts of two maps for {}", head.clock));
        }
        member.staged.insert(head.clock, head.epoch, head.part, payload);
        Ok(())
    }

    fn member_of(&mut self, head: &PartHead) -> Option<&mut Member> {
        let member = self.shard.jobs.get_mut(&head.job)?.members.get_mut(&head.worker)?;
        (member.is_live() && head.clock >= member.clock).then_some(member)
    }

    fn table(&mut self, record: TableRecord) -> Result<(), String> {
        let tables = &mut self.shard.tables.live;
        record.schema.validate()?;
        ascending(tables.last_key_value().map(|(id, _)| *id), record.schema.id)?;
        let table = Table { non_finite: record.non_finite, ..Table::new(record.schema) };
        tables.insert(table.schema.id, table);
        Ok(())
    }

    fn row(&mut self, body: &Bytes) -> Result<(), String> {
        let head = RowHead::read(body.first_chunk().ok_or("a row record without a head")?);
        let key = (head.table, Slot::of(head.table, head.row), head.row);
        ascending(self.row_before, key)?;
        self.row_before = Some(key);
        let table = self.shard.tables.live.get_mut(&head.table).ok_or(format!("a row of {}, unknown", head.table))?;
        let values = Values::read_le(table.schema.value_type, &body[ROW_HEAD_BYTES..]);
        let width = table.schema.width as usize;
        let values = values.filter(|v| v.len() == width).ok_or(format!("{} is not {width} values", head.row))?;
        table.restore(head.row, head.changed, values);
        Ok(())
    }

    fn end(&self, body: &Bytes) -> Result<(), String> {
        if body.as_ref() == end_body(self.records, self.shard.tables.sum()) {
            Ok(())
        } else {
            Err(format!("an end that disagrees with the {} records before it", self.records))
        }
    }
}

fn decode<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, String> {
    codec::decode(body).map_err(|e| e.to_string())
}

fn ascending<K: Ord>(before: Option<K>, key: K) -> Result<(), String> {
    if before.is_some_and(|before| before >= key) { Err("out of order, or twice".into()) } else { Ok(()) }
}
