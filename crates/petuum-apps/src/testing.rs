//! An in-memory cluster for tests of programs: every read is as stale as its table allows.
//!
//! A read at clock c under staleness s sees every worker's updates with timestamps up to c - s - 1, applied clock by
//! clock and in worker order, and all of its own: the least that G4 and G5 promise, and the same whatever the order in
//! which workers run. So a program's result under it is one exact number.

use petuum_client::{Deltas, Table, Worker};
use petuum_types::{Clock, Error, ErrorKind, JobId, RowId, Staleness, TableId, TableSchema, ValueType, Values};
use petuum_types::{Initial, NonFinite, WorkerId};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// A thread's place: worker, thread.
type Unit = (u32, u32);
type Cell = (TableId, RowId);

struct Update {
    cell: Cell,
    first: usize,
    deltas: Values,
}

#[derive(Default)]
struct State {
    /// Rows after every clock before `applied`.
    rows: BTreeMap<Cell, Values>,
    applied: u64,
    /// Updates of clocks from `applied` on; those of a thread's current clock are not committed yet.
    clocks: BTreeMap<u64, BTreeMap<Unit, Vec<Update>>>,
    now: BTreeMap<Unit, u64>,
    /// A read at this unit's clock fails once.
    fail: Option<(Unit, u64)>,
    deadlines: u32,
}

/// A job of some workers.
#[derive(Clone)]
pub(crate) struct Cluster {
    workers: u32,
    threads: u32,
    staleness: u64,
    state: Arc<Mutex<State>>,
}

/// One thread of it.
pub(crate) struct Double {
    cluster: Cluster,
    unit: Unit,
}

/// A table definition for tests.
pub(crate) fn table(id: u32, width: usize, value_type: ValueType, staleness: u32) -> Table {
    Table::new(TableSchema {
        id: TableId(id),
        job: JobId(1),
        name: format!("table-{id}"),
        width: u32::try_from(width).unwrap(),
        value_type,
        initial: Initial::Zero,
        seed: 0,
        non_finite: NonFinite::Reject,
        staleness: Staleness(staleness),
    })
}

impl Cluster {
    /// A cluster whose clocks are kept as long as reads under `staleness`, the greatest of its tables', need them.
    pub(crate) fn new(workers: u32, threads: u32, staleness: u32) -> Self {
        let units = (0..workers).flat_map(|w| (0..threads).map(move |t| (w, t)));
        let state = State { now: units.map(|unit| (unit, 0)).collect(), ..State::default() };
        Self { workers, threads, staleness: u64::from(staleness), state: Arc::new(Mutex::new(state)) }
    }

    /// A thread at its committed clock; what an earlier handle had not committed is gone.
    pub(crate) fn worker(&self, worker: u32, thread: u32) -> Double {
        let unit = (worker, thread);
        let mut state = self.lock();
        let now = state.now[&unit];
        state.clocks.entry(now).or_default().remove(&unit);
        drop(state);
        Double { cluster: self.clone(), unit }
    }

    /// Lets one read fail as if the worker had lost its connection for good.
    pub(crate) fn fail_at(&self, worker: u32, thread: u32, clock: u64) {
        self.lock().fail = Some(((worker, thread), clock));
    }

    /// Lets the next `count` calls of `clock` run into their deadline.
    pub(crate) fn miss_deadlines(&self, count: u32) {
        self.lock().deadlines = count;
    }

    /// A row with every committed update.
    pub(crate) fn row(&self, table: &Table, row: RowId) -> Values {
        let state = self.lock();
        state.read(table, row, |_, clock, unit_now| clock < unit_now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn min(&self) -> u64 {
        *self.now.values().min().unwrap()
    }

    fn read(&self, table: &Table, row: RowId, visible: impl Fn(Unit, u64, u64) -> bool) -> Values {
        let (cell, schema) = ((table.schema().id, row), table.schema());
        let initial = || Values::zeros(schema.value_type, schema.width as usize);
        let mut values = self.rows.get(&cell).cloned().unwrap_or_else(initial);
        for (clock, units) in &self.clocks {
            for (unit, updates) in units.iter().filter(|(unit, _)| visible(**unit, *clock, self.now[*unit])) {
                let _ = unit;
                updates.iter().filter(|update| update.cell == cell).for_each(|update| update.apply(&mut values));
            }
        }
        values
    }

    /// Applies clocks that no read can exclude any more.
    fn settle(&mut self, staleness: u64) {
        while self.applied < self.min().saturating_sub(staleness) {
            for update in self.clocks.remove(&self.applied).unwrap_or_default().into_values().flatten() {
                let len = update.first + update.deltas.len();
                let zeros = || Values::zeros(update.deltas.value_type(), len);
                update.apply(self.rows.entry(update.cell).or_insert_with(zeros));
            }
            self.applied += 1;
        }
    }
}

impl Update {
    fn apply(&self, values: &mut Values) {
        match (values, &self.deltas) {
            (Values::F32(values), Values::F32(deltas)) => {
                values[self.first..].iter_mut().zip(deltas).for_each(|(value, delta)| *value += delta);
            }
            (Values::I64(values), Values::I64(deltas)) => {
                values[self.first..].iter_mut().zip(deltas).for_each(|(value, delta)| *value += delta);
            }
            _ => unreachable!("inc_dense checks the type"),
        }
    }
}

impl Worker for Double {
    fn id(&self) -> WorkerId {
        WorkerId(self.unit.0)
    }

    fn workers(&self) -> u32 {
        self.cluster.workers
    }

    fn thread(&self) -> u32 {
        self.unit.1
    }

    fn threads(&self) -> u32 {
        self.cluster.threads
    }

    fn now(&self) -> Clock {
        Clock(self.cluster.lock().now[&self.unit])
    }

    async fn get(&mut self, table: &Table, row: RowId) -> Result<Values, Error> {
        Ok(self.get_many(table, &[row]).await?.remove(0))
    }

    async fn get_many(&mut self, table: &Table, rows: &[RowId]) -> Result<Vec<Values>, Error> {
        let now = self.now();
        if self.cluster.lock().fail.take_if(|fail| *fail == (self.unit, now.0)).is_some() {
            return Err(Error::new(ErrorKind::Unavailable, "the test cuts the connection"));
        }
        let needs = now.needs(table.schema().staleness).0;
        poll_fn(|_| if self.cluster.lock().min() >= needs { Poll::Ready(()) } else { Poll::Pending }).await;
        let state = self.cluster.lock();
        let visible = |unit, clock, _| clock < needs || unit == self.unit;
        Ok(rows.iter().map(|row| state.read(table, *row, visible)).collect())
    }

    fn inc_dense<'a>(
        &mut self,
        table: &Table,
        row: RowId,
        first_column: u32,
        deltas: impl Into<Deltas<'a>>,
    ) -> Result<(), Error> {
        let deltas = match deltas.into() {
            Deltas::F32(deltas) => Values::F32(deltas.to_vec()),
            Deltas::I64(deltas) => Values::I64(deltas.to_vec()),
        };
        let (first, schema) = (first_column as usize, table.schema());
        if deltas.value_type() != schema.value_type || first + deltas.len() > schema.width as usize {
            return Err(Error::new(ErrorKind::InvalidArgument, "wrong type or column"));
        }
        let mut state = self.cluster.lock();
        let now = state.now[&self.unit];
        let updates = state.clocks.entry(now).or_default().entry(self.unit).or_default();
        updates.push(Update { cell: (schema.id, row), first, deltas });
        Ok(())
    }

    async fn clock(&mut self) -> Result<Clock, Error> {
        let mut state = self.cluster.lock();
        if state.deadlines > 0 {
            state.deadlines -= 1;
            return Err(Error::new(ErrorKind::DeadlineExceeded, "waited 60 s for shard 0"));
        }
        let now = state.now.get_mut(&self.unit).unwrap();
        *now += 1;
        let now = *now;
        state.settle(self.cluster.staleness);
        Ok(Clock(now))
    }

    async fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    async fn barrier(&mut self) -> Result<(), Error> {
        let now = self.now().0;
        poll_fn(|_| if self.cluster.lock().min() >= now { Poll::Ready(()) } else { Poll::Pending }).await;
        Ok(())
    }

    async fn leave(self) -> Result<Clock, Error> {
        Ok(self.now())
    }
}

/// Runs futures to their ends in turns.
///
/// # Panics
/// If none ends although each has been polled many times: they wait for each other.
pub(crate) fn run_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    const IDLE_ROUNDS_MAX: u32 = 1_000_000;
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..IDLE_ROUNDS_MAX {
        for (future, output) in futures.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) {
            return outputs.into_iter().flatten().collect();
        }
    }
    panic!("futures wait for each other");
}
