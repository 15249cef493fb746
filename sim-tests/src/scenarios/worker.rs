//! A worker of a scenario: in each clock it reads some rows, adds its unit vector to all, and ends the clock.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Options, Session, Table, Worker, WorkerOptions, WorkerThread};
use petuum_sim::HostResult;
use petuum_sim::oracle::UnitVectors;
use petuum_types::{RowId, Values, WorkerId};

use super::report::Work;

/// The job's name.
pub(super) const JOB: &str = "first";
/// The table's name.
pub(super) const TABLE: &str = "units";

/// How often a worker that waits for the runner looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Where a worker can be stopped inside a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Point {
    /// Its updates are buffered, `clock()` is not called.
    BeforeClock,
    /// `clock()` has returned: parts are on their way, ticks may be.
    AfterClock,
}

/// What workers and the runner share.
pub(super) struct Shared {
    /// What may be read.
    pub(super) oracle: UnitVectors,
    /// The rows, at least one in every shard.
    pub(super) rows: Vec<RowId>,
    /// Clocks to finish; set once all faults have happened.
    pub(super) target: u64,
    /// By worker: where it is to stop, and whether it has.
    pub(super) stops: BTreeMap<u32, (Point, bool)>,
    /// By worker: whether it has finished all clocks, and everything of them is ticked everywhere.
    pub(super) finished: BTreeMap<u32, bool>,
    /// By worker and incarnation.
    pub(super) work: BTreeMap<(u32, u32), Work>,
    /// Set when workers may end.
    pub(super) over: bool,
}

/// Handle on what is shared; nobody holds it across an await.
pub(super) type Handle = Rc<RefCell<Shared>>;

/// A worker's life from one start to its end.
pub(super) async fn run(handle: Handle, id: u32, endpoints: Vec<String>, options: Options) -> HostResult {
    let random = fastrand::Rng::with_seed(options.seed);
    let client = Client::connect(&endpoints, options).await?;
    let job = client.job(JOB).await?;
    let table = job.table(TABLE).await?;
    let session = job.worker(WorkerId(id), WorkerOptions::default()).await?;
    handle.borrow_mut().oracle.registered(id as usize, session.start().0)?;
    let thread = session.thread();
    let mut life = Life { handle, id, table, session, thread, random };
    life.work().await.map_err(|error| format!("worker {id}: {error}").into())
}

struct Life {
    handle: Handle,
    id: u32,
    table: Table,
    session: Session,
    thread: WorkerThread,
    random: fastrand::Rng,
}

type Failure = Box<dyn std::error::Error>;

impl Life {
    async fn work(&mut self) -> Result<(), Failure> {
        loop {
            let clock = self.thread.now().0;
            let target = self.handle.borrow().target;
            if clock >= target {
                break;
            }
            self.read().await?;
            self.update(clock)?;
            if self.random.u8(..4) == 0 {
                self.read().await?;
            }
            self.stop_at(Point::BeforeClock).await;
            self.thread.clock().await?;
            self.note();
            self.stop_at(Point::AfterClock).await;
            if self.random.u8(..8) == 0 {
                self.thread.flush().await?;
                self.note();
            }
            tokio::time::sleep(Duration::from_micros(self.random.u64(0..20_000))).await;
        }
        self.thread.flush().await?;
        self.thread.barrier().await?;
        self.read_all().await?;
        self.note();
        self.handle.borrow_mut().finished.insert(self.id, true);
        // It stays: a worker that goes away is removed from the job once its lease has passed.
        while !self.handle.borrow().over {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Reads some rows and checks them.
    async fn read(&mut self) -> Result<(), Failure> {
        let rows: Vec<RowId> = {
            let shared = self.handle.borrow();
            shared.rows.iter().copied().filter(|_| self.random.bool()).collect()
        };
        self.check(rows).await
    }

    async fn read_all(&mut self) -> Result<(), Failure> {
        let rows = self.handle.borrow().rows.clone();
        self.check(rows).await
    }

    async fn check(&mut self, rows: Vec<RowId>) -> Result<(), Failure> {
        let clock = self.thread.now().0;
        let found = self.thread.get_many(&self.table, &rows).await?;
        let mut shared = self.handle.borrow_mut();
        for (row, values) in rows.iter().zip(found) {
            let Values::I64(values) = values else { return Err("an i64 table answered with other values".into()) };
            shared.oracle.read(self.id as usize, clock, row.0, &values)?;
        }
        Ok(())
    }

    /// Adds the unit vector of one clock to every row. No await inside: a clock is attempted in all rows or in none.
    fn update(&mut self, clock: u64) -> Result<(), Failure> {
        let mut shared = self.handle.borrow_mut();
        let id = self.id as usize;
        let workers = shared.oracle.width() / 2;
        let mark = shared.oracle.attempt(id, clock);
        let mut deltas = vec![0; 2 * workers];
        deltas[id] = 1;
        deltas[workers + id] = mark;
        for row in &shared.rows {
            self.thread.inc_dense(&self.table, *row, 0, deltas.as_slice())?;
        }
        Ok(())
    }

    /// Tells the oracle and the report what is known now.
    fn note(&self) {
        let report = self.session.report();
        let mut shared = self.handle.borrow_mut();
        shared.oracle.acknowledged(self.id as usize, self.session.start().0 + report.acked);
        let incarnation = u32::try_from(self.session.incarnation().0).unwrap_or(u32::MAX);
        shared.work.insert((self.id, incarnation), Work::from(&report));
    }

    /// Stops for ever if the runner has asked for it here; the runner then kills this host.
    async fn stop_at(&self, point: Point) {
        let asked = {
            let mut shared = self.handle.borrow_mut();
            match shared.stops.get_mut(&self.id) {
                Some((at, stopped)) if *at == point => {
                    *stopped = true;
                    true
                }
                _ => false,
            }
        };
        if asked {
            std::future::pending::<()>().await;
        }
    }
}
