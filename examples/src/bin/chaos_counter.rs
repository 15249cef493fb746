//! Your own training program under chaos: two workers count to fifty together on three simulated nodes that are killed, lose
//! their power and are cut off, all from one seed. In the end every clock must have counted once.
//!
//!     chaos_counter [SEED]

use petuum_client::{Client, Options, TableDefinition, Worker, WorkerOptions};
use petuum_sim::{HostResult, SimCluster};
use petuum_types::{Clock, RowId, Values, WorkerId};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const WORKERS: u32 = 2;
const CLOCKS: u64 = 50;

/// The program: it knows nothing of the simulation. Killed and started again, it goes on at its committed clock.
async fn train(nodes: Vec<String>, options: Options, id: u32, finished: Rc<Cell<u32>>) -> HostResult {
    let job = Client::connect(&nodes, options).await?.create_job("count", WORKERS, None).await?;
    let table = job.create_table(&TableDefinition::i64("counts", 1, 1)).await?;
    let mut worker = job.worker(WorkerId(id), WorkerOptions::default()).await?.thread();
    while worker.now() < Clock(CLOCKS) {
        for row in 0..4 {
            worker.inc(&table, RowId(row), 0, 1i64)?;
        }
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
    finished.set(finished.get() + 1);
    // Others may still need its clocks: a worker that goes away is removed once its lease has passed.
    std::future::pending().await
}

/// The chaos: what is killed or cut, when and for how long, comes from the seed.
#[expect(clippy::print_stdout, reason = "an example tells what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse())?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cluster = SimCluster::builder(seed).nodes(3).shards(4).build();
    cluster.form(Duration::from_secs(60))?;
    let finished = Rc::new(Cell::new(0));
    for id in 0..WORKERS {
        let (nodes, finished) = (cluster.endpoints(), Rc::clone(&finished));
        let program = move |options| train(nodes.clone(), options, id, Rc::clone(&finished));
        cluster.worker(&format!("worker-{id}"), program);
    }
    let mut faults = 0;
    while finished.get() < WORKERS {
        cluster.simulation().run_for(Duration::from_millis(random.u64(50..400)))?;
        let nodes = cluster.nodes();
        let (node, worker) = (nodes[random.usize(..nodes.len())].clone(), format!("worker-{}", random.u32(..WORKERS)));
        let time = Duration::from_millis(random.u64(100..2000));
        match random.u8(..4) {
            0 => drop(cluster.kill(&node)),
            1 => drop(cluster.lose_power(&nodes)),
            2 => cluster.cut(&worker, &node),
            _ => drop(finished.get() == 0 && cluster.kill(&worker)),
        }
        cluster.simulation().run_for(time)?;
        cluster.mend(&worker, &node);
        cluster.restore_power(&[nodes, vec![worker]].concat());
        faults += 1;
    }
    println!(
        "ok: {CLOCKS} clocks of {WORKERS} workers counted once, over {faults} faults in {:.1?}",
        cluster.elapsed()
    );
    Ok(())
}
