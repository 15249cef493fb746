//! A shard with a job and tables, workers that number their messages, and short names for what tests say often.

use bytes::Bytes;
use petuum_shard::{Applied, ReadOutcome, Settings, Shard, WorkerStatus};
use petuum_types::command::{ShardAnswer, ShardCommand, WorkerKey};
use petuum_types::entry::Entry;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::{Outcome, Refusal, Retry};
use petuum_types::part::{self, SectionData};
use petuum_types::read::{Read, ReadAnswer};
use petuum_types::{
    Clock, Generation, Incarnation, Initial, JobId, LogIndex, MapEpoch, NonFinite, RowId, Sequence, ShardId, Staleness,
    TableId, TableSchema, ValueType, Values, WorkerId,
};

pub(crate) const JOB: JobId = JobId(1);
pub(crate) const GENERATION: Generation = Generation(1);
/// f32, 4 columns, zero, rejects what is not finite.
pub(crate) const FLOATS: TableId = TableId(1);
/// i64, 2 columns, 7 everywhere.
pub(crate) const COUNTERS: TableId = TableId(2);
/// f32, 3 columns, normal, drops what is not finite.
pub(crate) const NORMALS: TableId = TableId(3);
pub(crate) const WORKERS: u32 = 4;

pub(crate) fn schema(id: TableId, value_type: ValueType, width: u32, initial: Initial) -> TableSchema {
    TableSchema {
        id,
        job: JOB,
        name: format!("table-{}", id.0),
        width,
        value_type,
        initial,
        seed: 11,
        non_finite: NonFinite::Reject,
        staleness: Staleness(0),
    }
}

pub(crate) fn floats() -> TableSchema {
    schema(FLOATS, ValueType::F32, 4, Initial::Zero)
}

/// The commands that every shard of the tests begins with.
pub(crate) fn setup(slots: std::ops::Range<u16>) -> Vec<ShardCommand> {
    let normal = Initial::Normal { mean: 0, deviation: u64::from(1.0f32.to_bits()) };
    let normals = schema(NORMALS, ValueType::F32, 3, normal);
    vec![
        ShardCommand::Own { epoch: MapEpoch(1), slots },
        ShardCommand::OpenJob { job: JOB, generation: GENERATION, workers: WORKERS },
        ShardCommand::CreateTable(floats()),
        ShardCommand::CreateTable(schema(COUNTERS, ValueType::I64, 2, Initial::Constant(7))),
        ShardCommand::CreateTable(TableSchema { non_finite: NonFinite::Drop, ..normals }),
    ]
}

pub(crate) fn key(worker: u32) -> WorkerKey {
    WorkerKey { job: JOB, generation: GENERATION, worker: WorkerId(worker) }
}

pub(crate) fn fence(worker: u32, incarnation: u64, admit: bool) -> ShardCommand {
    ShardCommand::Fence { worker: key(worker), incarnation: Incarnation(incarnation), admit }
}

pub(crate) fn settle(worker: u32, incarnation: u64, clock: u64, keep: bool) -> ShardCommand {
    ShardCommand::Settle { worker: key(worker), incarnation: Incarnation(incarnation), clock: Clock(clock), keep }
}

/// A replica and the log index it has come to.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) shard: Shard,
    pub(crate) index: u64,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::owning(0..4096, settings)
    }

    pub(crate) fn owning(slots: std::ops::Range<u16>, settings: Settings) -> Self {
        let mut rig = Self { shard: Shard::new(ShardId(0), settings), index: 0 };
        for command in setup(slots) {
            assert_eq!(rig.command(&command), ShardAnswer::Done);
        }
        rig
    }

    pub(crate) fn command(&mut self, command: &ShardCommand) -> ShardAnswer {
        self.index += 1;
        match self.shard.apply(LogIndex(self.index), &Entry::Command(command.clone())) {
            Applied::Command(answer) => answer,
            Applied::Messages(_) => panic!("a command answers as one"),
        }
    }

    /// One entry with these messages.
    pub(crate) fn entry(&mut self, messages: &[WorkerMessage]) -> Vec<Outcome> {
        self.index += 1;
        match self.shard.apply(LogIndex(self.index), &Entry::Messages(messages.to_vec())) {
            Applied::Messages(outcomes) => outcomes,
            Applied::Command(_) => panic!("messages answer one by one"),
        }
    }

    pub(crate) fn send(&mut self, message: &WorkerMessage) -> Outcome {
        self.entry(std::slice::from_ref(message)).pop().unwrap()
    }

    /// Joins a worker, alone: in one shard, C is what the fence answers.
    pub(crate) fn join(&mut self, worker: u32, incarnation: u64) -> Client {
        let ShardAnswer::Clock(clock) = self.command(&fence(worker, incarnation, true)) else {
            panic!("a join is answered with a clock")
        };
        assert_eq!(self.command(&settle(worker, incarnation, clock.0, true)), ShardAnswer::Done);
        Client::new(worker, incarnation)
    }

    pub(crate) fn status(&self, worker: u32) -> WorkerStatus {
        self.shard.workers(JOB).into_iter().find(|w| w.worker == WorkerId(worker)).expect("a known worker")
    }

    pub(crate) fn clock(&self, worker: u32) -> u64 {
        self.status(worker).clock.0
    }

    pub(crate) fn min_clock(&self) -> u64 {
        self.shard.min_clock(JOB).unwrap().0
    }

    pub(crate) fn floats(&self, row: u64) -> Vec<f32> {
        self.row(FLOATS, row).0.as_f32().unwrap().to_vec()
    }

    /// A row's values and the index that last changed it.
    pub(crate) fn row(&self, table: TableId, row: u64) -> (Values, u64) {
        let read = Read { epoch: self.shard.epoch(), ..read(table, &[row]) };
        let answer = answered(self.shard.read(&read));
        (answer.rows[0].values.as_ref().clone(), answer.rows[0].changed.0)
    }

    /// Ticks the client's next clock with one update, in two messages.
    pub(crate) fn commit(&mut self, client: &mut Client, clock: u64, payload: Bytes) {
        let stage = client.stage(clock, 0, payload);
        assert_eq!(self.send(&stage), Outcome::Accepted);
        let tick = client.tick(clock, 1);
        assert_eq!(self.send(&tick), Outcome::Accepted);
    }

    /// Ticks clocks without updates.
    pub(crate) fn tick_empty(&mut self, client: &mut Client, clocks: std::ops::Range<u64>) {
        for clock in clocks {
            let tick = client.tick(clock, 0);
            assert_eq!(self.send(&tick), Outcome::Accepted);
        }
    }
}

/// One incarnation of a worker, numbering its messages to the shard.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) worker: u32,
    pub(crate) incarnation: u64,
    pub(crate) epoch: u64,
    pub(crate) next: u64,
    pub(crate) acked_below: u64,
}

impl Client {
    pub(crate) fn new(worker: u32, incarnation: u64) -> Self {
        Self { worker, incarnation, epoch: 1, next: 0, acked_below: 0 }
    }

    pub(crate) fn message(&mut self, kind: Kind, clock: u64, count: u32, payload: Bytes) -> WorkerMessage {
        self.next += 1;
        WorkerMessage {
            kind,
            job: JOB,
            generation: GENERATION,
            worker: WorkerId(self.worker),
            incarnation: Incarnation(self.incarnation),
            sequence: Sequence(self.next - 1),
            epoch: MapEpoch(self.epoch),
            clock: Clock(clock),
            acked_below: Sequence(self.acked_below),
            count,
            payload,
        }
    }

    pub(crate) fn stage(&mut self, clock: u64, part: u32, payload: Bytes) -> WorkerMessage {
        self.message(Kind::Stage, clock, part, payload)
    }

    pub(crate) fn tick(&mut self, clock: u64, parts: u32) -> WorkerMessage {
        self.message(Kind::Tick, clock, parts, Bytes::new())
    }

    pub(crate) fn stage_tick(&mut self, clock: u64, payload: Bytes) -> WorkerMessage {
        self.message(Kind::StageTick, clock, 0, payload)
    }

    pub(crate) fn abort(&mut self, clock: u64) -> WorkerMessage {
        self.message(Kind::Abort, clock, 0, Bytes::new())
    }
}

/// A part that adds `values` to one row of an f32 table, from a column on.
pub(crate) fn add(table: TableId, row: u64, first_column: u32, values: &[f32]) -> Bytes {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    one_section(table, ValueType::F32, first_column, values.len(), row, &bytes)
}

/// The same for an i64 table.
pub(crate) fn count(row: u64, values: &[i64]) -> Bytes {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    one_section(COUNTERS, ValueType::I64, 0, values.len(), row, &bytes)
}

fn one_section(table: TableId, value_type: ValueType, first: u32, columns: usize, row: u64, bytes: &[u8]) -> Bytes {
    let columns = u32::try_from(columns).unwrap();
    part::encode(&[SectionData { table, value_type, first_column: first, columns, rows: vec![(RowId(row), bytes)] }])
}

/// A read without a session that any state satisfies.
pub(crate) fn read(table: TableId, rows: &[u64]) -> Read {
    Read {
        job: JOB,
        generation: GENERATION,
        epoch: MapEpoch(1),
        reader: None,
        table,
        rows: rows.iter().map(|row| RowId(*row)).collect(),
        min_clock: Clock(0),
        own_clock: Clock(0),
        min_index: LogIndex(0),
    }
}

pub(crate) fn answered(outcome: ReadOutcome) -> ReadAnswer {
    match outcome {
        ReadOutcome::Answer(answer) => answer,
        other => panic!("expected an answer, got {other:?}"),
    }
}

pub(crate) fn refused(outcome: Outcome) -> Refusal {
    match outcome {
        Outcome::Refused(refusal) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) fn gap(expected: u64) -> Outcome {
    Outcome::Retry(Retry::Gap { expected: Sequence(expected) })
}

pub(crate) const UNREGISTERED: Outcome = Outcome::Retry(Retry::Unregistered);
