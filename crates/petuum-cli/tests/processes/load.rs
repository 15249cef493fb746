//! A job of four workers under the unit-vector oracle, while something is done to its servers.

use crate::cluster::Cluster;
use crate::oracle::Oracle;
use petuum_client::{Job, Options, TableDefinition, Worker, WorkerOptions};
use petuum_types::{RowId, WorkerId};
use std::sync::Arc;

pub(crate) const WORKERS: u32 = 4;
pub(crate) const SHARDS: u32 = 4;
const STALENESS: u32 = 2;

/// The table of unit vectors and its oracle.
pub(crate) async fn oracle(job: &Job) -> (petuum_client::Table, Arc<Oracle>) {
    let table = job.create_table(&TableDefinition::i64("units", WORKERS, STALENESS)).await.unwrap();
    let map = job.client().map();
    // One row in each of the shards.
    let mut rows = std::collections::BTreeMap::new();
    (0..1000).map(RowId).for_each(|row| {
        rows.entry(map.shard_of(table.schema().id, row)).or_insert(row);
    });
    assert_eq!(rows.len(), SHARDS as usize);
    (table, Arc::new(Oracle::new(rows.into_values().collect(), WORKERS as usize, STALENESS)))
}

/// Workers that compute so many clocks each and check everything they read, as tasks of this process.
pub(crate) fn spawn_workers(
    cluster: &Cluster,
    job: &str,
    table: &petuum_client::Table,
    oracle: &Arc<Oracle>,
    clocks: u64,
) -> Vec<tokio::task::JoinHandle<()>> {
    (0..WORKERS)
        .map(|id| {
            let (addresses, job, table, oracle) =
                (cluster.addresses.clone(), job.to_owned(), table.clone(), oracle.clone());
            tokio::spawn(async move {
                let client = petuum_client::Client::connect(&addresses, Options::default()).await.unwrap();
                let job = client.job(&job).await.unwrap();
                let session = job.worker(WorkerId(id), WorkerOptions::default()).await.unwrap();
                let mut worker = session.thread();
                let mut seen = vec![vec![0; WORKERS as usize]; oracle.rows.len()];
                while worker.now().0 < clocks {
                    oracle.step(&mut worker, &table, &mut seen).await;
                }
                worker.flush().await.unwrap();
                oracle.assert_final(&mut worker, &table, i64::try_from(clocks).unwrap()).await;
            })
        })
        .collect()
}
