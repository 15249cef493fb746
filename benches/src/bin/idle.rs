//! Processor time of an idle cluster and an idle worker over 60 seconds.

#![expect(clippy::print_stdout, reason = "a measurement in real time, told on stdout")]

use petuum_benches::nodes::Nodes;
use petuum_client::{Client, Options, TableDefinition, Worker, WorkerOptions};
use petuum_types::{RowId, WorkerId};
use std::path::Path;
use std::time::Duration;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let program = std::env::args().nth(1).unwrap_or_else(|| "target/release/petuum".to_owned());
    let seconds: u64 = std::env::args().nth(2).map_or(Ok(60), |s| s.parse())?;
    let folder = tempfile::tempdir()?;
    let nodes = Nodes::start(Path::new(&program), folder.path(), 3, 8)?;
    let client = Client::connect(&nodes.addresses, Options::default()).await?;
    let job = client.create_job("idle", 1, None).await?;
    let table = job.create_table(&TableDefinition::f32("t", 16, 1)).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let cluster = share(&nodes.pids(), seconds).await?;
    println!("idle cluster, 3 nodes, 8 shards: {cluster:.2} % of a core over {seconds} s");
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
    let mut worker = session.thread();
    worker.inc(&table, RowId(0), 0, 1.0f32)?;
    worker.clock().await?;
    worker.flush().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = share(&[std::process::id()], seconds).await?;
    println!("idle worker: {idle:.3} % of a core over {seconds} s");
    Ok(())
}

/// Percent of a core that processes use over some seconds.
async fn share(pids: &[u32], seconds: u64) -> Result<f64, Failure> {
    let before = cpu_nanoseconds(pids)?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let used = cpu_nanoseconds(pids)? - before;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 nanoseconds")]
    Ok(used as f64 / (seconds as f64 * 1e9) * 100.0)
}

/// Processor time of all threads of the processes, from the scheduler's own count.
fn cpu_nanoseconds(pids: &[u32]) -> Result<u64, Failure> {
    let mut total = 0;
    for pid in pids {
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            total += text.split_whitespace().next().ok_or("schedstat is empty")?.parse::<u64>()?;
        }
    }
    Ok(total)
}
