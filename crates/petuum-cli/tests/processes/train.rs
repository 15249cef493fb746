//! `petuum train mlr` as a person runs it: its report, and servers that die meanwhile.

use crate::cluster::{Cluster, PETUUM, processes_in};
use petuum_apps::report::{Figures, Report, VERSION};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const WORKERS: u64 = 2;
const SHARDS: u32 = 4;
const STALENESS: i64 = 1;
const CLOCKS_PER_EPOCH: u64 = 20;
const EXAMPLES: u64 = 240;
const CLASSES: u64 = 3;
/// Long enough on a machine that has much else to do; nothing may hang for longer.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Three classes that any linear model tells apart: each has one feature of its own.
fn write_data(folder: &Path) -> PathBuf {
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    for (name, examples) in [("train.libsvm", EXAMPLES), ("test.libsvm", 60)] {
        let mut text = String::new();
        for example in 0..examples {
            let (class, noise) = (example % CLASSES, (example * 7 % 11) as f64 / 40.0);
            writeln!(text, "{class} {}:1.0 4:{noise}", class + 1).unwrap();
        }
        std::fs::write(data.join(name), text).unwrap();
    }
    data
}

fn train(data: &Path, report: &Path, epochs: u64) -> Command {
    let mut command = Command::new(PETUUM);
    command.args(["train", "mlr", "--workers", &WORKERS.to_string(), "--staleness", &STALENESS.to_string()]);
    command.args(["--clocks-per-epoch", &CLOCKS_PER_EPOCH.to_string(), "--epochs", &epochs.to_string()]);
    command.arg("--data").arg(data).arg("--report").arg(report);
    command.stdin(Stdio::null()).env_remove("PETUUM_ENDPOINTS").kill_on_drop(true);
    command
}

async fn assert_succeeds(mut child: Child) {
    let exit = tokio::time::timeout(WATCHDOG, child.wait()).await.expect("an end before the watchdog's").unwrap();
    assert!(exit.success(), "{exit}");
}

/// What holds of every run's figures, whatever happened meanwhile.
fn assert_every_clock_counted(report: &Report, epochs: u64) {
    let clocks = epochs * CLOCKS_PER_EPOCH;
    let merged = &report.merged;
    assert_eq!(report.version, VERSION);
    assert_eq!(merged.clocks, WORKERS * clocks);
    assert!(merged.ticks >= merged.clocks, "{} ticks", merged.ticks);
    assert!(merged.repeats <= merged.retries, "{} repeats of {} retries", merged.repeats, merged.retries);
    let told: Vec<u64> = merged.losses.iter().map(|point| point.clock).collect();
    assert_eq!(told, (0..clocks).collect::<Vec<_>>(), "a loss of every clock");
    assert_eq!(merged.losses.iter().map(|point| point.examples).sum::<u64>(), epochs * EXAMPLES);
    let (first, last) = (merged.losses[0].loss, merged.losses.last().unwrap().loss);
    assert!((first - (CLASSES as f64).ln()).abs() < 1e-6, "zero weights know nothing: loss {first}");
    assert!(last < first / 4.0, "loss {first} became {last}");
    let metric = report.metric.as_ref().unwrap();
    assert_eq!((metric.name.as_str(), metric.value), ("test_accuracy", 1.0));
    let behind = merged.clock_differentials.keys().next().unwrap();
    // A read at clock c shows every clock below c - s: the row's min clock is at least c - s.
    assert!(*behind >= -STALENESS, "no staler than the table allows: {:?}", merged.clock_differentials);
    assert_eq!(report.workers.len() as u64, WORKERS);
    for (number, worker) in (0..).zip(&report.workers) {
        let Figures { clocks: done, wall_seconds, seconds_per_epoch, .. } = worker.figures;
        assert_eq!((worker.worker, worker.first_clock, done), (number, 0, clocks));
        let expected = wall_seconds / epochs as f64;
        assert!(wall_seconds > 0.0 && (seconds_per_epoch - expected).abs() < 1e-6, "{seconds_per_epoch} {expected}");
        assert!(worker.figures.longest_commit_gap_ms <= wall_seconds * 1000.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_on_its_own_cluster_writes_a_report_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (data, path, temporary) = (write_data(folder.path()), folder.path().join("r.json"), folder.path().join("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    let mut command = train(&data, &path, 2);
    command.args(["--nodes", "3", "--shards", &SHARDS.to_string()]).env("TMPDIR", &temporary);
    assert_succeeds(command.spawn().unwrap()).await;
    assert_eq!(processes_in(folder.path()), [], "neither nodes nor workers are left");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "no data of the nodes is left");
    // The names are what scripts rely on.
    let json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&json), ["merged", "metric", "version", "workers"]);
    let figures = [
        "clock_differentials",
        "clocks",
        "failovers",
        "longest_commit_gap_ms",
        "losses",
        "repeats",
        "retries",
        "seconds_per_epoch",
        "ticks",
        "wall_seconds",
    ];
    assert_eq!(names(&json["merged"]), figures);
    assert_eq!(names(&json["workers"][0]), ["figures", "first_clock", "worker"]);
    assert_eq!(names(&json["workers"][0]["figures"]), figures);
    assert_eq!(names(&json["merged"]["losses"][0]), ["accuracy", "clock", "examples", "loss"]);
    let report = Report::read(&path).unwrap();
    assert_every_clock_counted(&report, 2);
    assert!(report.merged.longest_commit_gap_ms > 0.0, "a commit takes time");
}

/// A server that is killed and stays dead must not hang the job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_busiest_server_is_killed_finishes_with_every_clock_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (data, path) = (write_data(folder.path()), folder.path().join("r.json"));
    let mut cluster = Cluster::start(3, SHARDS).await;
    let epochs = 25;
    let mut command = train(&data, &path, epochs);
    command.args(["--job", "killed", "--endpoints", &cluster.addresses.join(",")]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(WATCHDOG, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(first.starts_with("epoch 1: "), "{first}");
    let busiest = cluster.busiest().await;
    cluster.kill(busiest);
    let rest = async move { while lines.next_line().await.unwrap().is_some() {} };
    tokio::join!(assert_succeeds(child), rest);
    let report = Report::read(&path).unwrap();
    assert_every_clock_counted(&report, epochs);
    assert!(report.merged.failovers > 0, "the run outlived the server: {:?}", report.merged);
    // What the servers say of it themselves.
    let workers = cluster.client().await.job("killed").await.unwrap().workers().await.unwrap();
    let clocks: Vec<u64> = workers.iter().map(|worker| worker.clock).collect();
    assert_eq!(clocks, [epochs * CLOCKS_PER_EPOCH; 2]);
}
