//! The workspace against a plain model of a job: this worker of two threads, another worker, two shards that keep every
//! past state, replicas that answer from any of them that a read's requirement allows, answers that come late.
//!
//! Every row holds two columns: what this worker has added, and how often the other worker has ticked in the row's shard.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const ROWS: u64 = 6;
const THREADS: usize = 2;

type Key = (u32, u64);

/// A shard's state after one log entry.
#[derive(Clone, Default)]
struct State {
    own_clock: u64,
    other_clock: u64,
    own: BTreeMap<Key, i64>,
}

struct Asked {
    thread: usize,
    clock: Clock,
    table: u32,
    shard: u64,
    answer: ReadAnswer,
}

struct Model {
    tables: Vec<TableSchema>,
    workspace: Workspace,
    /// Every state of each shard; the position is the log index.
    shards: Vec<Vec<State>>,
    /// This worker's additions by clock, whether sent or not.
    added: BTreeMap<u64, BTreeMap<Key, i64>>,
    /// Clocks finished, and so on their way to the shards.
    finished: u64,
    /// The other worker's ticks that a row has been seen with.
    seen: BTreeMap<Key, i64>,
    late: Vec<Asked>,
}

impl Model {
    fn new(cache_bytes: usize, own_bytes: usize) -> Self {
        let staleness = [0, 2];
        let tables =
            (1..).zip(staleness).map(|(id, s)| TableSchema { staleness: Staleness(s), ..table(id, 2, ValueType::I64) });
        Self {
            tables: tables.collect(),
            workspace: Workspace::new(THREADS, Clock(0), Staleness(2), &CacheSettings { cache_bytes, own_bytes }),
            shards: vec![vec![State::default()]; 2],
            added: BTreeMap::new(),
            finished: 0,
            seen: BTreeMap::new(),
            late: Vec::new(),
        }
    }

    fn step(&mut self, action: u8, a: u8, b: u8) {
        let (thread, table, row) = (usize::from(a) % THREADS, usize::from(a >> 1) % 2, u64::from(a >> 2) % ROWS);
        match action % 16 {
            0..4 => self.inc(thread, table, row, i64::from(b) - 100),
            4..6 => self.tick(thread),
            6..8 => self.apply_own(usize::from(b) % 2),
            8..10 => self.apply_other(usize::from(b) % 2),
            10..14 => self.read(thread, table, row, b),
            14 => self.deliver(b),
            _ => self.give_up(b),
        }
    }

    fn inc(&mut self, thread: usize, table: usize, row: u64, value: i64) {
        self.workspace.inc(thread, &self.tables[table], RowId(row), 0, value).unwrap();
        let clock = self.workspace.clocks().clock(thread).0;
        *self.added.entry(clock).or_default().entry((self.tables[table].id.0, row)).or_default() += value;
    }

    fn tick(&mut self, thread: usize) {
        if let Some((clock, updates)) = self.workspace.tick(thread) {
            assert_eq!(clock.0, self.finished);
            let touched = self.added.get(&clock.0).map_or(0, BTreeMap::len);
            assert_eq!(updates.rows(), touched);
            self.finished += 1;
        }
    }

    fn apply_own(&mut self, shard: usize) {
        let mut state = self.shards[shard].last().unwrap().clone();
        if state.own_clock == self.finished {
            return;
        }
        for (key, value) in self.added.get(&state.own_clock).into_iter().flatten() {
            if key.1 % 2 == shard as u64 {
                *state.own.entry(*key).or_default() += value;
            }
        }
        state.own_clock += 1;
        self.shards[shard].push(state);
    }

    fn apply_other(&mut self, shard: usize) {
        let mut state = self.shards[shard].last().unwrap().clone();
        state.other_clock += 1;
        self.shards[shard].push(state);
    }

    /// P4: only a clock that no shard has ticked can be given up.
    fn give_up(&mut self, pick: u8) {
        let ticked = self.shards.iter().map(|states| states.last().unwrap().own_clock).max().unwrap();
        if pick.is_multiple_of(4) && ticked < self.finished {
            self.workspace.give_up(Clock(ticked));
            self.added.split_off(&ticked);
            self.finished = ticked;
        }
    }

    fn read(&mut self, thread: usize, table: usize, row: u64, pick: u8) {
        let schema = self.tables[table].clone();
        if let Some(values) = self.workspace.lookup(thread, &schema, RowId(row)) {
            return self.check(thread, &schema, row, &values);
        }
        let shard = row % 2;
        let rows: Vec<RowId> = [row, (row + 2) % ROWS].map(RowId)[..1 + usize::from(pick & 1)].to_vec();
        let needs = self.workspace.requirement(thread, ShardId(u32::try_from(shard).unwrap()), &schema, &rows);
        let states = &self.shards[usize::try_from(shard).unwrap()];
        let fits = |(index, state): &(usize, &State)| {
            let min_clock = state.own_clock.min(state.other_clock);
            *index as u64 >= needs.min_index.0 && min_clock >= needs.min_clock.0 && state.own_clock >= needs.own_clock.0
        };
        let fitting: Vec<(usize, &State)> = states.iter().enumerate().filter(fits).collect();
        // None: the read is parked, and the reader waits.
        let Some((index, state)) = fitting.get(usize::from(pick >> 2) % fitting.len().max(1)) else { return };
        let rows = rows.iter().map(|row| {
            let own = state.own.get(&(schema.id.0, row.0)).copied().unwrap_or_default();
            let values = Arc::new(Values::I64(vec![own, i64::try_from(state.other_clock).unwrap()]));
            RowAnswer { row: *row, changed: LogIndex(0), values }
        });
        let answer = ReadAnswer {
            index: LogIndex(*index as u64),
            min_clock: Clock(state.own_clock.min(state.other_clock)),
            own_clock: Clock(state.own_clock),
            rows: rows.collect(),
        };
        let clock = self.workspace.clocks().clock(thread);
        let asked = Asked { thread, clock, table: schema.id.0, shard, answer };
        if pick & 2 == 0 {
            let shown = self.take(&asked);
            assert_eq!(shown, asked.answer.rows.len(), "an answer that meets its requirement is shown");
        } else {
            self.late.push(asked);
        }
    }

    /// Answers of reads on their way, in any order.
    fn deliver(&mut self, pick: u8) {
        if !self.late.is_empty() {
            let asked = self.late.remove(usize::from(pick) % self.late.len());
            self.take(&asked);
        }
    }

    /// How many rows were shown.
    fn take(&mut self, asked: &Asked) -> usize {
        // A thread waits for its read, unless its clock was given up.
        if self.workspace.clocks().clock(asked.thread) != asked.clock {
            return 0;
        }
        let schema = self.tables[asked.table as usize - 1].clone();
        let shard = ShardId(u32::try_from(asked.shard).unwrap());
        let rows = self.workspace.receive(asked.thread, shard, &schema, &asked.answer).unwrap();
        for (row, values) in asked.answer.rows.iter().zip(&rows) {
            if let Some(values) = values {
                self.check(asked.thread, &schema, row.row.0, values);
            }
        }
        rows.iter().flatten().count()
    }

    fn check(&mut self, thread: usize, schema: &TableSchema, row: u64, values: &Values) {
        let key = (schema.id.0, row);
        let [own, other] = values.as_i64().unwrap() else { panic!("two columns") };
        let added: i64 = self.added.values().filter_map(|clock| clock.get(&key)).sum();
        assert_eq!(*own, added, "G5: every own write, once");
        let needs = self.workspace.clocks().clock(thread).needs(schema.staleness);
        assert!(u64::try_from(*other).unwrap() >= needs.0, "G4: {other} ticks of the other worker; needs {needs}");
        let seen = self.seen.entry(key).or_default();
        assert!(*other >= *seen, "G5: never an older state");
        *seen = *other;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn g4_g5_the_workspace_against_a_model(
        cache_rows in 0usize..7,
        own_bytes in prop_oneof![0usize..600, Just(100_000)],
        actions in prop::collection::vec(any::<(u8, u8, u8)>(), 0..400),
    ) {
        let mut model = Model::new(cache_rows * 176, own_bytes);
        for (action, a, b) in actions {
            model.step(action, a, b);
            prop_assert!(model.workspace.cache().bytes() <= cache_rows * 176, "G10");
            prop_assert!(model.workspace.own_bytes() <= own_bytes, "G10");
        }
        prop_assert!(model.workspace.differentials().keys().all(|behind| *behind >= -2), "SSP");
    }
}
