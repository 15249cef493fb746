//! `petuum train`: programs that come with Petuum.

use crate::endpoints::seconds;
use crate::nodes::{LocalCluster, Shape};
use crate::output::{Failure, line};
use crate::training::{Plan, Training};
use crate::worker::{Event, Spec};
use clap::{Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use petuum_apps::data;
use petuum_apps::mlr::{Schedule, Settings};
use petuum_apps::report::Report;
use petuum_client::{Client, Options};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags of `petuum train`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// Softmax regression by mini-batch SGD
    Mlr(Box<MlrArgs>),
}

/// Flags of `petuum train mlr`.
#[derive(Debug, clap::Args)]
struct MlrArgs {
    /// A folder with a training and a test set (IDX, libsvm or CSV), or one file
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// A test set of its own
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Worker processes
    #[arg(long, default_value_t = 4, value_name = "N")]
    workers: u32,
    /// Threads in each
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: u32,
    /// How many clocks a read may lag behind; 0 is BSP
    #[arg(long, default_value_t = 1, value_name = "S")]
    staleness: u32,
    /// Passes over the data
    #[arg(long, default_value_t = 10, value_name = "N")]
    epochs: u64,
    /// Clocks per pass
    #[arg(long, default_value_t = 100, value_name = "N")]
    clocks_per_epoch: u64,
    /// First step size
    #[arg(long, default_value_t = 2.0)]
    eta: f32,
    /// Step size factor per epoch
    #[arg(long, default_value_t = 0.8)]
    decay: f32,
    /// L2 regularisation
    #[arg(long, default_value_t = 1e-5)]
    lambda: f32,
    /// Seed of the data order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A running cluster; without it a local one is started for the run
    #[arg(long, env = "PETUUM_ENDPOINTS", value_delimiter = ',', value_name = "HOST:PORT,…")]
    endpoints: Vec<String>,
    /// Nodes of the local cluster
    #[arg(long, default_value_t = 3, value_name = "N")]
    nodes: u32,
    /// Shards of the local cluster
    #[arg(long, default_value_t = 8, value_name = "N")]
    shards: u32,
    /// The job's name [default: mlr- and a random number]
    #[arg(long)]
    job: Option<String>,
    /// How long a worker may be silent before it is evicted, in seconds
    #[arg(long, default_value_t = 10, value_parser = seconds())]
    lease: u64,
    /// Write a report here
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ReadingArgs {
    /// The data's format [default: by the files' names]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// CSV: which column has the label: auto, first, last, a number from 0, or a heading
    #[arg(long, default_value = "auto")]
    label_column: data::LabelColumn,
    /// libsvm: the least feature index [default: told from the file]
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=1))]
    index_base: Option<u64>,
    /// CSV and libsvm: multiply every feature by this
    #[arg(long, default_value_t = 1.0)]
    scale: f32,
}

/// Before a long run: whether its report can be written at the end.
fn can_be_written(report: &Path) -> Result<(), Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::new(format_args!("--report {}: {e}", report.display()));
    if report.is_dir() {
        return Err(failed(&"it is a directory"));
    }
    let folder = report.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::tempfile_in(folder).map(drop).map_err(|e| failed(&e))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Idx,
    Libsvm,
    Csv,
}

/// Trains.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let Program::Mlr(args) = args.program;
    let plan = plan(&args);
    plan.spec.settings.validate().map_err(Failure::new)?;
    args.report.as_deref().map_or(Ok(()), can_be_written)?;
    let (client, local) = if args.endpoints.is_empty() {
        let shape = Shape { nodes: args.nodes, shards: args.shards, replication: None, data: None, port: None };
        let cluster = LocalCluster::start(&shape).await?;
        line(format_args!("local cluster of {} nodes: {}", args.nodes, cluster.endpoints().join(",")));
        (cluster.client().await?, Some(cluster))
    } else {
        (Client::connect(&args.endpoints, Options::default()).await?, None)
    };
    let endpoints = client.map().nodes.values().cloned().collect();
    let plan = Plan { spec: Spec { endpoints, ..plan.spec }, ..plan };
    let result = tokio::select! {
        report = watch(&client, plan) => report,
        _ = tokio::signal::ctrl_c() => Err(Failure::new("interrupted; the workers were stopped")),
    };
    if let Some(cluster) = local {
        cluster.stop().await?;
    }
    let report = result?;
    summarize(&report);
    if let Some(path) = &args.report {
        report.write(path).map_err(|e| Failure::new(format_args!("{}: {e}", path.display())))?;
        line(format_args!("report: {}", path.display()));
    }
    Ok(())
}

fn plan(args: &MlrArgs) -> Plan {
    let reading = data::Options {
        format: args.reading.format.map(|f| match f {
            FormatArg::Idx => data::Format::Idx,
            FormatArg::Libsvm => data::Format::Libsvm,
            FormatArg::Csv => data::Format::Csv,
        }),
        label_column: args.reading.label_column.clone(),
        index_base: args.reading.index_base,
        scale: args.reading.scale,
        ..data::Options::default()
    };
    let settings = Settings {
        epochs: args.epochs,
        clocks_per_epoch: args.clocks_per_epoch,
        eta: args.eta,
        schedule: Schedule::Decay(args.decay),
        lambda: args.lambda,
        seed: args.seed,
    };
    let random = RandomState::new().build_hasher().finish();
    let spec = Spec {
        endpoints: Vec::new(),
        job: args.job.clone().unwrap_or_else(|| format!("mlr-{random:016x}")),
        worker: 0,
        threads: args.threads,
        data: args.data.clone(),
        test: args.test.clone(),
        reading,
        settings,
        counter: false,
        pace_ms: 0,
        deadline_ms: 60_000,
    };
    let lease = Duration::from_secs(args.lease);
    Plan { spec, workers: args.workers, staleness: args.staleness, lease }
}

/// Shows progress: a bar on a terminal, a line per epoch otherwise.
struct Progress {
    bar: ProgressBar,
    clocks_per_epoch: u64,
    /// Clocks finished, by worker.
    clocks: Vec<u64>,
    shown: u64,
}

impl Progress {
    fn new(training: &Training, workers: u32, clocks_per_epoch: u64) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:40} clock {pos}/{len}  {elapsed} left {eta}  {msg}");
            ProgressBar::new(training.clocks()).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        } else {
            ProgressBar::hidden()
        };
        Self { bar, clocks_per_epoch, clocks: vec![0; workers as usize], shown: 0 }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Clock { worker, point } => {
                self.clocks[*worker as usize] = point.clock + 1;
                let least = self.clocks.iter().copied().min().unwrap_or(0);
                self.bar.set_position(least);
                self.bar.set_message(format!("loss {:.4}", point.loss));
                let epoch = least / self.clocks_per_epoch;
                if self.bar.is_hidden() && epoch > self.shown {
                    self.shown = epoch;
                    line(format_args!("epoch {epoch}: loss {:.4}, accuracy {:.4}", point.loss, point.accuracy));
                }
            }
            Event::Waiting { worker, message } => {
                let text = format!("worker {worker}: {message}");
                if self.bar.is_hidden() { line(text) } else { self.bar.println(text) }
            }
            Event::Registered { .. } | Event::Done(_) => {}
        }
    }
}

async fn watch(client: &Client, plan: Plan) -> Result<Report, Failure> {
    let (workers, per_epoch) = (plan.workers, plan.spec.settings.clocks_per_epoch);
    let mut training = Training::start(client, plan).await?;
    let mut progress = Progress::new(&training, workers, per_epoch);
    while let Some(event) = training.next().await? {
        progress.event(&event);
    }
    progress.bar.finish_and_clear();
    Ok(training.report())
}

fn summarize(report: &Report) {
    let figures = &report.merged;
    if let Some(metric) = &report.metric {
        line(format_args!("{}: {:.4}", metric.name, metric.value));
    }
    if let Some(last) = figures.losses.last() {
        line(format_args!("last training loss: {:.4}", last.loss));
    }
    line(format_args!(
        "{} clocks in {:.1} s, {:.2} s per epoch; longest commit gap {:.0} ms; {} messages sent again, {} failovers",
        figures.clocks,
        figures.wall_seconds,
        figures.seconds_per_epoch,
        figures.longest_commit_gap_ms,
        figures.retries,
        figures.failovers
    ));
}
