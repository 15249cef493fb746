//! State to bytes, piece by piece, while the shard goes on.

use super::record::{
    Head, JobRecord, MemberRecord, PREAMBLE, PartHead, RowHead, TableRecord, Tag, chain_frame, end_body, first_chain,
    frame,
};
use crate::job::Job;
use crate::shard::Shard;
use crate::table::{SlotRows, le_bytes};
use bytes::{BufMut, Bytes, BytesMut};
use petuum_chaos::{Mutant, mutated};
use petuum_types::{JobId, LogIndex, Sequence, TableId, Values, checksum, codec};
use std::sync::Arc;

/// A shard's state as of one index, kept apart from what the shard becomes.
///
/// Taking one costs a pointer per slot; what the shard changes while it is held is copied then, a slot's index and a row
/// at a time.
#[derive(Clone, Debug)]
pub struct View(Shard);

impl Shard {
    /// The state as it is now.
    #[must_use]
    pub fn view(&self) -> View {
        View(self.clone())
    }
}

impl View {
    /// The index the view is of.
    #[must_use]
    pub const fn index(&self) -> LogIndex {
        self.0.applied()
    }

    /// The snapshot's bytes, in pieces of `piece_bytes` and a shorter last one. Made on demand: memory is one piece and
    /// one record.
    ///
    /// # Panics
    /// If `piece_bytes` is 0.
    pub fn pieces(self, piece_bytes: usize) -> impl Iterator<Item = Bytes> + Send {
        assert!(piece_bytes > 0, "pieces of at least one byte");
        let rows_sum = self.0.tables.sum();
        let stream = Stream { chain: first_chain(), records: 0 };
        let start = BytesMut::from(&PREAMBLE[..]);
        Pieces {
            source: Some(rest_records(&self.0).chain(row_records(self.0))),
            stream,
            rows_sum,
            buffer: start,
            piece_bytes,
        }
    }
}

/// The sum of every record but rows.
pub(crate) fn sum_without_rows(shard: &Shard) -> u64 {
    let mut out = BytesMut::new();
    let mut stream = Stream { chain: first_chain(), records: 0 };
    for record in rest_records(shard) {
        out.clear();
        stream.append(&record, &mut out);
    }
    stream.chain
}

struct Record {
    tag: Tag,
    head: Vec<u8>,
    payload: Payload,
}

enum Payload {
    Nothing,
    Part(Bytes),
    Row(Arc<Values>),
}

impl Record {
    fn small(tag: Tag, head: Vec<u8>) -> Self {
        Self { tag, head, payload: Payload::Nothing }
    }
}

/// Every record but rows and the end, in order. They are small; payloads are shared, not copied.
fn rest_records(shard: &Shard) -> impl Iterator<Item = Record> + Send + use<> {
    let head = Head {
        id: shard.id,
        applied: shard.applied,
        last_command: shard.last_command,
        epoch: shard.epoch,
        slots: shard.slots.clone(),
        dropped: shard.tables.dropped.clone(),
        marks: shard.marks.clone(),
    };
    let mut records = vec![Record::small(Tag::Head, codec::encode(&head))];
    for (id, job) in &shard.jobs {
        let (generation, workers, min_clock) = (job.generation, job.workers, job.min_clock);
        let job = JobRecord { job: *id, generation, workers, min_clock };
        records.push(Record::small(Tag::Job, codec::encode(&job)));
    }
    for (id, job) in &shard.jobs {
        for (worker, member) in &job.members {
            let mut member = MemberRecord { job: *id, worker: *worker, member: member.clone() };
            if mutated(Mutant::DedupNotInSnapshot) {
                member.member.next = Sequence(0);
            }
            records.push(Record::small(Tag::Member, codec::encode(&member)));
        }
    }
    if !mutated(Mutant::StagedPartsNotInSnapshot) {
        shard.jobs.iter().for_each(|(id, job)| push_parts(*id, job, &mut records));
    }
    for table in shard.tables.live.values() {
        let table = TableRecord { schema: table.schema.as_ref().clone(), non_finite: table.non_finite };
        records.push(Record::small(Tag::Table, codec::encode(&table)));
    }
    records.into_iter()
}

fn push_parts(id: JobId, job: &Job, records: &mut Vec<Record>) {
    for (worker, member) in &job.members {
        for (clock, staged) in &member.staged.clocks {
            for (part, payload) in &staged.parts {
                let head = PartHead { job: id, worker: *worker, clock: *clock, epoch: staged.epoch, part: *part };
                let payload = Payload::Part(payload.clone());
                records.push(Record { tag: Tag::Part, head: head.bytes().to_vec(), payload });
            }
        }
    }
}

/// Every row by table, slot and id.
fn row_records(shard: Shard) -> impl Iterator<Item = Record> + Send {
    let slots =
        shard.tables.live.into_iter().flat_map(|(id, table)| table.slots.into_values().map(move |slot| (id, slot)));
    slots.flat_map(|(table, slot)| slot_records(table, &slot))
}

fn slot_records(table: TableId, slot: &SlotRows) -> Vec<Record> {
    let record = |(row, found): (&petuum_types::RowId, &crate::table::Row)| {
        let head = RowHead { table, row: *row, changed: found.changed };
        Record { tag: Tag::Row, head: head.bytes().to_vec(), payload: Payload::Row(Arc::clone(&found.values)) }
    };
    slot.rows.iter().map(record).collect()
}

/// The chain as it grows.
struct Stream {
    chain: u64,
    records: u64,
}

impl Stream {
    fn append(&mut self, record: &Record, out: &mut BytesMut) {
        match &record.payload {
            Payload::Nothing => self.append_bytes(record.tag, [&record.head, &[]], out),
            Payload::Part(payload) => self.append_bytes(record.tag, [&record.head, payload], out),
            Payload::Row(values) => self.append_bytes(record.tag, [&record.head, &le_bytes(values)], out),
        }
    }

    fn append_bytes(&mut self, tag: Tag, body: [&[u8]; 2], out: &mut BytesMut) {
        let frame = frame(tag as u8, body[0].len() + body[1].len());
        out.put_slice(&frame);
        let chain_at = out.len();
        out.put_u64_le(0);
        let body_at = out.len();
        body.iter().for_each(|piece| out.put_slice(piece));
        self.chain = checksum::hash(chain_frame(self.chain, &frame), &out[body_at..]);
        out[chain_at..body_at].copy_from_slice(&self.chain.to_le_bytes());
        self.records += 1;
    }
}

struct Pieces<I> {
    /// `None` once the end record is written.
    source: Option<I>,
    stream: Stream,
    rows_sum: u64,
    buffer: BytesMut,
    piece_bytes: usize,
}

impl<I: Iterator<Item = Record>> Pieces<I> {
    /// Fills the buffer to a piece, or to the end of the stream.
    fn fill(&mut self) {
        while self.buffer.len() < self.piece_bytes {
            let Some(source) = &mut self.source else { return };
            match source.next() {
                Some(record) => self.stream.append(&record, &mut self.buffer),
                None => {
                    let body = end_body(self.stream.records, self.rows_sum);
                    self.stream.append_bytes(Tag::End, [&body, &[]], &mut self.buffer);
                    self.source = None;
                }
            }
        }
    }
}

impl<I: Iterator<Item = Record>> Iterator for Pieces<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        self.fill();
        let bytes = self.buffer.len().min(self.piece_bytes);
        (bytes > 0).then(|| self.buffer.split_to(bytes).freeze())
    }
}
