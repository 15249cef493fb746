//! What a run leaves behind for people and scripts: the file of `--report`.
//!
//! JSON with stable field names; a reader should check [`Report::version`] and pass over fields it does not know.
//! Times are measured by whoever drives the run: programs see no clock.

use crate::mlr::{ClockReport, Observer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Version of the file's format.
pub const VERSION: u32 = 1;

/// A finished run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`] when it was written.
    pub version: u32,
    /// The measure of success, on the test set if there is one.
    pub metric: Option<Metric>,
    /// All workers together: counts are summed, times and gaps are the greatest, losses are means over examples.
    pub merged: Figures,
    /// Each worker process, in order of worker and then of its first clock (a restarted worker has several).
    pub workers: Vec<WorkerReport>,
}

/// A measure of success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// For example `test_accuracy`.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// One worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// The worker's place in its job.
    pub worker: u32,
    /// The clock it started at; above 0 after a restart.
    pub first_clock: u64,
    /// What it did from there on.
    pub figures: Figures,
}

/// Figures of one worker or of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Clocks finished.
    pub clocks: u64,
    /// Ticks acknowledged, over all shards.
    pub ticks: u64,
    /// Messages sent again, for whatever reason.
    pub retries: u64,
    /// Repeats that the servers recognised and did not apply a second time.
    pub repeats: u64,
    /// Changes of a shard's leader that were noticed.
    pub failovers: u64,
    /// Longest time from a call of `clock()` to the first tick's acknowledgement, in milliseconds.
    pub longest_commit_gap_ms: f64,
    /// How far behind the reader (negative) or ahead the rows were that reads answered with: difference in clocks →
    /// number of reads (Cui et al. 2014 call it the clock differential).
    pub clock_differentials: BTreeMap<i64, u64>,
    /// Seconds from the first clock's start to the last one's acknowledgement.
    pub wall_seconds: f64,
    /// Seconds per pass over the data.
    pub seconds_per_epoch: f64,
    /// Training loss by clock.
    pub losses: Vec<LossPoint>,
}

/// The training loss of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossPoint {
    /// The clock.
    pub clock: u64,
    /// Mean loss over `examples`.
    pub loss: f64,
    /// Share of `examples` that were right.
    pub accuracy: f64,
    /// Examples used.
    pub examples: u64,
}

impl From<ClockReport> for LossPoint {
    fn from(report: ClockReport) -> Self {
        let ClockReport { clock, loss, accuracy, examples } = report;
        Self { clock: clock.0, loss, accuracy, examples }
    }
}

/// An observer that keeps the loss of every clock with examples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorder {
    /// In order of clocks.
    pub losses: Vec<LossPoint>,
}

impl Observer for Recorder {
    fn clock(&mut self, report: ClockReport) {
        if report.examples > 0 {
            self.losses.push(report.into());
        }
    }
}

/// The means, by clock, of what several threads or workers saw.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 examples")]
pub fn merge_losses<'a>(points: impl IntoIterator<Item = &'a LossPoint>) -> Vec<LossPoint> {
    let mut sums: BTreeMap<u64, (f64, f64, u64)> = BTreeMap::new();
    for point in points {
        let sum = sums.entry(point.clock).or_default();
        sum.0 += point.loss * point.examples as f64;
        sum.1 += point.accuracy * point.examples as f64;
        sum.2 += point.examples;
    }
    let mean = |(clock, (loss, accuracy, examples)): (u64, (f64, f64, u64))| {
        let weight = examples.max(1) as f64;
        LossPoint { clock, loss: loss / weight, accuracy: accuracy / weight, examples }
    };
    sums.into_iter().map(mean).collect()
}

/// Brings the reports of all worker processes together.
#[must_use]
pub fn merge(mut workers: Vec<WorkerReport>) -> Report {
    workers.sort_by_key(|report| (report.worker, report.first_clock));
    let mut merged = Figures::default();
    for WorkerReport { figures, .. } in &workers {
        merged.clocks += figures.clocks;
        merged.ticks += figures.ticks;
        merged.retries += figures.retries;
        merged.repeats += figures.repeats;
        merged.failovers += figures.failovers;
        merged.longest_commit_gap_ms = merged.longest_commit_gap_ms.max(figures.longest_commit_gap_ms);
        merged.wall_seconds = merged.wall_seconds.max(figures.wall_seconds);
        merged.seconds_per_epoch = merged.seconds_per_epoch.max(figures.seconds_per_epoch);
        for (differential, reads) in &figures.clock_differentials {
            *merged.clock_differentials.entry(*differential).or_default() += reads;
        }
    }
    merged.losses = merge_losses(workers.iter().flat_map(|report| last_attempts(&workers, report)));
    Report { version: VERSION, metric: None, merged, workers }
}

/// A report's losses before the clock at which the same worker's next process started: that one repeated the rest.
fn last_attempts<'a>(workers: &[WorkerReport], report: &'a WorkerReport) -> impl Iterator<Item = &'a LossPoint> {
    let later = workers.iter().filter(|other| other.worker == report.worker && other.first_clock > report.first_clock);
    let end = later.map(|other| other.first_clock).min().unwrap_or(u64::MAX);
    report.figures.losses.iter().filter(move |point| point.clock < end)
}

/// Seconds per pass over the data, from the clocks of a worker; 0 before its first clock.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 clocks")]
pub fn seconds_per_epoch(wall_seconds: f64, clocks: u64, clocks_per_epoch: u64) -> f64 {
    if clocks == 0 { 0.0 } else { wall_seconds * clocks_per_epoch as f64 / clocks as f64 }
}

impl Report {
    /// Writes the report as indented JSON, whole or not at all.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        let mut file = BufWriter::new(File::create(&part)?);
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&part, path)
    }

    /// Reads a report.
    ///
    /// # Errors
    /// What the file system or the JSON parser says.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(clock: u64, loss: f64, examples: u64) -> LossPoint {
        LossPoint { clock, loss, accuracy: 0.5, examples }
    }

    fn worker(worker: u32, first_clock: u64, losses: Vec<LossPoint>) -> WorkerReport {
        let figures = Figures {
            clocks: losses.len() as u64,
            ticks: 8,
            retries: 2,
            repeats: 1,
            failovers: 1,
            longest_commit_gap_ms: f64::from(worker) * 10.0,
            clock_differentials: BTreeMap::from([(-1, 3), (0, 1)]),
            wall_seconds: 2.0,
            seconds_per_epoch: 0.5,
            losses,
        };
        WorkerReport { worker, first_clock, figures }
    }

    #[test]
    fn losses_are_means_over_examples_and_a_restart_counts_once() {
        let report = merge(vec![
            worker(1, 1, vec![point(1, 5.0, 10)]),
            worker(0, 0, vec![point(0, 1.0, 30), point(1, 1.0, 30)]),
            worker(1, 0, vec![point(0, 5.0, 10), point(1, 99.0, 10)]),
        ]);
        assert_eq!(report.merged.losses, [point(0, 2.0, 40), point(1, 2.0, 40)]);
        assert_eq!((report.merged.clocks, report.merged.ticks, report.merged.retries), (5, 24, 6));
        assert_eq!((report.merged.repeats, report.merged.failovers), (3, 3));
        assert_eq!(report.merged.clock_differentials, BTreeMap::from([(-1, 9), (0, 3)]));
        assert_eq!((report.merged.longest_commit_gap_ms, report.merged.wall_seconds), (10.0, 2.0));
        let order: Vec<_> = report.workers.iter().map(|w| (w.worker, w.first_clock)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (1, 1)]);
    }

    #[test]
    fn a_report_reads_back_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let mut report = merge(vec![worker(0, 0, vec![point(0, 0.1, 3)])]);
        report.metric = Some(Metric { name: "test_accuracy".into(), value: 0.84 });
        report.write(&path).unwrap();
        assert_eq!(Report::read(&path).unwrap(), report);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["report.json"]);
    }

    #[test]
    fn seconds_per_epoch_scale_with_clocks() {
        assert_eq!(seconds_per_epoch(3.0, 300, 100), 1.0);
        assert_eq!(seconds_per_epoch(3.0, 0, 100), 0.0);
    }
}
