//! A worker that only reads, one row in every shard, again and again, and how long each read took.

use petuum_client::{Job, Table, Worker, WorkerOptions, WorkerThread};
use petuum_types::{RowId, WorkerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Between two reads of a shard.
const PAUSE: Duration = Duration::from_millis(5);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One read.
#[derive(Clone, Copy, Debug)]
pub struct ReadTime {
    /// When it began.
    pub began: Instant,
    /// How long it took.
    pub took: Duration,
}

/// Reads until told to stop, then leaves the job. Each row is read by a thread of its own, so that a shard that does not
/// answer hides no other; nothing is cached, so that every read goes to a server. The worker stays in its first clock,
/// whose needs every shard had met before.
///
/// # Errors
/// If the worker cannot register, or a read fails: none may, whoever leads.
pub async fn read_all(
    job: Job,
    table: Table,
    worker: WorkerId,
    rows: Vec<RowId>,
    stop: Arc<AtomicBool>,
) -> Result<Vec<ReadTime>, Failure> {
    let threads = u32::try_from(rows.len())?;
    let session = job.worker(worker, WorkerOptions { threads, cache_bytes: 0, ..WorkerOptions::default() }).await?;
    let readers: Vec<_> = session
        .threads()
        .into_iter()
        .zip(rows)
        .map(|(thread, row)| tokio::spawn(read_row(thread, table.clone(), row, stop.clone())))
        .collect();
    let mut times = Vec::new();
    for reader in readers {
        times.extend(reader.await??);
    }
    session.thread().leave().await?;
    Ok(times)
}

async fn read_row(
    mut thread: WorkerThread,
    table: Table,
    row: RowId,
    stop: Arc<AtomicBool>,
) -> Result<Vec<ReadTime>, Failure> {
    let mut times = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let began = Instant::now();
        thread.get(&table, row).await?;
        times.push(ReadTime { began, took: began.elapsed() });
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

/// The longest of the reads that were under way at some time between `from` and `to`, in milliseconds.
#[must_use]
pub fn worst_between(times: &[ReadTime], from: Instant, to: Instant) -> f64 {
    let near = times.iter().filter(|read| read.began < to && read.began + read.took >= from);
    near.map(|read| read.took.as_secs_f64() * 1000.0).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_read_counts_for_every_moment_it_was_under_way() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let read = |began: u64, took: u64| ReadTime { began: at(began), took: Duration::from_millis(took) };
        let times = [read(0, 50), read(60, 30), read(200, 10)];
        assert_eq!(worst_between(&times, at(20), at(100)), 50.0);
        assert_eq!(worst_between(&times, at(51), at(100)), 30.0);
        assert_eq!(worst_between(&times, at(100), at(150)), 0.0);
    }
}
