//! Megabytes per second of durable writes, beside three etcd nodes on the same disk at the same time of day.
//!
//! etcd: 8 connections of one process, each putting 64 KiB values under 64 keys in turn, one after the other. Ours: 8
//! workers as tasks of one process, each with connections of its own, one row of 64 KiB per clock in the next of 8 shards;
//! acknowledged clocks count, and the flush at the end. Both have three nodes, three replicas and an fsync before each
//! answer, a new cluster for each run, alone on the machine, and a warm-up that is not counted. Which runs first changes
//! from pair to pair.
//!
//! Staleness decides how many clocks of a worker are on their way, which a put of etcd's cannot be: so ours is measured at
//! two, as the project's own training runs have it, and at more, up to where the default window of 17 clocks decides and
//! workers hardly wait for each other.
//!
//!     throughput [PETUUM [ETCD-LOAD]]

#![expect(clippy::print_stdout, reason = "a measurement in real time, told on stdout")]

use petuum_benches::etcd::Etcd;
use petuum_benches::load::Load;
use petuum_benches::nodes::Nodes;
use petuum_benches::statistics::quantile;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

const PAIRS: usize = 5;
const NODES: usize = 3;
const SHARDS: u32 = 8;
const WORKERS: u32 = 8;
const WARM_UP: Duration = Duration::from_secs(3);
const TIME: Duration = Duration::from_secs(15);
/// A worker has this many clocks and one more on their way.
const STALENESS: [u32; 3] = [2, 16, 32];

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Megabytes per second.
struct Pair {
    etcd: f64,
    /// By staleness.
    petuum: [f64; STALENESS.len()],
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_else(|| "target/release/petuum".to_owned());
    let etcd_load = arguments.next().unwrap_or_else(|| "target/release/etcd-load".to_owned());
    println!("three nodes, {SHARDS} shards, {TIME:?} each; load average before: {}", load_average());
    let mut pairs = Vec::new();
    for number in 1..=PAIRS {
        let pair = if number % 2 == 1 {
            let etcd = etcd(&etcd_load).await?;
            Pair { etcd, petuum: all_staleness(&program).await? }
        } else {
            let petuum = all_staleness(&program).await?;
            Pair { etcd: etcd(&etcd_load).await?, petuum }
        };
        print!("pair {number}: etcd {:.1} MB/s", pair.etcd);
        for (staleness, petuum) in STALENESS.iter().zip(pair.petuum) {
            print!("; petuum at staleness {staleness} {petuum:.1} MB/s, ratio {:.2}", petuum / pair.etcd);
        }
        println!();
        pairs.push(pair);
    }
    let median = |of: &dyn Fn(&Pair) -> f64| quantile(&pairs.iter().map(of).collect::<Vec<_>>(), 0.5);
    println!("median of etcd: {:.1} MB/s", median(&|pair| pair.etcd));
    for (n, staleness) in STALENESS.iter().enumerate() {
        let (ours, ratio) = (median(&|pair| pair.petuum[n]), median(&|pair| pair.petuum[n] / pair.etcd));
        println!("median of petuum at staleness {staleness}: {ours:.1} MB/s, ratio {ratio:.2} (wanted: 2 or more)");
    }
    println!("load average after: {}", load_average());
    Ok(())
}

async fn etcd(load: &str) -> Result<f64, Failure> {
    let folder = tempfile::tempdir()?;
    let cluster = Etcd::start(folder.path(), NODES).await?;
    let (warm_up, time) = (WARM_UP.as_secs().to_string(), TIME.as_secs().to_string());
    let output = Command::new(load).args([&cluster.addresses.join(","), &warm_up, &time, "1"]).output().await;
    let output = output.map_err(|e| format!("cannot start {load}, which `make bench-throughput` builds: {e}"))?;
    if !output.status.success() {
        return Err(format!("etcd-load failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let line = String::from_utf8(output.stdout)?;
    let (bytes, seconds) = line.trim().split_once(' ').ok_or("etcd-load printed no `bytes seconds`")?;
    Ok(bytes.parse::<f64>()? / 1e6 / seconds.parse::<f64>()?)
}

async fn all_staleness(program: &str) -> Result<[f64; STALENESS.len()], Failure> {
    let mut rates = [0.0; STALENESS.len()];
    for (rate, staleness) in rates.iter_mut().zip(STALENESS) {
        let folder = tempfile::tempdir()?;
        let nodes = Nodes::start(Path::new(program), folder.path(), NODES, SHARDS)?;
        let load = Load { workers: WORKERS, staleness, warm_up: WARM_UP, time: TIME };
        *rate = load.run(&nodes.addresses).await?;
    }
    Ok(rates)
}

/// Of the last minute: other work on the machine makes all figures smaller.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}
