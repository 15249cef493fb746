//! A training run as its parent sees it: a job, its tables, and worker processes that tell what happens.

use crate::output::Failure;
use crate::worker::{self, COUNTER, Done, Event, Spec, WEIGHTS};
use petuum_apps::report::{Report, merge};
use petuum_client::{Client, TableDefinition};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What every worker gets; `worker` is set for each.
    pub(crate) spec: Spec,
    pub(crate) workers: u32,
    pub(crate) staleness: u32,
    pub(crate) lease: Duration,
}

/// A run under way.
pub(crate) struct Training {
    plan: Plan,
    children: Vec<Option<Child>>,
    sender: mpsc::UnboundedSender<Said>,
    events: mpsc::UnboundedReceiver<Said>,
    done: Vec<Done>,
    finished: Vec<bool>,
    /// How often each worker has been started: a process that was killed on purpose ends after its successor began.
    lives: Vec<u32>,
}

/// What a process said, or that it has ended.
struct Said {
    worker: u32,
    life: u32,
    event: Option<Event>,
}

impl Training {
    /// Creates job and tables and starts the workers.
    pub(crate) async fn start(client: &Client, plan: Plan) -> Result<Self, Failure> {
        let shape = worker::files(&plan.spec)?.shape(&plan.spec.reading).map_err(Failure::new)?;
        let width = u32::try_from(shape.features + 1)
            .map_err(|_| Failure::new(format_args!("{} features; the data is too wide", shape.features)))?;
        let job = client.create_job(&plan.spec.job, plan.workers, Some(plan.lease)).await?;
        job.create_table(&TableDefinition::f32(WEIGHTS, width, plan.staleness)).await?;
        if plan.spec.counter {
            job.create_table(&TableDefinition::i64(COUNTER, 1, plan.staleness)).await?;
        }
        let (sender, events) = mpsc::unbounded_channel();
        let count = plan.workers as usize;
        let mut training = Self {
            plan,
            children: (0..count).map(|_| None).collect(),
            sender,
            events,
            done: Vec::new(),
            finished: vec![false; count],
            lives: vec![0; count],
        };
        for worker in 0..training.plan.workers {
            training.start_worker(worker)?;
        }
        Ok(training)
    }

    /// Clocks each worker is to finish.
    pub(crate) fn clocks(&self) -> u64 {
        self.plan.spec.settings.clocks()
    }

    /// Starts a worker, or starts it again.
    pub(crate) fn start_worker(&mut self, worker: u32) -> Result<(), Failure> {
        let spec = Spec { worker, ..self.plan.spec.clone() };
        let program = std::env::current_exe().map_err(Failure::new)?;
        let mut child = Command::new(program)
            .arg("worker")
            .arg("--spec")
            .arg(serde_json::to_string(&spec).map_err(Failure::new)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| Failure::new(format_args!("worker {worker} could not be started: {e}")))?;
        let mut lines = BufReader::new(child.stdout.take().expect("it was piped")).lines();
        let life = self.lives[worker as usize] + 1;
        self.lives[worker as usize] = life;
        let sender = self.sender.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // A line that is no event is a worker's mistake; its end will say so.
                if let Ok(event) = serde_json::from_str(&line) {
                    let _ = sender.send(Said { worker, life, event: Some(event) });
                }
            }
            let _ = sender.send(Said { worker, life, event: None });
        });
        self.children[worker as usize] = Some(child);
        Ok(())
    }

    /// SIGKILL to a worker, which is started again by [`Training::start_worker`].
    pub(crate) async fn kill_worker(&mut self, worker: u32) -> Result<(), Failure> {
        if let Some(mut child) = self.children[worker as usize].take() {
            child.kill().await.map_err(Failure::new)?;
        }
        Ok(())
    }

    /// The next event; `None` once every worker has finished.
    ///
    /// # Errors
    /// If a worker ended by itself before it had finished.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Failure> {
        while !self.finished.iter().all(|done| *done) {
            let Said { worker, life, event } = self.events.recv().await.expect("a sender is kept here");
            let index = worker as usize;
            match event {
                Some(Event::Done(done)) => {
                    self.finished[index] = true;
                    self.done.push((*done).clone());
                    return Ok(Some(Event::Done(done)));
                }
                Some(event) => return Ok(Some(event)),
                None if self.finished[index] || life < self.lives[index] => {}
                None => return Err(Failure::new(format_args!("worker {worker} ended early; its reason is above"))),
            }
        }
        Ok(None)
    }

    /// What every worker said at its end.
    pub(crate) fn done(&self) -> &[Done] {
        &self.done
    }

    /// The run's report, once it has finished.
    pub(crate) fn report(&self) -> Report {
        let mut report = merge(self.done.iter().map(|d| d.report.clone()).collect());
        report.metric = self.done.iter().find_map(|d| d.metric.clone());
        report
    }
}
