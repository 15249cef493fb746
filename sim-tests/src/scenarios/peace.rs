//! The second half of every run: no more faults, and all must be well within a bound. All workers finish the same number
//! of clocks, all replicas come to the same index, and every row on every replica holds exactly what counts. In the end the
//! workers leave, each at its last clock, and the table is dropped everywhere.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::Client;
use petuum_shard::ReadOutcome;
use petuum_sim::cluster::client_options;
use petuum_sim::{Error, HostResult};
use petuum_types::{Clock, ShardId, Values};

use super::made::Made;
use super::shared::{JOB, TABLE};
use super::stage::Stage;

/// In peace, all must be well within this.
const CONVERGENCE: Duration = Duration::from_secs(60);

/// Clocks that every worker finishes after the last fault.
const CLOCKS_IN_PEACE: u64 = 10;

/// Waits until all is well and checks what is left.
///
/// # Errors
/// What is not as it must be.
pub(super) fn make(stage: &mut Stage, made: &Made) -> Result<(), Error> {
    stage.cluster.failpoints().be_careful();
    let clocks = converge(stage)?;
    check_rows(stage, made, clocks)?;
    part(stage, clocks)?;
    drop_table(stage, made)
}

/// Goes on until all is `done`, for as long as it may take in peace; `what` says what is not.
fn within_bound(
    stage: &mut Stage,
    done: impl Fn(&Stage) -> bool,
    what: impl Fn(&Stage) -> String,
) -> Result<(), Error> {
    let end = stage.elapsed() + CONVERGENCE;
    while !done(stage) {
        if stage.elapsed() >= end {
            return Err(stage.cluster.error(format!("after {CONVERGENCE:?} of peace: {}", what(stage))));
        }
        stage.step()?;
    }
    Ok(())
}

/// All workers leave.
fn part(stage: &mut Stage, clocks: u64) -> Result<(), Error> {
    stage.handle.borrow_mut().over = true;
    let left = |stage: &Stage| stage.handle.borrow().left.len();
    let all = |stage: &Stage| left(stage) == stage.workers as usize;
    within_bound(stage, all, |stage| format!("{} of {} workers have left", left(stage), stage.workers))?;
    match stage.handle.borrow().left.iter().find(|(_, at)| **at != clocks) {
        None => Ok(()),
        Some((worker, at)) => {
            Err(stage.cluster.error(format!("worker {worker} left at clock {at}; it had finished {clocks}")))
        }
    }
}

/// An operator drops the table; when he is told so, no leader answers for its rows any more, and soon no replica.
fn drop_table(stage: &mut Stage, made: &Made) -> Result<(), Error> {
    let dropped = Rc::new(Cell::new(false));
    let (told, endpoints) = (Rc::clone(&dropped), stage.cluster.endpoints());
    stage.cluster.client("dropper", async move {
        let client = Client::connect(&endpoints, client_options(1)).await?;
        client.job(JOB).await?.drop_table(TABLE).await?;
        told.set(true);
        HostResult::Ok(())
    });
    let told = |_: &Stage| format!("the table is not dropped; told so: {}", dropped.get());
    within_bound(stage, |stage| dropped.get() && level(stage), told)?;
    stage.look()?;
    for host in stage.cluster.nodes() {
        for shard in stage.cluster.shards_on(&host) {
            let outcome = stage.cluster.shard(&host, shard, |state| state.read(&made.read_of(shard, Clock::ZERO)));
            if !matches!(outcome, Some(ReadOutcome::Refused(_))) {
                let message = format!("{shard} on {host} answers {outcome:?} for a table that was dropped");
                return Err(stage.cluster.error(message));
            }
        }
    }
    Ok(())
}

/// All workers finish the same number of clocks, which is returned, and replicas come to the same index.
fn converge(stage: &mut Stage) -> Result<u64, Error> {
    let clocks = {
        let mut shared = stage.handle.borrow_mut();
        let most = (0..stage.workers).map(|worker| shared.oracle.attempted(worker as usize)).max().unwrap_or(0);
        shared.target = most + CLOCKS_IN_PEACE;
        shared.target
    };
    tracing::info!(clocks, at = ?stage.elapsed(), "peace");
    let done = |stage: &Stage| stage.handle.borrow().finished.len() == stage.workers as usize && level(stage);
    within_bound(stage, done, |stage| format!("not all is well: {}", unfinished(stage)))?;
    stage.look()?;
    Ok(clocks)
}

/// Whether all replicas of each group have applied the same entries.
fn level(stage: &Stage) -> bool {
    let views = stage.cluster.views();
    let mut applied = BTreeMap::new();
    let replicas = views.iter().flat_map(|view| &view.replicas);
    views.len() == stage.cluster.nodes().len()
        && replicas.into_iter().all(|r| *applied.entry(r.group).or_insert(r.applied) == r.applied)
}

fn unfinished(stage: &Stage) -> String {
    let shared = stage.handle.borrow();
    let workers = (0..stage.workers).map(|worker| {
        let (acked, attempted) = (shared.oracle.acked(worker as usize), shared.oracle.attempted(worker as usize));
        let finished = shared.finished.contains_key(&worker);
        format!(
            "worker {worker}: {acked} of {} clocks acknowledged, {attempted} attempted, finished: {finished}",
            shared.target
        )
    });
    let workers: Vec<String> = workers.collect();
    let replicas = stage.cluster.views().into_iter().flat_map(|view| {
        let host = view.host;
        view.replicas.into_iter().map(move |replica| {
            let applied = replica.applied.map_or(0, |index| index.0);
            format!("{} on {host}: term {}, applied {applied}, leads: {}", replica.group, replica.term, replica.leads)
        })
    });
    let replicas: Vec<String> = replicas.collect();
    format!("{}; {}", workers.join("; "), replicas.join("; "))
}

/// Every row on every replica, and every replica's sums against its rows.
fn check_rows(stage: &Stage, made: &Made, clocks: u64) -> Result<(), Error> {
    let mut checked = 0;
    for host in stage.cluster.nodes() {
        for shard in stage.cluster.shards_on(&host) {
            checked += check_replica(stage, made, clocks, &host, shard)?;
        }
    }
    let expected = stage.replication as usize * made.rows.len();
    if checked == expected {
        return Ok(());
    }
    Err(stage.cluster.error(format!("{checked} rows were found on the replicas; expected {expected}")))
}

fn check_replica(stage: &Stage, made: &Made, clocks: u64, host: &str, shard: ShardId) -> Result<usize, Error> {
    let broken = |what: String| stage.cluster.error(what);
    let read = made.read_of(shard, Clock(clocks));
    let look = stage
        .cluster
        .shard(host, shard, |state| (state.read(&read), state.checksums() == state.checksums_recomputed()));
    let (outcome, sums_hold) = look.ok_or_else(|| broken(format!("{host} is not up")))?;
    if !sums_hold {
        return Err(broken(format!("{shard} on {host}: the sums kept differ from those of its rows")));
    }
    let ReadOutcome::Answer(answer) = outcome else {
        return Err(broken(format!("{shard} on {host} does not answer at clock {clocks}: {outcome:?}")));
    };
    let shared = stage.handle.borrow();
    for row in &answer.rows {
        let Values::I64(values) = row.values.as_ref() else {
            return Err(broken(format!("{} on {host} holds other values than i64", row.row)));
        };
        let held = shared.oracle.final_row(row.row.0, values, clocks);
        held.map_err(|violation| broken(format!("{shard} on {host}: {violation}")))?;
    }
    Ok(answer.rows.len())
}
