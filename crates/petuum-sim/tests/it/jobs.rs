//! Jobs and sessions over a long time: many short ones, one that does nothing for long, one whose clock is refused.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Job, ReadFrom, Table, TableDefinition, Worker, WorkerOptions};
use petuum_sim::SimCluster;
use petuum_types::{Clock, Error, ErrorKind, RowId, WorkerId};
use tokio::time::{Instant, timeout};

use crate::support::{SOON, call, options_of, settle, settled};

const ROW: RowId = RowId(3);
const CLOCKS: u32 = 3;

/// A worker of a short job: a few clocks, each after a read that waits for the other worker's.
async fn few_clocks(job: Job, table: Table, id: u32) -> Result<(), Error> {
    let session = job.worker(WorkerId(id), WorkerOptions::default()).await?;
    let mut thread = session.thread();
    for _ in 0..CLOCKS {
        thread.get(&table, ROW).await?;
        thread.inc(&table, ROW, id, 1i64)?;
        thread.clock().await?;
    }
    thread.barrier().await?;
    assert_eq!(thread.get(&table, ROW).await?.as_i64().unwrap(), [i64::from(CLOCKS); 2]);
    assert_eq!(thread.leave().await?, Clock(u64::from(CLOCKS)));
    Ok(())
}

async fn short_job(client: Client, name: String) -> Result<(), Error> {
    let job = client.create_job(&name, 2, None).await?;
    let table = job.create_table(&TableDefinition::i64("table", 2, 0)).await?;
    let (one, other) = tokio::join!(few_clocks(job.clone(), table.clone(), 0), few_clocks(job, table, 1));
    one.and(other)
}

/// A hang that comes once in many jobs is found by starting many.
#[test]
fn no_short_job_in_a_long_row_hangs() {
    let mut cluster = settled(1);
    for number in 0..50 {
        let name = format!("job-{number}");
        let job = name.clone();
        call(&mut cluster, &name, |client| async move {
            timeout(SOON / 2, short_job(client, job)).await.expect("a job of three clocks ends before its watchdog")
        });
    }
}

/// Nothing between a session and the servers takes silence for death: no connection, lease or cache.
#[test]
fn a_session_idle_for_forty_minutes_goes_on_at_once() {
    let idle = Duration::from_secs(40 * 60);
    let mut cluster = SimCluster::builder(1).nodes(3).shards(1).duration(2 * idle).build();
    cluster.form(SOON).unwrap();
    settle(&mut cluster);
    let (endpoints, took) = (cluster.endpoints(), Rc::new(Cell::new(None)));
    let tell = Rc::clone(&took);
    cluster.client("idler", async move {
        let client = Client::connect(&endpoints, options_of("idler")).await?;
        let job = client.create_job("job", 1, None).await?;
        let table = job.create_table(&TableDefinition::i64("table", 1, 0)).await?;
        let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
        let mut thread = session.thread();
        for clock in 1..=2 {
            let begin = Instant::now();
            thread.inc(&table, ROW, 0, 1i64)?;
            thread.clock().await?;
            thread.flush().await?;
            assert_eq!(thread.get(&table, ROW).await?.as_i64().unwrap(), [clock]);
            let latest = job.read(&table, &[ROW], ReadFrom::Latest).await?;
            assert_eq!(latest[0].values.as_i64().unwrap(), [clock]);
            if clock == 1 {
                tokio::time::sleep(idle).await;
            } else {
                tell.set(Some(begin.elapsed()));
            }
        }
        Ok(())
    });
    cluster.step_until("the idle session's end", idle + SOON, |_| took.get().is_some()).unwrap();
    let took = took.get().unwrap();
    assert!(took < Duration::from_secs(1), "a clock and two reads took {took:?}");
}

/// A clock that only the servers can refuse: each thread's update is finite, their sum is not.
async fn refused_clock(client: Client) -> Result<(), Error> {
    let job = client.create_job("job", 1, None).await?;
    let counts = job.create_table(&TableDefinition::i64("counts", 1, 0)).await?;
    let fragile = job.create_table(&TableDefinition::f32("fragile", 1, 0)).await?;
    let options = WorkerOptions { threads: 2, ..WorkerOptions::default() };
    let session = job.worker(WorkerId(0), options).await?;
    let mut threads = session.threads();
    for thread in &mut threads {
        thread.inc(&counts, ROW, 0, 1i64)?;
        thread.inc(&fragile, ROW, 0, f32::MAX)?;
        thread.clock().await?;
    }
    // Under staleness 0 a read waits for the clock that is being refused.
    for thread in &mut threads {
        let error = thread.get(&counts, ROW).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert_eq!(thread.now(), Clock(0), "back in the clock that was given up");
        thread.inc(&counts, ROW, 0, 1i64)?;
    }
    for thread in &mut threads {
        thread.clock().await?;
    }
    for thread in &mut threads {
        assert_eq!(thread.get(&counts, ROW).await?.as_i64().unwrap(), [2], "of the second attempt alone");
    }
    Ok(())
}

#[test]
fn a_read_that_waits_for_a_clock_ends_when_that_clock_is_given_up() {
    let mut cluster = settled(1);
    let begin = cluster.elapsed();
    call(&mut cluster, "refused", |client| async move { refused_clock(client).await });
    let took = cluster.elapsed() - begin;
    assert!(took < Duration::from_secs(5), "it took {took:?}");
}
