//! Rows larger than a message, in both directions.

use crate::cluster::Cluster;
use petuum_client::{TableDefinition, Worker, WorkerOptions};
use petuum_types::{RowId, WorkerId};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_a_million_columns_goes_in_and_out_with_default_settings() {
    let cluster = Cluster::start(3, 2).await;
    let client = cluster.client().await;
    let job = client.create_job("wide", 1, None).await.unwrap();
    let table = job.create_table(&TableDefinition::i64("wide", 1_000_000, 0)).await.unwrap();
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut worker = session.thread();
    let deltas: Vec<i64> = (0..1_000_000).collect();
    worker.inc_dense(&table, RowId(5), 0, &deltas[..]).unwrap();
    worker.clock().await.unwrap();
    worker.flush().await.unwrap();
    drop(worker);
    drop(session);
    // Another process has nothing cached.
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let row = session.thread().get(&table, RowId(5)).await.unwrap();
    assert_eq!(row.as_i64().unwrap(), deltas);
    cluster.assert_replicas_equal(2).await;
}
