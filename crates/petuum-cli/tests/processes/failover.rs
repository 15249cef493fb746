//! Servers and workers die; no clock is lost, doubled or half applied.

use crate::cluster::Cluster;
use crate::load::{SHARDS, WORKERS, oracle, spawn_workers};
use petuum_client::{TableDefinition, Worker, WorkerOptions};
use petuum_types::{Clock, ErrorKind, RowId, WorkerId};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_g2_ten_rounds_of_sigkill_lose_and_double_nothing() {
    let mut cluster = Cluster::start(3, SHARDS).await;
    let client = cluster.client().await;
    let job = client.create_job("kills", WORKERS, Some(Duration::from_secs(30))).await.unwrap();
    let (table, oracle) = oracle(&job).await;
    let clocks = 1500;
    let workers = spawn_workers(&cluster, "kills", &table, &oracle, clocks);
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..10 {
        tokio::time::sleep(Duration::from_millis(random.u64(300..900))).await;
        let node = if round % 2 == 0 { cluster.busiest().await } else { random.usize(..3) };
        cluster.kill(node);
        tokio::time::sleep(Duration::from_millis(random.u64(100..1500))).await;
        cluster.restart(node);
    }
    for worker in workers {
        worker.await.unwrap();
    }
    cluster.assert_replicas_equal(SHARDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_all_nodes_killed_at_once_come_back_with_every_acknowledged_clock() {
    let mut cluster = Cluster::start(3, SHARDS).await;
    let client = cluster.client().await;
    let job = client.create_job("dark", WORKERS, Some(Duration::from_secs(60))).await.unwrap();
    let (table, oracle) = oracle(&job).await;
    let workers = spawn_workers(&cluster, "dark", &table, &oracle, 400);
    tokio::time::sleep(Duration::from_secs(1)).await;
    (0..3).for_each(|node| cluster.kill(node));
    tokio::time::sleep(Duration::from_secs(5)).await;
    (0..3).for_each(|node| cluster.restart(node));
    for worker in workers {
        worker.await.unwrap();
    }
    cluster.assert_replicas_equal(SHARDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_worker_that_comes_back_goes_on_at_its_committed_clock_and_fences_the_old_one() {
    let cluster = Cluster::start(3, 2).await;
    let client = cluster.client().await;
    let job = client.create_job("again", 1, None).await.unwrap();
    let table = job.create_table(&TableDefinition::i64("t", 1, 0)).await.unwrap();
    let first = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut old = first.thread();
    for _ in 0..5 {
        old.inc(&table, RowId(1), 0, 1i64).unwrap();
        old.clock().await.unwrap();
    }
    old.flush().await.unwrap();
    // Inside a clock: what was not ended is not committed.
    old.inc(&table, RowId(1), 0, 100i64).unwrap();
    let second = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    assert_eq!(second.start(), Clock(5));
    let mut new = second.thread();
    new.inc(&table, RowId(1), 0, 1i64).unwrap();
    new.clock().await.unwrap();
    new.flush().await.unwrap();
    assert_eq!(new.get(&table, RowId(1)).await.unwrap().as_i64().unwrap(), [6]);
    let error = match old.clock().await {
        Ok(_) => old.flush().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Replaced, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_worker_that_dies_holds_the_others_up_no_longer_than_its_lease() {
    let cluster = Cluster::start(3, 2).await;
    let client = cluster.client().await;
    let job = client.create_job("lease", 2, Some(Duration::from_secs(2))).await.unwrap();
    let table = job.create_table(&TableDefinition::i64("t", 2, 0)).await.unwrap();
    let open = |id| {
        let job = job.clone();
        tokio::spawn(async move { job.worker(WorkerId(id), WorkerOptions::default()).await.unwrap() })
    };
    let (zero, one) = (open(0), open(1));
    let (zero, one) = (zero.await.unwrap(), one.await.unwrap());
    // Worker 1 dies without a word.
    drop(one);
    let mut worker = zero.thread();
    let begin = Instant::now();
    for _ in 0..5 {
        worker.get(&table, RowId(0)).await.unwrap();
        worker.inc(&table, RowId(0), 0, 1i64).unwrap();
        worker.clock().await.unwrap();
    }
    let waited = begin.elapsed();
    assert!(waited > Duration::from_millis(900) && waited < Duration::from_secs(15), "{waited:?}");
    // It comes back only by an explicit call, and is told where it was removed.
    let refused = job.worker(WorkerId(1), WorkerOptions::default()).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Evicted, "{refused}");
    let rejoin = WorkerOptions { rejoin: true, ..WorkerOptions::default() };
    let back = job.worker(WorkerId(1), rejoin).await.unwrap();
    assert_eq!(back.removed_at(), Some(Clock(0)));
    assert!(back.start() >= Clock(4), "a joiner starts at the min clock, not at 0: {}", back.start());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_cluster_whose_first_node_dies_right_after_init_forms_all_the_same() {
    let mut cluster = Cluster::unformed(3);
    assert!(cluster.init(SHARDS).status.success());
    cluster.kill(0);
    let client = cluster.client().await;
    client.create_job("without node 1", 1, None).await.unwrap();
    cluster.restart(0);
    client.create_job("with it again", 1, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_hands_leaderships_over_and_the_others_go_on() {
    let mut cluster = Cluster::start(3, SHARDS).await;
    let client = cluster.client().await;
    let job = client.create_job("stop", 1, None).await.unwrap();
    let table = job.create_table(&TableDefinition::i64("t", 1, 0)).await.unwrap();
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut worker = session.thread();
    let busiest = cluster.busiest().await;
    assert_eq!(cluster.terminate(busiest), Some(0));
    for row in 0..20 {
        worker.inc(&table, RowId(row), 0, 1i64).unwrap();
        worker.clock().await.unwrap();
    }
    worker.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_worker_to_finish_disturbs_nobody() {
    let cluster = Cluster::start(1, 2).await;
    let client = cluster.client().await;
    let job = client.create_job("finish", 2, None).await.unwrap();
    let table = job.create_table(&TableDefinition::i64("t", 2, 0)).await.unwrap();
    let run = |id: u32, clocks: u64| {
        let (job, table) = (job.clone(), table.clone());
        tokio::spawn(async move {
            let session = job.worker(WorkerId(id), WorkerOptions::default()).await.unwrap();
            let mut worker = session.thread();
            for _ in 0..clocks {
                worker.get(&table, RowId(0)).await.unwrap();
                worker.inc(&table, RowId(0), id, 1i64).unwrap();
                worker.clock().await.unwrap();
            }
            worker.flush().await.unwrap();
            let values = worker.get(&table, RowId(0)).await;
            (worker.leave().await.unwrap(), values)
        })
    };
    let (short, long) = (run(0, 5), run(1, 50));
    assert_eq!(short.await.unwrap().0, Clock(5));
    let (clock, values) = long.await.unwrap();
    assert_eq!((clock, values.unwrap().as_i64().unwrap().to_vec()), (Clock(50), vec![5, 50]));
}
