//! A worker of a scenario: in each clock it reads some rows, adds its unit vector to all, and ends the clock.
//!
//! A process that is removed from its job comes back explicitly; one that is replaced ends, and whatever it still does
//! until it hears of it carries a mark that must be seen nowhere.

use std::ops::Range;
use std::time::Duration;

use futures::future::try_join_all;
use petuum_client::{Client, Job, Options, Session, Table, Worker, WorkerOptions, WorkerThread};
use petuum_sim::history::What;
use petuum_sim::oracle::Registered;
use petuum_sim::{History, HostResult};
use petuum_types::{Error, ErrorKind, RowId, WorkerId};

use super::report::Work;
use super::shared::{FRAGILE, Handle, JOB, Point, TABLE};

/// How often a worker that waits for the runner looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How long a worker that has left in the midst of its work stays away.
const AWAY_MS: Range<u64> = 5..1500;

/// One clock in so many is the last before a worker leaves, if workers may be removed.
const LEAVES_ONE_IN: u32 = 200;

/// Where and as whom a process runs.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) handle: Handle,
    pub(super) id: u32,
    pub(super) host: String,
    /// Whether it does nothing until it is told to take over.
    pub(super) waits: bool,
    pub(super) endpoints: Vec<String>,
    pub(super) options: WorkerOptions,
    pub(super) pause_max: Duration,
    /// How long after each other a session's threads begin to read, at most.
    pub(super) out_of_step: Duration,
    /// Whether it may be removed from the job.
    pub(super) removals: bool,
    /// One clock in so many is such that it must be refused.
    pub(super) refused: Option<u32>,
    /// It waits for its ticks after one clock in so many.
    pub(super) flushes_one_in: u32,
    pub(super) history: History,
}

/// A process's life from one start to its end.
pub(super) async fn run(place: Place, options: Options) -> HostResult {
    while place.waits && !place.handle.borrow().takes_over.contains(&place.host) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let mut random = fastrand::Rng::with_seed(options.seed);
    let client = Client::connect(&place.endpoints, options).await?;
    let job = client.job(JOB).await?;
    let mut rejoin = false;
    loop {
        let ended = match Life::begin(&place, &job, rejoin, random.fork()).await {
            Ok(mut life) => life.live().await,
            Err(failure) => Err(failure),
        };
        match ended {
            Ok(()) => return Ok(()),
            Err(Failure::Session(error)) if error.kind() == ErrorKind::Evicted && place.removals => rejoin = true,
            Err(Failure::Left) => {
                rejoin = true;
                tokio::time::sleep(Duration::from_millis(random.u64(AWAY_MS))).await;
            }
            // Another process is this worker now.
            Err(Failure::Session(error)) if error.kind() == ErrorKind::Replaced => {
                std::future::pending::<()>().await;
            }
            Err(failure) => return Err(format!("worker {} on {}: {failure}", place.id, place.host).into()),
        }
    }
}

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Session(#[from] Error),
    #[error("{0}")]
    Oracle(#[from] petuum_sim::oracle::Violation),
    #[error("an i64 table answered with other values")]
    Values,
    #[error("it has left the job and comes back")]
    Left,
    #[error("it left the job at clock {at}; it had ended {ended} clocks, all acknowledged")]
    LeftElsewhere { at: u64, ended: u64 },
}

struct Life {
    place: Place,
    incarnation: u64,
    table: Table,
    fragile: Option<Table>,
    session: Session,
    /// The first makes the updates, all read and end the clocks.
    threads: Vec<WorkerThread>,
    /// Whether the first has updated the clock that all are in already: it began it before the others had ended the last.
    ahead: bool,
    random: fastrand::Rng,
}

/// Reads for one session.
#[derive(Clone, Copy)]
struct Reader<'a> {
    place: &'a Place,
    table: &'a Table,
    incarnation: u64,
}

impl Reader<'_> {
    /// Reads rows a while later, and checks them against what the session had seen by then.
    async fn read(self, thread: &mut WorkerThread, rows: Vec<RowId>, wait: Duration) -> Result<(), Failure> {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let id = self.place.id as usize;
        let seen = self.place.handle.borrow().oracle.seen(id);
        let clock = thread.now().0;
        let found = thread.get_many(self.table, &rows).await?;
        let mut shared = self.place.handle.borrow_mut();
        if !shared.oracle.is_latest(id, self.incarnation) {
            // Its own clocks may not count any more; it will be told.
            return Ok(());
        }
        let mut reads = Vec::with_capacity(rows.len());
        for (row, values) in rows.iter().zip(&found) {
            reads.push((clock, row.0, values.as_i64().ok_or(Failure::Values)?));
        }
        Ok(shared.oracle.read_since(id, &seen, &reads)?)
    }
}

impl Life {
    async fn begin(place: &Place, job: &Job, rejoin: bool, random: fastrand::Rng) -> Result<Self, Failure> {
        let table = job.table(TABLE).await?;
        let fragile = if place.refused.is_some() { Some(job.table(FRAGILE).await?) } else { None };
        let options = WorkerOptions { rejoin, ..place.options.clone() };
        let session = job.worker(WorkerId(place.id), options).await?;
        let incarnation = session.incarnation().0;
        let start = session.start().0;
        let renewed = petuum_sim::now().map(|now| now.saturating_sub(session.report().since_renewal));
        let mut shared = place.handle.borrow_mut();
        // A process that died while it came back may have joined; its successor takes over a session that did nothing.
        let unheard = start > shared.oracle.attempted(place.id as usize);
        let rejoined_from = session.removed_at().filter(|_| rejoin || unheard).map(|clock| clock.0);
        let registered = Registered { incarnation, start, rejoined_from };
        shared.oracle.registered(place.id as usize, registered)?;
        if shared.oracle.is_latest(place.id as usize, incarnation) {
            shared.takeovers += u64::from(shared.latest.insert(place.id, place.host.clone()).is_some());
            shared.rejoins += u64::from(rejoin);
            renewed.map(|at| shared.renewed.insert((place.id, incarnation), at));
        }
        drop(shared);
        let threads = session.threads();
        Ok(Self { place: place.clone(), incarnation, table, fragile, session, threads, ahead: false, random })
    }

    fn id(&self) -> usize {
        self.place.id as usize
    }

    fn is_latest(&self) -> bool {
        self.place.handle.borrow().oracle.is_latest(self.id(), self.incarnation)
    }

    /// Works until all is done; a clock that is refused is given up and computed anew.
    async fn live(&mut self) -> Result<(), Failure> {
        loop {
            match self.work().await {
                Err(Failure::Session(error))
                    if self.fragile.is_some() && error.kind() == ErrorKind::InvalidArgument =>
                {
                    for thread in &mut self.threads {
                        // Each is told once; whoever has been told waits for nothing here.
                        let _ = tokio::time::timeout(Duration::ZERO, thread.flush()).await;
                    }
                    self.ahead = false;
                    let clock = self.threads[0].now().0;
                    let mut shared = self.place.handle.borrow_mut();
                    shared.oracle.gave_up(self.id(), self.incarnation, clock)?;
                    shared.given_up += 1;
                }
                ended => return ended,
            }
        }
    }

    async fn work(&mut self) -> Result<(), Failure> {
        loop {
            let clock = self.threads[0].now().0;
            if clock >= self.place.handle.borrow().target {
                break;
            }
            self.read().await?;
            if !std::mem::take(&mut self.ahead) {
                self.update(clock)?;
            }
            if self.random.u8(..4) == 0 {
                self.read().await?;
            }
            self.stop_at(Point::BeforeClock).await;
            let ended = self.end_clock(clock).await;
            self.note()?;
            ended?;
            self.stop_at(Point::AfterClock).await;
            if self.random.u32(..self.place.flushes_one_in) == 0 {
                let flushed = self.flush().await;
                self.note()?;
                flushed?;
            }
            if self.place.removals && !self.ahead && self.random.u32(..LEAVES_ONE_IN) == 0 {
                return self.leave_for_a_while().await;
            }
            tokio::time::sleep(self.pause()).await;
        }
        self.flush().await?;
        try_join_all(self.threads.iter_mut().map(WorkerThread::barrier)).await?;
        self.read_all().await?;
        self.note()?;
        self.place.handle.borrow_mut().finished.insert(self.place.id, true);
        // It stays: a worker that goes away is removed from the job once its lease has passed.
        while !self.place.handle.borrow().over {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let left_at = self.threads.remove(0).leave().await?;
        self.place.handle.borrow_mut().left.insert(self.place.id, left_at.0);
        Ok(())
    }

    /// All threads end their clock. Now and then the first is in the next one, and has updated it, before the others have:
    /// the clock that they end holds nothing of the next.
    async fn end_clock(&mut self, clock: u64) -> Result<(), Failure> {
        let goes_ahead = self.threads.len() > 1 && self.random.u8(..4) == 0;
        if goes_ahead && clock + 1 < self.place.handle.borrow().target {
            self.threads[0].clock().await?;
            self.update(clock + 1)?;
            self.ahead = true;
            tokio::time::sleep(self.pause()).await;
        }
        let behind = usize::from(self.ahead);
        try_join_all(self.threads.iter_mut().skip(behind).map(WorkerThread::clock)).await?;
        Ok(())
    }

    /// Leaves the job with nothing under way; the next session joins it anew.
    async fn leave_for_a_while(&mut self) -> Result<(), Failure> {
        self.flush().await?;
        self.note()?;
        let ended = self.threads[0].now().0;
        let left_at = self.threads.remove(0).leave().await?.0;
        self.place.handle.borrow_mut().leaves += 1;
        Err(if left_at == ended { Failure::Left } else { Failure::LeftElsewhere { at: left_at, ended } })
    }

    /// Waits until every shard has ticked what was ended.
    async fn flush(&mut self) -> Result<(), Failure> {
        let ended = self.threads[0].now().0;
        self.threads[0].flush().await?;
        self.place.handle.borrow_mut().oracle.flushed(self.id(), self.incarnation, ended);
        Ok(())
    }

    fn pause(&mut self) -> Duration {
        let most = u64::try_from(self.place.pause_max.as_micros()).unwrap_or(u64::MAX);
        let slow = self.place.handle.borrow().slow.get(&self.place.id).copied().unwrap_or_default();
        Duration::from_micros(self.random.u64(..=most)) + slow
    }

    /// Reads some rows and checks them.
    async fn read(&mut self) -> Result<(), Failure> {
        let rows = {
            let (random, shared) = (&mut self.random, self.place.handle.borrow());
            let some = |_: &WorkerThread| shared.rows.iter().copied().filter(|_| random.bool()).collect();
            self.threads.iter().map(some).collect()
        };
        self.check(rows).await
    }

    async fn read_all(&mut self) -> Result<(), Failure> {
        let rows = self.place.handle.borrow().rows.clone();
        self.check(vec![rows; self.threads.len()]).await
    }

    /// All threads, each rows of its own: they begin one after the other, and one's answer may overtake another's.
    async fn check(&mut self, rows: Vec<Vec<RowId>>) -> Result<(), Failure> {
        let apart = if self.threads.len() > 1 { self.place.out_of_step } else { Duration::ZERO };
        let most = u64::try_from(apart.as_micros()).unwrap_or(u64::MAX);
        let reader = Reader { place: &self.place, table: &self.table, incarnation: self.incarnation };
        let reads = self.threads.iter_mut().zip(rows).map(|(thread, rows)| {
            let wait = Duration::from_micros(self.random.u64(..=most));
            reader.read(thread, rows, wait)
        });
        try_join_all(reads).await.map(drop)
    }

    /// Adds the unit vector of one clock to every row. No await inside: a clock is attempted in all rows or in none.
    fn update(&mut self, clock: u64) -> Result<(), Failure> {
        let id = self.id();
        let latest = self.is_latest();
        let mut shared = self.place.handle.borrow_mut();
        let workers = shared.oracle.width() / 2;
        let mark = if latest { shared.oracle.attempt(id, clock) } else { shared.oracle.void_mark() };
        let mut deltas = vec![0; 2 * workers];
        deltas[id] = 1;
        deltas[workers + id] = mark;
        for row in &shared.rows {
            self.threads[0].inc_dense(&self.table, *row, 0, deltas.as_slice())?;
        }
        if let Some(fragile) = &self.fragile {
            // Sums of these depend on their order, which must be the same on all replicas.
            let noise = [self.random.f32(), -self.random.f32()];
            self.threads[0].inc_dense(fragile, shared.rows[0], 1, noise.as_slice())?;
            // Not if the others are in the clock before: this one may be well, and theirs is not this attempt's.
            let together = self.threads.iter().all(|thread| thread.now().0 == clock);
            let one_in = self.place.refused.unwrap_or(u32::MAX);
            if together && self.random.u32(..one_in) == 0 {
                // Each thread's is finite; their sum is not, which only the server finds.
                for thread in &mut self.threads {
                    thread.inc(fragile, shared.rows[0], 0, f32::MAX)?;
                }
            }
        }
        Ok(())
    }

    /// Tells the oracle, the report and the history what is known now.
    fn note(&self) -> Result<(), Failure> {
        let report = self.session.report();
        let start = self.session.start().0;
        let mut shared = self.place.handle.borrow_mut();
        shared.oracle.acknowledged(self.id(), self.incarnation, start + report.acked)?;
        shared.work.insert((self.place.id, self.incarnation), Work::from(&report));
        if let Some(now) = petuum_sim::now() {
            if shared.oracle.is_latest(self.id(), self.incarnation) {
                shared.renewed.insert((self.place.id, self.incarnation), now.saturating_sub(report.since_renewal));
            }
            let clocks = What::Clocks { ended: start + report.clocks, acked: start + report.acked };
            self.place.history.note(now, &self.place.host, clocks);
        }
        Ok(())
    }

    /// Stops for ever if the runner has asked for it here; the runner then kills this host.
    async fn stop_at(&self, point: Point) {
        let latest = self.is_latest();
        let asked = {
            let mut shared = self.place.handle.borrow_mut();
            match shared.stops.get_mut(&self.place.id) {
                Some((at, stopped)) if *at == point && latest => {
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
