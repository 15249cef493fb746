//! A registered worker: its pure machines behind one lock, and the tasks that move messages for them.

mod core;
mod courier;
mod heartbeat;
mod reader;
mod registration;
mod report;
mod route;
mod running;
mod silence;
mod thread;

pub(crate) use registration::Place;
pub use report::SessionReport;
pub use thread::WorkerThread;

use self::core::Core;
use self::registration::register;
use self::running::Running;
use crate::options::WorkerOptions;
use petuum_types::{Clock, Error, ErrorKind, Incarnation, WorkerId};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A registered worker. Its tasks end when the session and all its threads are dropped, whatever they still had to send:
/// flush or leave before ([`crate::Worker`]).
pub struct Session {
    running: Arc<Running>,
}

impl Session {
    pub(crate) async fn open(place: Place, worker: WorkerId, options: WorkerOptions) -> Result<Self, Error> {
        if options.threads == 0 || !(64..=petuum_types::limits::PART_BYTES_MAX).contains(&options.part_bytes) {
            let message = format!(
                "{} threads, parts of {} bytes; expected 1 thread or more, and 64 to {} bytes",
                options.threads,
                options.part_bytes,
                petuum_types::limits::PART_BYTES_MAX
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let begun = Instant::now();
        let registration = register(&place, worker, options.rejoin).await?;
        tracing::info!(%worker, incarnation = %registration.incarnation, start = %registration.start, "registered");
        let core = Arc::new(Core::new(place, registration, options, begun));
        let mut tasks = JoinSet::new();
        for node in core.nodes() {
            tasks.spawn(core.clone().watched(courier::run(core.clone(), node)));
        }
        tasks.spawn(core.clone().watched(heartbeat::run(core.clone())));
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
