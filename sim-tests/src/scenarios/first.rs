//! The first scenario: every kind of fault once, in an order and at times from the seed, under the unit-vector oracle;
//! then peace, in which all workers must finish and all replicas be equal.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Options, TableDefinition};
use petuum_shard::ReadOutcome;
use petuum_sim::cluster::client_options;
use petuum_sim::oracle::UnitVectors;
use petuum_sim::{Error, HostResult, NodeSettings, SimCluster};
use petuum_types::read::Read;
use petuum_types::{Clock, Generation, JobId, LogIndex, MapEpoch, RowId, ShardId, TableId, Values};

use super::faults::{Faults, Kind};
use super::report::{Report, Work};
use super::stage::{Stage, worker_host};
use super::watch::Watch;
use super::worker::{self, JOB, Shared, TABLE};

/// Begins what is said of a run in which something that it is for did not happen.
pub(super) const VACUOUS: &str = "the run shows nothing";

/// In peace, all must be well within this.
const CONVERGENCE: Duration = Duration::from_secs(60);

/// Forming a cluster, its job and its table.
const FORMING: Duration = Duration::from_secs(60);

/// Clocks that every worker finishes after the last fault.
const CLOCKS_IN_PEACE: u64 = 10;

/// Longer than any fault keeps a worker away: none is removed.
const LEASE: Duration = Duration::from_secs(30);

/// What is drawn from a seed before the run.
struct Shape {
    nodes: u32,
    shards: u32,
    workers: u32,
    staleness: u32,
    latency_max: Duration,
    settings: NodeSettings,
}

impl Shape {
    fn draw(random: &mut fastrand::Rng) -> Self {
        let heartbeat_ms = random.u64(50..=100);
        let election_min_ms = heartbeat_ms * random.u64(4..=6);
        let settings = NodeSettings {
            heartbeat_ms,
            election_min_ms,
            election_max_ms: election_min_ms + random.u64(100..=400),
            snapshot_after_entries: random.u64(100..=300),
            log_kept_entries: if random.bool() { random.u64(0..=80) } else { 2000 },
            driver_tick_ms: random.u64(100..=500),
            gather_in_flight: random.usize(1..=8),
            ..NodeSettings::default()
        };
        Self {
            nodes: if random.u8(..4) == 0 { 4 } else { 3 },
            shards: if random.u8(..4) == 0 { random.u32(5..=8) } else { random.u32(2..=4) },
            workers: random.u32(2..=3),
            staleness: random.u32(0..=2),
            latency_max: Duration::from_millis(random.u64(1..=10)),
            settings,
        }
    }
}

/// What the job's first client finds out.
#[derive(Clone, Debug)]
struct Made {
    job: JobId,
    generation: Generation,
    table: TableId,
    epoch: MapEpoch,
    /// Rows and their shards.
    rows: BTreeMap<RowId, ShardId>,
}

/// One run.
///
/// # Errors
/// What was not as it must be, with seed and virtual time.
pub fn run(seed: u64, fsync: bool) -> Result<Report, Error> {
    let mut random = fastrand::Rng::with_seed(seed);
    let shape = Shape::draw(&mut random);
    let mut cluster = SimCluster::builder(seed)
        .nodes(shape.nodes)
        .shards(shape.shards)
        .replication(3)
        .settings(shape.settings.clone())
        .latency(Duration::ZERO, shape.latency_max)
        .build();
    cluster.form(FORMING)?;
    let made = make_job(&mut cluster, &shape, random.u64(..))?;
    if !fsync {
        cluster.ignore_syncs();
    }
    let mut stage = begin(cluster, &shape, &made, random.u64(..));
    let mut faults = Faults::new(random.u64(..));
    faults.run(&mut stage)?;
    let clocks = converge(&mut stage)?;
    check_rows(&stage, &made, clocks)?;
    stage.handle.borrow_mut().over = true;
    let report = report(&stage, &faults);
    match report.missing(Kind::ALL.iter().map(|kind| kind.name())) {
        None => Ok(report),
        Some(name) => Err(stage.cluster.error(format!("{VACUOUS}: {name} is 0 in {report}"))),
    }
}

/// Creates job and table from a host of its own.
fn make_job(cluster: &mut SimCluster, shape: &Shape, seed: u64) -> Result<Made, Error> {
    let made = Rc::new(RefCell::new(None));
    let (to, endpoints) = (Rc::clone(&made), cluster.endpoints());
    let (workers, staleness) = (shape.workers, shape.staleness);
    cluster.client("maker", async move {
        let found = make(endpoints, client_options(seed), workers, staleness).await?;
        *to.borrow_mut() = Some(found);
        HostResult::Ok(())
    });
    cluster.step_until("the job and its table", FORMING, |_| made.borrow().is_some())?;
    let made = made.borrow_mut().take();
    Ok(made.expect("waited for"))
}

async fn make(
    endpoints: Vec<String>,
    options: Options,
    workers: u32,
    staleness: u32,
) -> Result<Made, petuum_types::Error> {
    let client = Client::connect(&endpoints, options).await?;
    let job = client.create_job(JOB, workers, Some(LEASE)).await?;
    let table = job.create_table(&TableDefinition::i64(TABLE, 2 * workers, staleness)).await?;
    let (map, table) = (client.map(), table.schema().id);
    // Two rows in every shard.
    let mut rows = BTreeMap::new();
    for row in (0..10_000).map(RowId) {
        let shard = map.shard_of(table, row);
        if rows.values().filter(|of| **of == shard).count() < 2 {
            rows.insert(row, shard);
        }
    }
    Ok(Made { job: job.info().id, generation: job.info().generation, table, epoch: map.epoch, rows })
}

/// Starts the workers.
fn begin(mut cluster: SimCluster, shape: &Shape, made: &Made, seed: u64) -> Stage {
    let handle = Rc::new(RefCell::new(Shared {
        oracle: UnitVectors::new(shape.workers as usize, u64::from(shape.staleness), seed),
        rows: made.rows.keys().copied().collect(),
        target: u64::MAX,
        stops: BTreeMap::new(),
        finished: BTreeMap::new(),
        work: BTreeMap::new(),
        over: false,
    }));
    for id in 0..shape.workers {
        let (handle, endpoints) = (Rc::clone(&handle), cluster.endpoints());
        cluster
            .worker(&worker_host(id), move |options| worker::run(Rc::clone(&handle), id, endpoints.clone(), options));
    }
    Stage {
        cluster,
        handle,
        job: made.job,
        watch: Watch::default(),
        workers: shape.workers,
        shards: shape.shards,
        staleness: u64::from(shape.staleness),
        steps: 0,
    }
}

/// In peace: all workers finish the same number of clocks, which is returned, and replicas come to the same index.
fn converge(stage: &mut Stage) -> Result<u64, Error> {
    let clocks = {
        let mut shared = stage.handle.borrow_mut();
        let most = (0..stage.workers).map(|worker| shared.oracle.attempted(worker as usize)).max().unwrap_or(0);
        shared.target = most + CLOCKS_IN_PEACE;
        shared.target
    };
    tracing::info!(clocks, at = ?stage.elapsed(), "peace");
    let end = stage.elapsed() + CONVERGENCE;
    while stage.handle.borrow().finished.len() < stage.workers as usize || !level(stage) {
        if stage.elapsed() >= end {
            return Err(stage.cluster.error(format!("{CONVERGENCE:?} after the last fault {}", unfinished(stage))));
        }
        stage.step()?;
    }
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
    format!("not all is well: {}; {}", workers.join("; "), replicas.join("; "))
}

/// Every row on every replica, and every replica's sums against its rows.
fn check_rows(stage: &Stage, made: &Made, clocks: u64) -> Result<(), Error> {
    let broken = |what: String| stage.cluster.error(what);
    let shared = stage.handle.borrow();
    let mut checked = 0;
    for host in stage.cluster.nodes() {
        for shard in stage.cluster.shards_on(&host) {
            let rows: Vec<RowId> = made.rows.iter().filter(|(_, of)| **of == shard).map(|(row, _)| *row).collect();
            let read = Read {
                job: made.job,
                generation: made.generation,
                epoch: made.epoch,
                reader: None,
                table: made.table,
                rows,
                min_clock: Clock(clocks),
                own_clock: Clock::ZERO,
                min_index: LogIndex(0),
            };
            let look = stage
                .cluster
                .shard(&host, shard, |state| (state.read(&read), state.checksums() == state.checksums_recomputed()));
            let (outcome, sums_hold) = look.ok_or_else(|| broken(format!("{host} is not up")))?;
            if !sums_hold {
                return Err(broken(format!("{shard} on {host}: the sums kept differ from those of its rows")));
            }
            let ReadOutcome::Answer(answer) = outcome else {
                return Err(broken(format!("{shard} on {host} does not answer at clock {clocks}: {outcome:?}")));
            };
            for row in &answer.rows {
                let Values::I64(values) = row.values.as_ref() else {
                    return Err(broken(format!("{} on {host} holds other values than i64", row.row)));
                };
                let held = shared.oracle.final_row(row.row.0, values, clocks);
                held.map_err(|violation| broken(format!("{shard} on {host}: {violation}")))?;
                checked += 1;
            }
        }
    }
    // Three replicas of each row.
    if checked != 3 * made.rows.len() {
        return Err(broken(format!("{checked} rows were found on the replicas; expected {}", 3 * made.rows.len())));
    }
    Ok(())
}

fn report(stage: &Stage, faults: &Faults) -> Report {
    let shared = stage.handle.borrow();
    let mut report = Report::default();
    let mut work = Work::default();
    shared.work.values().for_each(|of_session| work += *of_session);
    report.count("runs", 1);
    report.count("virtual-ms", u64::try_from(stage.elapsed().as_millis()).unwrap_or(u64::MAX));
    report.count("clocks-acknowledged", (0..stage.workers).map(|worker| stage.acked(worker)).sum());
    report.count("rows-checked", shared.oracle.reads());
    report.count("rows-read", work.rows_read);
    report.count("retries", work.retries);
    report.count("repeats", work.repeats);
    report.count("failovers", work.failovers);
    // Each group's first leader is not due to a fault.
    report.count("elections", stage.watch.terms().saturating_sub(u64::from(stage.shards) + 1));
    report.count("replicas-compared", stage.watch.compared);
    for disk in stage.cluster.disks() {
        report.count("bytes-lost", disk.bytes_lost);
        report.count("torn-logs", disk.torn_tails);
    }
    for (kind, count) in &faults.happened {
        report.count(kind.name(), *count);
    }
    report
}
