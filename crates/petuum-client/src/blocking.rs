//! The same for programs without async code. No logic here: every call runs its async twin to the end.

use crate::client;
use crate::options::{Options, WorkerOptions};
use crate::reads::{ReadFrom, RowRead};
use crate::session::{self, SessionReport};
use crate::worker::{self, Deltas, Table};
use petuum_types::{Clock, Error, ErrorKind, RowId, Values, WorkerId};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A connection to a cluster, with a runtime of its own.
#[derive(Clone)]
pub struct Client {
    runtime: Arc<Runtime>,
    client: client::Client,
}

/// A job.
#[derive(Clone)]
pub struct Job {
    runtime: Arc<Runtime>,
    job: client::Job,
}

/// A registered worker.
pub struct Session {
    runtime: Arc<Runtime>,
    session: session::Session,
}

/// One thread of a worker.
pub struct Worker {
    runtime: Arc<Runtime>,
    worker: session::WorkerThread,
}

impl Client {
    /// As [`client::Client::connect`].
    ///
    /// # Errors
    /// The same, and [`ErrorKind::ResourceExhausted`] if the runtime's thread cannot be started.
    pub fn connect(endpoints: &[String], options: Options) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| Error::new(ErrorKind::ResourceExhausted, format!("no runtime could be started: {e}")))?;
        let client = runtime.block_on(client::Client::connect(endpoints, options))?;
        Ok(Self { runtime: Arc::new(runtime), client })
    }

    fn wrap(&self, job: client::Job) -> Job {
        Job { runtime: self.runtime.clone(), job }
    }

    /// As [`client::Client::create_job`].
    ///
    /// # Errors
    /// The same.
    pub fn create_job(&self, name: &str, workers: u32, lease: Option<Duration>) -> Result<Job, Error> {
        Ok(self.wrap(self.runtime.block_on(self.client.create_job(name, workers, lease))?))
    }

    /// As [`client::Client::job`].
    ///
    /// # Errors
    /// The same.
    pub fn job(&self, name: &str) -> Result<Job, Error> {
        Ok(self.wrap(self.runtime.block_on(self.client.job(name))?))
    }
}

impl Job {
    /// As [`client::Job::create_table`].
    ///
    /// # Errors
    /// The same.
    pub fn create_table(&self, table: &client::TableDefinition) -> Result<Table, Error> {
        self.runtime.block_on(self.job.create_table(table))
    }

    /// As [`client::Job::table`].
    ///
    /// # Errors
    /// The same.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        self.runtime.block_on(self.job.table(name))
    }

    /// As [`client::Job::read`].
    ///
    /// # Errors
    /// The same.
    pub fn read(&self, table: &Table, rows: &[RowId], from: ReadFrom) -> Result<Vec<RowRead>, Error> {
        self.runtime.block_on(self.job.read(table, rows, from))
    }

    /// As [`client::Job::worker`].
    ///
    /// # Errors
    /// The same.
    pub fn worker(&self, worker: WorkerId, options: WorkerOptions) -> Result<Session, Error> {
        let session = self.runtime.block_on(self.job.worker(worker, options))?;
        Ok(Session { runtime: self.runtime.clone(), session })
    }
}

impl Session {
    /// One handle per thread; each may go to a thread of the program.
    #[must_use]
    pub fn threads(&self) -> Vec<Worker> {
        let threads = self.session.threads().into_iter();
        threads.map(|worker| Worker { runtime: self.runtime.clone(), worker }).collect()
    }

    /// The handle of a worker of one thread.
    #[must_use]
    pub fn thread(&self) -> Worker {
        Worker { runtime: self.runtime.clone(), worker: self.session.thread() }
    }

    /// Figures so far.
    #[must_use]
    pub fn report(&self) -> SessionReport {
        self.session.report()
    }
}

/// The same interface; its futures are ready when they are made.
impl worker::Worker for Worker {
    fn id(&self) -> WorkerId {
        self.worker.id()
    }

    fn workers(&self) -> u32 {
        self.worker.workers()
    }

    fn thread(&self) -> u32 {
        self.worker.thread()
    }

    fn threads(&self) -> u32 {
        self.worker.threads()
    }

    fn now(&self) -> Clock {
        self.worker.now()
    }

    fn get(&mut self, table: &Table, row: RowId) -> impl Future<Output = Result<Values, Error>> + Send {
        std::future::ready(self.runtime.block_on(self.worker.get(table, row)))
    }

    fn get_many(&mut self, table: &Table, rows: &[RowId]) -> impl Future<Output = Result<Vec<Values>, Error>> + Send {
        std::future::ready(self.runtime.block_on(self.worker.get_many(table, rows)))
    }

    fn inc_dense<'a>(
        &mut self,
        table: &Table,
        row: RowId,
        first_column: u32,
        deltas: impl Into<Deltas<'a>>,
    ) -> Result<(), Error> {
        self.worker.inc_dense(table, row, first_column, deltas)
    }

    fn clock(&mut self) -> impl Future<Output = Result<Clock, Error>> + Send {
        std::future::ready(self.runtime.block_on(self.worker.clock()))
    }

    fn flush(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(self.runtime.block_on(self.worker.flush()))
    }

    fn barrier(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(self.runtime.block_on(self.worker.barrier()))
    }

    fn leave(self) -> impl Future<Output = Result<Clock, Error>> + Send {
        std::future::ready(self.runtime.block_on(self.worker.leave()))
    }
}
