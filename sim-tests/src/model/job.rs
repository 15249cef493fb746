//! The one job of every model: its map, its table, and updates that say who made them.
//!
//! Row `row_of(i)` lies in shard i. Its columns are (worker, attempt); clock c adds `1 << (8 * c)`. So a row tells for each
//! worker, attempt and clock how often that update was applied, whatever order it came in.

use super::bounds::{ATTEMPTS_MAX, CLOCKS_MAX};
use super::packet::ProcessId;
use bytes::Bytes;
use petuum_control::{ControlCommand, JobSettings};
use petuum_session::{UpdateBuffer, cut};
use petuum_types::map::ShardMap;
use petuum_types::part::Part;
use petuum_types::{
    ClusterId, Initial, JobId, NodeId, NonFinite, RequestId, RowId, ShardId, Staleness, TableId, TableSchema,
    ValueType, WorkerId, limits,
};
use std::collections::BTreeMap;

pub(super) const SHARDS: usize = 2;
pub(super) const WORKERS: usize = 2;
pub(super) const JOB: JobId = JobId(1);
pub(super) const TABLE: TableId = TableId(1);
const WIDTH: u32 = 2 * ATTEMPTS_MAX as u32;

/// What never changes in a model.
#[derive(Debug)]
pub(super) struct JobPlan {
    pub(super) map: ShardMap,
    pub(super) rows: [RowId; SHARDS],
    schema: TableSchema,
    one_shard_clocks: bool,
}

impl JobPlan {
    pub(super) fn new(staleness: u32, one_shard_clocks: bool) -> Self {
        let nodes = BTreeMap::from([(NodeId(1), String::from("127.0.0.1:1"))]);
        let map = ShardMap::spread(nodes, 2, 1).expect("two shards on one node");
        let row = |shard| (0..).map(RowId).find(|row| map.shard_of(TABLE, *row) == ShardId(shard));
        let rows = [0, 1].map(|shard| row(shard).expect("every shard has rows"));
        let schema = TableSchema {
            id: TABLE,
            job: JOB,
            name: "w".into(),
            width: WIDTH,
            value_type: ValueType::I64,
            initial: Initial::Zero,
            seed: 0,
            non_finite: NonFinite::Reject,
            staleness: Staleness(staleness),
        };
        Self { map, rows, schema, one_shard_clocks }
    }

    /// Forms the cluster and makes the job and its table.
    pub(super) fn calls(&self) -> [ControlCommand; 3] {
        let s = &self.schema;
        [
            ControlCommand::Form { cluster: ClusterId(1), map: self.map.clone() },
            ControlCommand::CreateJob {
                request: RequestId(1000),
                name: "job".into(),
                workers: 2,
                settings: JobSettings::default(),
            },
            ControlCommand::CreateTable {
                request: RequestId(1001),
                job: JOB,
                name: s.name.clone(),
                width: s.width,
                value_type: s.value_type,
                initial: s.initial,
                seed: s.seed,
                non_finite: s.non_finite,
                staleness: s.staleness,
            },
        ]
    }

    /// Whether a clock's updates reach a shard.
    pub(super) fn reaches(&self, clock: u8, shard: usize) -> bool {
        !self.one_shard_clocks || usize::from(clock) % SHARDS == shard
    }

    /// A clock's parts, made as a client makes them (P1).
    pub(super) fn parts(&self, by: ProcessId, clock: u8) -> BTreeMap<ShardId, Vec<Bytes>> {
        let mut buffer = UpdateBuffer::default();
        for (shard, row) in self.rows.iter().enumerate().filter(|(shard, _)| self.reaches(clock, *shard)) {
            let column = column(by);
            let fits = buffer.inc(&self.schema, *row, column, 1i64 << (8 * u32::from(clock)));
            fits.unwrap_or_else(|e| panic!("the update fits the table in shard {shard}: {e}"));
        }
        cut(&buffer.take(), &self.map, limits::PART_BYTES)
    }
}

/// The request id under which a process registers.
pub(super) fn request_of(process: ProcessId) -> RequestId {
    RequestId(1 + u128::from(column(process)))
}

pub(super) fn worker_id(worker: u8) -> WorkerId {
    WorkerId(u32::from(worker))
}

fn column(by: ProcessId) -> u32 {
    assert!(by.attempt < ATTEMPTS_MAX, "a model with more than {ATTEMPTS_MAX} processes per worker");
    u32::from(by.worker) * u32::from(ATTEMPTS_MAX) + u32::from(by.attempt)
}

/// How often each update is contained in a row: `[worker][attempt][clock]`.
pub(super) type Tally = [[[u8; CLOCKS_MAX as usize]; ATTEMPTS_MAX as usize]; WORKERS];

/// Adds a row's values from column `first` on.
pub(super) fn tally(into: &mut Tally, first: usize, values: &[i64]) {
    for (i, value) in values.iter().enumerate() {
        let (worker, attempt) = ((first + i) / usize::from(ATTEMPTS_MAX), (first + i) % usize::from(ATTEMPTS_MAX));
        for (clock, count) in value.to_le_bytes().into_iter().take(usize::from(CLOCKS_MAX)).enumerate() {
            into[worker][attempt][clock] += count;
        }
    }
}

/// The same of a part's bytes.
pub(super) fn tally_part(payload: &[u8]) -> Tally {
    let mut out = Tally::default();
    for section in Part::parse(payload).expect("a staged part is whole").sections() {
        for (_, values) in section.iter() {
            let (values, _) = values.as_chunks::<8>();
            let values: Vec<i64> = values.iter().map(|v| i64::from_le_bytes(*v)).collect();
            tally(&mut out, section.first_column as usize, &values);
        }
    }
    out
}
