//! What the simulator cannot make: nodes that stand still. One that wakes up believes for a moment that no time has passed:
//! that it leads, that leases are young.

use crate::cluster::Cluster;
use crate::load::{SHARDS, WORKERS, oracle, spawn_workers};
use rustix::process::Signal;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_g7_nodes_that_stand_still_and_wake_up_undo_nothing() {
    let cluster = Cluster::start(3, SHARDS).await;
    let client = cluster.client().await;
    let job = client.create_job("pauses", WORKERS, Some(Duration::from_secs(30))).await.unwrap();
    let (table, oracle) = oracle(&job).await;
    let workers = spawn_workers(&cluster, "pauses", &table, &oracle, 800);
    for round in 0..4 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        // Once each, and once more whoever leads most shards: among them the control group's leader.
        let node = if round < 3 { round } else { cluster.busiest().await };
        cluster.send(node, Signal::STOP);
        // Longer than an election takes.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        cluster.send(node, Signal::CONT);
    }
    for worker in workers {
        worker.await.unwrap();
    }
    cluster.assert_replicas_equal(SHARDS).await;
}
