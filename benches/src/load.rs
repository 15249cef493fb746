//! The load that throughput is measured with: workers that each end clocks of one dense row.

use petuum_client::{Client, Job, Options, Session, Table, TableDefinition, Worker, WorkerOptions};
use petuum_types::{Clock, RowId, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Columns of a row: 64 KiB of f32.
const WIDTH: u32 = 16_384;
/// Bytes of a clock's updates.
pub const CLOCK_BYTES: u64 = WIDTH as u64 * 4;
/// Rows of each worker, in turn.
const ROWS: usize = 64;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Workers of the job.
    pub workers: u32,
    /// Staleness of the table, and with it how many clocks wait unacknowledged.
    pub staleness: u32,
    /// Not counted.
    pub warm_up: Duration,
    /// Counted; the flush at its end too.
    pub time: Duration,
}

/// Who stops when.
struct Stop {
    asked: AtomicBool,
    /// Every worker ends exactly this many clocks, or the others would wait for it.
    at: AtomicU64,
}

impl Load {
    /// Runs the workers as tasks of this process, each with connections of its own. Returns megabytes of acknowledged
    /// clocks per second.
    ///
    /// # Errors
    /// The first that any call met.
    pub async fn run(self, endpoints: &[String]) -> Result<f64, Failure> {
        let client = Client::connect(endpoints, Options::default()).await?;
        let job = client.create_job("throughput", self.workers, None).await?;
        let table = job.create_table(&TableDefinition::f32("t", WIDTH, self.staleness)).await?;
        let sessions = self.sessions(endpoints).await?;
        let stop = Arc::new(Stop { asked: AtomicBool::new(false), at: AtomicU64::new(u64::MAX) });
        let tasks: Vec<_> = sessions
            .iter()
            .enumerate()
            .map(|(worker, session)| {
                let rows = rows_of(&job, &table, worker);
                tokio::spawn(work(session.clone(), table.clone(), rows, stop.clone(), self.staleness))
            })
            .collect();
        tokio::time::sleep(self.warm_up).await;
        let acked = || sessions.iter().map(|session| session.report().acked).sum::<u64>();
        let (before, begin) = (acked(), Instant::now());
        tokio::time::sleep(self.time).await;
        stop.asked.store(true, Ordering::SeqCst);
        for task in tasks {
            task.await??;
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 bytes")]
        let megabytes = ((acked() - before) * CLOCK_BYTES) as f64 / 1e6;
        Ok(megabytes / begin.elapsed().as_secs_f64())
    }

    async fn sessions(self, endpoints: &[String]) -> Result<Vec<Arc<Session>>, Failure> {
        // All at once: each waits until all have registered.
        let opening: Vec<_> = (0..self.workers)
            .map(|worker| {
                let endpoints = endpoints.to_vec();
                tokio::spawn(async move {
                    let client = Client::connect(&endpoints, Options::default()).await?;
                    client.job("throughput").await?.worker(WorkerId(worker), WorkerOptions::default()).await
                })
            })
            .collect();
        let mut sessions = Vec::new();
        for session in opening {
            sessions.push(Arc::new(session.await??));
        }
        Ok(sessions)
    }
}

async fn work(
    session: Arc<Session>,
    table: Table,
    rows: Vec<RowId>,
    stop: Arc<Stop>,
    staleness: u32,
) -> Result<(), Failure> {
    let mut worker = session.thread();
    let deltas = vec![0.5f32; WIDTH as usize];
    for row in rows.iter().cycle() {
        let Clock(now) = worker.now();
        if worker.id() == WorkerId(0) && stop.asked.load(Ordering::SeqCst) && stop.at.load(Ordering::SeqCst) == u64::MAX
        {
            // Nobody can have come further: a worker is at most staleness + 1 clocks before the slowest.
            stop.at.store(now + u64::from(staleness) + 1, Ordering::SeqCst);
        }
        if now >= stop.at.load(Ordering::SeqCst) {
            break;
        }
        worker.inc_dense(&table, *row, 0, &deltas[..])?;
        worker.clock().await?;
    }
    worker.flush().await?;
    Ok(())
}

/// Rows of a worker's own, so that one clock after the other goes to the next shard.
fn rows_of(job: &Job, table: &Table, worker: usize) -> Vec<RowId> {
    let map = job.client().map();
    let mut by_shard: BTreeMap<_, Vec<RowId>> = map.shards.keys().map(|shard| (*shard, Vec::new())).collect();
    let first = worker as u64 * 1_000_000;
    for row in (first..first + 100_000).map(RowId) {
        by_shard.entry(map.shard_of(table.schema().id, row)).or_default().push(row);
    }
    let shards: Vec<Vec<RowId>> = by_shard.into_values().collect();
    (0..ROWS).map(|n| shards[(worker + n) % shards.len()][n / shards.len()]).collect()
}
