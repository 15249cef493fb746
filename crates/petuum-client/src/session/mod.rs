//! A registered worker: its pure machines behind one lock, and the tasks that move messages for them.

mod core;
mod courier;
mod heartbeat;
mod reader;
mod report;
mod thread;

pub use report::SessionReport;
pub use thread::WorkerThread;

use self::core::Core;
use crate::client::Job;
use crate::options::WorkerOptions;
use petuum_net::convert;
use petuum_net::wire;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::{Clock, Error, ErrorKind, Generation, Incarnation, Staleness, WorkerId};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What a registration answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) worker: WorkerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) generation: Generation,
    pub(crate) start: Clock,
    pub(crate) lease: Duration,
    pub(crate) removed_at: Option<Clock>,
}

/// A registered worker. Its tasks end when the session and all its threads are dropped.
pub struct Session {
    running: Arc<Running>,
}

/// What the user's handles keep alive together; tasks hold only the core.
pub(crate) struct Running {
    core: Arc<Core>,
    /// Aborted when the last handle goes.
    _tasks: JoinSet<()>,
}

impl Session {
    pub(crate) async fn open(job: &Job, worker: WorkerId, options: WorkerOptions) -> Result<Self, Error> {
        if options.threads == 0 || !(64..=petuum_types::limits::PART_BYTES_MAX).contains(&options.part_bytes) {
            let message = format!(
                "{} threads, parts of {} bytes; expected 1 thread or more, and 64 to {} bytes",
                options.threads,
                options.part_bytes,
                petuum_types::limits::PART_BYTES_MAX
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let staleness = job.tables().await?.iter().map(|t| t.staleness).max().unwrap_or(Staleness(0));
        let registration = register(job, worker, options.rejoin).await?;
        tracing::info!(%worker, incarnation = %registration.incarnation, start = %registration.start, "registered");
        let core = Arc::new(Core::new(job, registration, staleness, options));
        let mut tasks = JoinSet::new();
        for node in core.nodes() {
            tasks.spawn(courier::run(core.clone(), node));
        }
        tasks.spawn(heartbeat::run(core.clone()));
        Ok(Self { running: Arc::new(Running { core, _tasks: tasks }) })
    }

    /// The first clock to compute.
    #[must_use]
    pub fn start(&self) -> Clock {
        self.running.core.registration.start
    }

    /// After a rejoin: the clock at which the worker had been removed. Its own work from there to [`Session::start`] is
    /// lost.
    #[must_use]
    pub fn removed_at(&self) -> Option<Clock> {
        self.running.core.registration.removed_at
    }

    /// The number this process was given.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.running.core.registration.incarnation
    }

    /// One handle per thread, `0..threads`.
    #[must_use]
    pub fn threads(&self) -> Vec<WorkerThread> {
        (0..self.running.core.options.threads).map(|thread| WorkerThread::new(self.running.clone(), thread)).collect()
    }

    /// The handle of a worker of one thread.
    #[must_use]
    pub fn thread(&self) -> WorkerThread {
        WorkerThread::new(self.running.clone(), 0)
    }

    /// Figures so far.
    #[must_use]
    pub fn report(&self) -> SessionReport {
        self.running.core.report()
    }
}

async fn register(job: &Job, worker: WorkerId, rejoin: bool) -> Result<Registration, Error> {
    let cluster = job.client().cluster();
    let request = wire::RegisterRequest {
        format: petuum_net::FORMAT,
        request_id: convert::request_id_bytes(cluster.begin_registration(job.info().id, worker)?),
        job: job.info().id.0,
        worker: worker.0,
        rejoin,
        wait_ms: 0,
    };
    let answer = cluster
        .control(|channel, wait_ms| {
            let request = wire::RegisterRequest { wait_ms, ..request.clone() };
            async move { SessionClient::new(channel).register(request).await }
        })
        .await;
    cluster.end_registration(job.info().id, worker, !answer.as_ref().is_err_and(Error::is_retryable));
    let answer = answer.map_err(|e| e.context(format_args!("registering {worker} of job {:?}", job.info().name)))?;
    Ok(Registration {
        worker,
        incarnation: Incarnation(answer.incarnation),
        generation: Generation(answer.generation),
        start: Clock(answer.start_clock),
        lease: Duration::from_millis(u64::from(answer.lease_ms)),
        removed_at: answer.removed_at.map(Clock),
    })
}
