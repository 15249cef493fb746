//! Commit gaps and follower reads while leaders are killed, beside the disk's fsync p99 of the same time.
//!
//! One probe worker ends a clock every 20 ms, with a row in every shard; another worker of its job reads those rows without
//! a cache, in a clock whose needs had been met long before. Ten times the node that leads most shards is killed and started
//! again.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement in real time, told on stdout")]

use petuum_benches::nodes::Nodes;
use petuum_benches::reads::{ReadTime, read_all, worst_between};
use petuum_benches::statistics::quantile;
use petuum_client::{Client, Job, Options, Table, TableDefinition, Worker, WorkerOptions};
use petuum_net::transport::{ChannelSettings, Connector, Tcp, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use petuum_types::{RowId, WorkerId};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KILLS: usize = 10;
const SHARDS: u32 = 8;
/// The reader stays in its first clock, and the probe must not wait for it.
const STALENESS: u32 = 1_000_000;
/// How long after a kill reads are judged, and what each may take.
const JUDGED: Duration = Duration::from_secs(3);
const READ_MS_MAX: f64 = 300.0;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let program = std::env::args().nth(1).unwrap_or_else(|| "target/release/petuum".to_owned());
    let folder = tempfile::tempdir()?;
    let mut nodes = Nodes::start(Path::new(&program), folder.path(), 3, SHARDS)?;
    let client = Client::connect(&nodes.addresses, Options::default()).await?;
    let job = client.create_job("probe", 2, Some(Duration::from_secs(60))).await?;
    let table = job.create_table(&TableDefinition::i64("t", 1, STALENESS)).await?;
    let rows = row_per_shard(&job, &table);
    let stop = Arc::new(AtomicBool::new(false));
    let syncs = std::thread::spawn({
        let (stop, path) = (stop.clone(), folder.path().join("probe"));
        move || fsyncs(&path, &stop)
    });
    let reader = tokio::spawn(read_all(job.clone(), table.clone(), WorkerId(1), rows.clone(), stop.clone()));
    let probe = tokio::spawn(probe(job.clone(), table.clone(), rows.clone(), stop.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let node = busiest(&nodes).await?;
        kills.push(Instant::now());
        nodes.kill(node)?;
        tokio::time::sleep(JUDGED).await;
        nodes.restart(node)?;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    stop.store(true, Ordering::SeqCst);
    let reads = reader.await??;
    let (gaps, clocks, final_sums) = probe.await??;
    let syncs = syncs.join().map_err(|_| "the fsync probe panicked")?;
    tell_gaps(&kills, &gaps, &syncs);
    let reads_ok = tell_reads(&kills, &reads);
    let expected = i64::try_from(clocks)?;
    let whole = final_sums.iter().all(|sum| *sum == expected);
    println!("{clocks} clocks; sums in the {SHARDS} shards: {final_sums:?}: {}", if whole { "ok" } else { "WRONG" });
    if !whole {
        return Err("clocks were lost or doubled".into());
    }
    if reads_ok { Ok(()) } else { Err("followers did not answer in time".into()) }
}

fn tell_gaps(kills: &[Instant], gaps: &[(Instant, Duration)], syncs: &[f64]) {
    let mut worst: Vec<f64> = kills
        .iter()
        .map(|kill| {
            let near = gaps
                .iter()
                .filter(|(at, _)| *at + Duration::from_secs(4) > *kill && *at < *kill + Duration::from_secs(3));
            near.map(|(_, gap)| gap.as_secs_f64() * 1000.0).fold(0.0, f64::max)
        })
        .collect();
    worst.sort_by(f64::total_cmp);
    println!("commit gap at each of {KILLS} kills, ms: {worst:.0?}");
    println!(
        "nine of ten below {:.0} ms, worst {:.0} ms; fsync p99 {:.1} ms, median {:.1} ms",
        worst[KILLS - 2],
        worst[KILLS - 1],
        quantile(syncs, 0.99),
        quantile(syncs, 0.5)
    );
}

/// Whether every read near a kill was answered in time.
fn tell_reads(kills: &[Instant], reads: &[ReadTime]) -> bool {
    let worst: Vec<f64> =
        kills.iter().map(|kill| worst_between(reads, (*kill).into(), (*kill + JUDGED).into())).collect();
    let most = worst.iter().copied().fold(0.0, f64::max);
    let times: Vec<f64> = reads.iter().map(|read| read.took.as_secs_f64() * 1000.0).collect();
    println!("worst read in the {JUDGED:?} after each kill, ms: {worst:.0?}");
    println!(
        "worst {most:.0} ms (wanted: below {READ_MS_MAX} ms); median of all {} reads {:.1} ms, p99 {:.1} ms",
        times.len(),
        quantile(&times, 0.5),
        quantile(&times, 0.99)
    );
    most < READ_MS_MAX
}

type Gaps = Vec<(Instant, Duration)>;

/// Ends a clock every 20 ms; the gap is from the call of `clock()` to the acknowledgement of its first tick.
async fn probe(
    job: Job,
    table: Table,
    rows: Vec<RowId>,
    stop: Arc<AtomicBool>,
) -> Result<(Gaps, u64, Vec<i64>), Failure> {
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
    let mut worker = session.thread();
    let mut gaps = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        for row in &rows {
            worker.inc(&table, *row, 0, 1i64)?;
        }
        let called = Instant::now();
        worker.clock().await?;
        let clocks = session.report().clocks;
        while session.report().acked < clocks {
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        gaps.push((called, called.elapsed()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    worker.flush().await?;
    drop(worker);
    let clocks = session.report().clocks;
    drop(session);
    // Another process has nothing cached: what it reads is the servers'. The barrier waits for the reader to have left.
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
    let mut worker = session.thread();
    worker.barrier().await?;
    let values = worker.get_many(&table, &rows).await?;
    let sums = values.iter().filter_map(|v| v.as_i64().and_then(|v| v.first().copied())).collect();
    Ok((gaps, clocks, sums))
}

fn row_per_shard(job: &Job, table: &Table) -> Vec<RowId> {
    let map = job.client().map();
    let mut rows = std::collections::BTreeMap::new();
    for row in (0..10_000).map(RowId) {
        rows.entry(map.shard_of(table.schema().id, row)).or_insert(row);
    }
    rows.into_values().collect()
}

async fn busiest(nodes: &Nodes) -> Result<usize, Failure> {
    let connector: Arc<dyn Connector> = Arc::new(Tcp);
    let mut most = (0, 0);
    for (node, address) in nodes.addresses.iter().enumerate() {
        let mut client = AdminClient::new(channel(&connector, address, ChannelSettings::default())?);
        let request = wire::GetReplicasRequest { format: petuum_net::FORMAT };
        let replicas = client.get_replicas(request).await?.into_inner().replicas;
        most = most.max((replicas.iter().filter(|r| r.group > 0 && r.role == "leader").count(), node));
    }
    Ok(most.1)
}

/// Milliseconds of 4 KiB write and fsync, one every 20 ms, on the nodes' file system.
fn fsyncs(path: &Path, stop: &AtomicBool) -> Vec<f64> {
    let mut times = Vec::new();
    let Ok(mut file) = std::fs::File::create(path) else { return times };
    while !stop.load(Ordering::SeqCst) {
        let begin = Instant::now();
        if file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).is_err() {
            break;
        }
        times.push(begin.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_millis(20));
    }
    times
}
