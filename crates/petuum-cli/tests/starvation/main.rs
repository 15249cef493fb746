//! What the simulator cannot make: a machine that is busy with other things. A program of its own, because tests that run
//! beside it would be starved too.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

#[expect(dead_code, reason = "helpers of the tests of processes; a few of them are used here")]
#[path = "../processes/cluster.rs"]
mod cluster;
#[path = "../processes/load.rs"]
mod load;
#[path = "../processes/oracle.rs"]
mod oracle;

use crate::cluster::{Cluster, pid};
use crate::load::{SHARDS, WORKERS, oracle, spawn_workers};
use rustix::process::{Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Processes that do nothing but use a processor; killed when dropped.
struct Burners(Vec<Child>);

impl Burners {
    fn start(count: usize) -> Self {
        let burner = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        Self((0..count).map(|_| burner()).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            kill_process(pid(child), Signal::KILL).unwrap();
            child.wait().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_g8_a_machine_that_is_busy_with_other_things_loses_nothing_and_goes_on() {
    let mut cluster = Cluster::start(3, SHARDS).await;
    let client = cluster.client().await;
    let job = client.create_job("starved", WORKERS, Some(Duration::from_secs(60))).await.unwrap();
    let (table, oracle) = oracle(&job).await;
    let cores = std::thread::available_parallelism().unwrap().get();
    let burners = Burners::start(4 * cores);
    let workers = spawn_workers(&cluster, "starved", &table, &oracle, 150);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let node = cluster.busiest().await;
    cluster.kill(node);
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.restart(node);
    for worker in workers {
        worker.await.unwrap();
    }
    drop(burners);
    cluster.assert_replicas_equal(SHARDS).await;
}
