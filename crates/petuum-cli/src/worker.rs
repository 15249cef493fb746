//! One worker process: trains its part and tells its parent, line by line, what happens.

use crate::output::{Failure, line};
use petuum_apps::counter::{Counter, counter_rows};
use petuum_apps::data::{Examples, Files, Options, Partition, Shape};
use petuum_apps::mlr::{self, ClockReport, Observer, Settings, Tables, Weights};
use petuum_apps::report::{Figures, LossPoint, Metric, WorkerReport, merge_losses, seconds_per_epoch};
use petuum_client::{Client, Job, Session, SessionReport, Table, Worker, WorkerOptions, WorkerThread};
use petuum_types::WorkerId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The weights' table.
pub(crate) const WEIGHTS: &str = "weights";
/// The counters' table.
pub(crate) const COUNTER: &str = "counter";

/// What a worker is to do; the parent writes it, the child reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) endpoints: Vec<String>,
    pub(crate) job: String,
    pub(crate) worker: u32,
    pub(crate) threads: u32,
    pub(crate) data: PathBuf,
    pub(crate) test: Option<PathBuf>,
    pub(crate) reading: Options,
    pub(crate) settings: Settings,
    /// Whether to count every clock in one row of every shard.
    pub(crate) counter: bool,
    /// Least time of a clock in milliseconds: so that a demonstration can be watched. 0 for none.
    pub(crate) pace_ms: u64,
    pub(crate) deadline_ms: u64,
}

/// What a worker tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// It may start.
    Registered { worker: u32, incarnation: u64, start: u64 },
    /// A clock has been ended.
    Clock { worker: u32, point: LossPoint },
    /// A wait has reached its deadline; it goes on.
    Waiting { worker: u32, message: String },
    /// It has finished.
    Done(Box<Done>),
}

/// A worker's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) report: WorkerReport,
    /// On worker 0: the measure on the test set.
    pub(crate) metric: Option<Metric>,
    /// On worker 0: the counter of every shard after the last clock of all.
    pub(crate) counters: Vec<i64>,
    pub(crate) end_clock: u64,
}

/// Flags of the hidden command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The spec as JSON.
    #[arg(long)]
    spec: String,
}

fn tell(event: &Event) {
    line(serde_json::to_string(event).expect("an event is plain data"));
}

struct Teller {
    worker: u32,
    pace: Duration,
    ended: Instant,
    points: Vec<LossPoint>,
}

impl Observer for Teller {
    fn clock(&mut self, report: ClockReport) {
        let point = LossPoint::from(report);
        tell(&Event::Clock { worker: self.worker, point });
        if point.examples > 0 {
            self.points.push(point);
        }
        let spent = self.ended.elapsed();
        if spent < self.pace {
            #[expect(clippy::disallowed_methods, reason = "a worker process is no simulation; this is its pace")]
            std::thread::sleep(self.pace - spent);
        }
        self.ended = Instant::now();
    }

    fn keep_waiting(&mut self, error: &petuum_types::Error) -> bool {
        tell(&Event::Waiting { worker: self.worker, message: error.to_string() });
        true
    }
}

/// Runs a worker to its end.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let spec: Spec = serde_json::from_str(&args.spec)
        .map_err(|e| Failure::new(format_args!("--spec: {e}; this command is started by `petuum train`")))?;
    let options = petuum_client::Options {
        deadline: Duration::from_millis(spec.deadline_ms),
        ..petuum_client::Options::default()
    };
    let client = Client::connect(&spec.endpoints, options).await?;
    let job = client.job(&spec.job).await?;
    let tables = tables(&client, &job, &spec).await?;
    let files = files(&spec)?;
    let part = Partition::of(WorkerId(spec.worker), job.info().workers);
    let data = Arc::new(files.train(part, &spec.reading).map_err(Failure::new)?);
    let shape = data.shape.clone();
    let session = job.worker(WorkerId(spec.worker), worker_options(&spec)).await?;
    tell(&Event::Registered { worker: spec.worker, incarnation: session.incarnation().0, start: session.start().0 });
    let begin = Instant::now();
    let points = train(&session, &tables, &data, &spec).await?;
    let wall = begin.elapsed().as_secs_f64();
    let mut thread = session.thread();
    let end_clock = thread.now().0;
    let (metric, counters) = measure(&mut thread, &tables, &files, &shape, &spec).await?;
    let report = session.report();
    thread.leave().await?;
    let figures = figures(&report, &spec, points, wall);
    let report = WorkerReport { worker: spec.worker, first_clock: session.start().0, figures };
    tell(&Event::Done(Box::new(Done { report, metric, counters, end_clock })));
    Ok(())
}

fn worker_options(spec: &Spec) -> WorkerOptions {
    WorkerOptions { threads: spec.threads, ..WorkerOptions::default() }
}

/// The data files of a spec.
pub(crate) fn files(spec: &Spec) -> Result<Files, Failure> {
    let files = Files::find(&spec.data, &spec.reading).map_err(Failure::new)?;
    match &spec.test {
        None => Ok(files),
        Some(test) => files.with_test(test, &spec.reading).map_err(Failure::new),
    }
}

async fn tables(client: &Client, job: &Job, spec: &Spec) -> Result<Tables, Failure> {
    let weights = job.table(WEIGHTS).await?;
    if !spec.counter {
        return Ok(Tables { weights, counter: None });
    }
    let table = job.table(COUNTER).await?;
    let map = client.map();
    let rows = counter_rows(table.schema().id, map.shards.len(), |table, row| map.shard_of(table, row))
        .ok_or_else(|| Failure::new("a shard owns no row of the counter table"))?;
    Ok(Tables { weights, counter: Some(Counter { table, rows }) })
}

/// All threads of the worker; returns the losses by clock.
async fn train(
    session: &Session,
    tables: &Tables,
    data: &Arc<Examples>,
    spec: &Spec,
) -> Result<Vec<LossPoint>, Failure> {
    let mut running = Vec::new();
    for mut thread in session.threads() {
        let (tables, data, settings) = (tables.clone(), data.clone(), spec.settings.clone());
        let pace = Duration::from_millis(spec.pace_ms);
        let mut teller = Teller { worker: spec.worker, pace, ended: Instant::now(), points: Vec::new() };
        running.push(tokio::spawn(async move {
            let result = mlr::run(&mut thread, &tables, &data, &settings, &mut teller).await;
            result.map(|_| teller.points)
        }));
    }
    let mut points = Vec::new();
    for thread in running {
        let result = thread.await.map_err(|e| Failure::new(format_args!("a thread of the worker panicked: {e}")))?;
        points.extend(result.map_err(Failure::new)?);
    }
    Ok(merge_losses(&points))
}

/// On worker 0, once every worker has finished: the test set's accuracy and the counters.
async fn measure(
    thread: &mut WorkerThread,
    tables: &Tables,
    files: &Files,
    shape: &Shape,
    spec: &Spec,
) -> Result<(Option<Metric>, Vec<i64>), Failure> {
    if spec.worker != 0 {
        return Ok((None, Vec::new()));
    }
    patient_barrier(thread, spec.worker).await?;
    let mut weights = Weights::zeros(shape.classes(), shape.features);
    mlr::read_weights(thread, tables, &mut weights).await?;
    let test = files.test(Partition::WHOLE, &spec.reading, shape).map_err(Failure::new)?;
    let metric = test.map(|test| {
        let tally = mlr::evaluate(&weights, &test);
        Metric { name: "test_accuracy".to_owned(), value: tally.accuracy() }
    });
    let counters = match &tables.counter {
        None => Vec::new(),
        Some(counter) => read_counters(thread, &counter.table, &counter.rows).await?,
    };
    Ok((metric, counters))
}

async fn patient_barrier(thread: &mut WorkerThread, worker: u32) -> Result<(), Failure> {
    loop {
        match thread.barrier().await {
            Err(error) if error.kind() == petuum_types::ErrorKind::DeadlineExceeded => {
                tell(&Event::Waiting { worker, message: error.to_string() });
            }
            result => return Ok(result?),
        }
    }
}

async fn read_counters(
    thread: &mut WorkerThread,
    table: &Table,
    rows: &[petuum_types::RowId],
) -> Result<Vec<i64>, Failure> {
    let values = thread.get_many(table, rows).await?;
    Ok(values.iter().filter_map(|v| v.as_i64().and_then(|v| v.first().copied())).collect())
}

fn figures(report: &SessionReport, spec: &Spec, losses: Vec<LossPoint>, wall_seconds: f64) -> Figures {
    Figures {
        clocks: report.clocks,
        ticks: report.counters.ticks,
        retries: report.counters.retries,
        repeats: report.counters.repeats,
        failovers: report.failovers,
        longest_commit_gap_ms: report.longest_commit_gap.as_secs_f64() * 1000.0,
        clock_differentials: report.clock_differentials.clone(),
        wall_seconds,
        seconds_per_epoch: seconds_per_epoch(wall_seconds, report.clocks, spec.settings.clocks_per_epoch),
        losses,
    }
}
