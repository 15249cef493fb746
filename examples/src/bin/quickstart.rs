//! A client program of one's own, in thirty lines: a worker that adds to a table and reads it back.
//!
//! Start a cluster with `petuum local`, set `PETUUM_ENDPOINTS` as it says, and run
//! `cargo run -p petuum-examples --bin quickstart`.

#![expect(clippy::print_stdout, reason = "an example tells what it did")]

use petuum_client::{Client, Options, TableDefinition, Worker, WorkerOptions};
use petuum_types::{Error, RowId, WorkerId};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let endpoints = std::env::var("PETUUM_ENDPOINTS").unwrap_or_else(|_| "127.0.0.1:7070".to_owned());
    let endpoints: Vec<String> = endpoints.split(',').map(str::to_owned).collect();
    let client = Client::connect(&endpoints, Options::default()).await?;

    // A job of one worker, with a table of 4 columns whose reads may lag one clock behind.
    let job = client.create_job("quickstart", 1, None).await?;
    let table = job.create_table(&TableDefinition::f32("numbers", 4, 1)).await?;

    // The worker starts at clock 0, or, if it ran before, at the clock it had committed.
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
    let mut worker = session.thread();
    for _ in 0..10 {
        worker.inc(&table, RowId(7), 2, 0.5f32)?;
        worker.clock().await?;
    }

    // Waits until every shard has applied every clock. Run it again: it goes on counting.
    worker.flush().await?;
    let row = worker.get(&table, RowId(7)).await?;
    println!("clock {}: row 7 is {:?}", worker.now().0, row.as_f32().unwrap_or_default());
    Ok(())
}
