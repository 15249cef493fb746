//! Your own training program under chaos: two workers count to fifty together on three simulated nodes that are killed, lose
//! their power, are cut off or have failing disks, all from one seed. In the end every clock must have counted once.
//!
//!     chaos_counter [SEED]

use petuum_client::{Client, Options, TableDefinition, Worker, WorkerOptions};
use petuum_sim::faults::Kind;
use petuum_sim::{Faults, HostResult, SimCluster};
use petuum_types::{Clock, RowId, Values, WorkerId};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

const WORKERS: u32 = 2;
const CLOCKS: u64 = 50;

/// Workers that have found every clock counted once.
type Finished = Rc<RefCell<BTreeSet<u32>>>;

/// The program: it knows nothing of the simulation. Killed and started again, it goes on at its committed clock.
async fn train(nodes: Vec<String>, options: Options, id: u32, finished: Finished) -> HostResult {
    let job = Client::connect(&nodes, options).await?.create_job("count", WORKERS, None).await?;
    let table = job.create_table(&TableDefinition::i64("counts", 1, 1)).await?;
    let mut worker = job.worker(WorkerId(id), WorkerOptions::default()).await?.thread();
    while worker.now() < Clock(CLOCKS) {
        for row in 0..4 {
            worker.inc(&table, RowId(row), 0, 1i64)?;
        }
        // What computing would take: a program that is done at once meets no fault.
        tokio::time::sleep(Duration::from_millis(200)).await;
        worker.clock().await?;
    }
    worker.flush().await?;
    worker.barrier().await?;
    let expected = Values::I64(vec![i64::from(WORKERS) * i64::try_from(CLOCKS)?]);
    for (row, found) in (0..).zip(worker.get_many(&table, &[0, 1, 2, 3].map(RowId)).await?) {
        if found != expected {
            return Err(format!("row {row} holds {found:?}; expected {expected:?}").into());
        }
    }
    finished.borrow_mut().insert(id);
    // Others may still need its clocks: a worker that goes away is removed once its lease has passed.
    std::future::pending().await
}

/// The chaos: what strikes whom, when and for how long, comes from the seed.
#[expect(clippy::print_stdout, reason = "an example tells what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse())?;
    let mut cluster = SimCluster::builder(seed).nodes(3).shards(4).build();
    cluster.form(Duration::from_secs(60))?;
    let finished = Finished::default();
    for id in 0..WORKERS {
        let (nodes, finished) = (cluster.endpoints(), Rc::clone(&finished));
        let program = move |options| train(nodes.clone(), options, id, Rc::clone(&finished));
        cluster.worker(&format!("worker-{id}"), program);
    }
    let mut faults = Faults::new(seed);
    while finished.borrow().len() < WORKERS as usize {
        faults.next(&mut cluster, &Kind::ALL)?;
    }
    faults.end_all(&mut cluster)?;
    let (count, time) = (faults.happened().values().sum::<u64>(), cluster.elapsed());
    println!("ok: {CLOCKS} clocks of {WORKERS} workers counted once, over {count} faults in {time:.1?}");
    Ok(())
}
