//! Faults of every kind: each can happen, has an effect, and leaves a cluster that goes on.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Options, TableDefinition, Worker, WorkerOptions};
use petuum_sim::faults::Kind;
use petuum_sim::{Faults, HostResult, SimCluster};
use petuum_types::{RowId, WorkerId};

use crate::support::SOON;

/// How often a fault may have no effect in a row: a failpoint that nobody comes by, a disk that is not written to.
const VAIN_MAX: usize = 40;

/// Counts for ever, and tells how far it is.
async fn count(nodes: Vec<String>, options: Options, clocks: Rc<Cell<u64>>) -> HostResult {
    let job = Client::connect(&nodes, options).await?.create_job("job", 1, None).await?;
    let table = job.create_table(&TableDefinition::i64("table", 1, 1)).await?;
    let mut thread = job.worker(WorkerId(0), WorkerOptions::default()).await?.thread();
    loop {
        for row in 0..8 {
            thread.inc(&table, RowId(row), 0, 1i64)?;
        }
        thread.clock().await?;
        thread.flush().await?;
        clocks.set(thread.now().0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn every_kind_happens_and_ends_and_the_cluster_goes_on() {
    // Little memory for the log: tables are written, and read again at a start.
    let mut cluster = SimCluster::builder(1).nodes(4).shards(2).write_buffer_bytes(64 << 10).build();
    cluster.form(SOON).unwrap();
    let clocks = Rc::new(Cell::new(0));
    let (nodes, tell) = (cluster.endpoints(), Rc::clone(&clocks));
    cluster.worker("worker", move |options| count(nodes.clone(), options, Rc::clone(&tell)));
    cluster.step_until("the first clock", SOON, |_| clocks.get() > 0).unwrap();
    let mut faults = Faults::new(1);
    for kind in Kind::ALL {
        for _ in 0..VAIN_MAX {
            faults.begin(&mut cluster, kind);
            faults.end_all(&mut cluster).unwrap();
            if faults.happened().contains_key(&kind) {
                break;
            }
        }
        assert!(faults.happened().contains_key(&kind), "{}: {VAIN_MAX} times without effect", kind.name());
        assert!(cluster.nodes().iter().chain(&cluster.workers()).all(|host| cluster.is_up(host)), "{}", kind.name());
        let before = clocks.get();
        cluster.step_until(kind.name(), SOON, |_| clocks.get() > before + 1).unwrap();
    }
}

#[test]
fn the_same_seed_strikes_the_same_hosts() {
    let struck = |seed| {
        let mut cluster = SimCluster::builder(1).nodes(3).shards(1).build();
        cluster.form(SOON).unwrap();
        let mut faults = Faults::new(seed);
        for _ in 0..5 {
            faults.next(&mut cluster, &[Kind::KillLeader, Kind::Isolate, Kind::Ring, Kind::SlowDisk]).unwrap();
        }
        faults.end_all(&mut cluster).unwrap();
        (cluster.elapsed(), faults.happened().clone())
    };
    assert_eq!(struck(7), struck(7));
    assert_ne!(struck(7).0, struck(8).0);
    assert!(!struck(7).1.contains_key(&Kind::Ring), "three nodes are no ring");
}
