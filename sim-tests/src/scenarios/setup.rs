//! How a run begins: what it is made of, drawn from the seed; its cluster, its job and table, its workers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Options, TableDefinition, WorkerOptions};
use petuum_sim::cluster::client_options;
use petuum_sim::oracle::UnitVectors;
use petuum_sim::{Error, HostResult, NodeSettings, SimCluster};
use petuum_types::RowId;

use super::invariants::{Invariants, Leases};
use super::made::Made;
use super::reader;
use super::shared::{FRAGILE, JOB, Shared, TABLE};
use super::stage::{Stage, rival_host, worker_host};
use super::worker::{self, Place};

/// Forming a cluster, its job and its table.
const FORMING: Duration = Duration::from_secs(60);

/// What a run is made of.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) nodes: u32,
    pub(super) shards: u32,
    pub(super) replication: u32,
    pub(super) workers: u32,
    /// Whether each worker has a second host, from which it can be replaced.
    pub(super) rivals: bool,
    pub(super) staleness: u32,
    pub(super) lease: Duration,
    /// Whether leases are so short, or operators so busy, that workers are removed.
    pub(super) removals: bool,
    pub(super) latency_max: Duration,
    pub(super) sync_latency: (Duration, Duration),
    /// Memory that fills before a new log file begins, as the store's options have it.
    pub(super) write_buffer_bytes: usize,
    /// RocksDB's background jobs wait, and begin in one of so many steps.
    pub(super) jobs_begin_one_in: Option<u32>,
    pub(super) settings: NodeSettings,
    /// Per node: by how many percent its timers differ from the others'.
    pub(super) skew: Vec<u64>,
    pub(super) worker: WorkerOptions,
    /// Whether somebody without a session reads meanwhile.
    pub(super) reader: bool,
    /// Workers make one clock in so many that must be refused.
    pub(super) refused: Option<u32>,
    /// Workers flush after one clock in so many.
    pub(super) flushes_one_in: u32,
    /// The longest pause of a worker between two clocks.
    pub(super) pause_max: Duration,
    /// How long after each other a session's threads begin to read, at most.
    pub(super) out_of_step: Duration,
}

/// Settings of nodes whose timers, and how much they keep and hand on at once, differ from run to run.
pub(super) fn draw_settings(random: &mut fastrand::Rng) -> NodeSettings {
    let heartbeat_ms = random.u64(50..=100);
    let election_min_ms = heartbeat_ms * random.u64(4..=6);
    NodeSettings {
        heartbeat_ms,
        election_min_ms,
        election_max_ms: election_min_ms + random.u64(100..=400),
        snapshot_after_entries: random.u64(100..=300),
        log_kept_entries: if random.bool() { random.u64(0..=80) } else { 2000 },
        // Else no log would be purged, and no snapshot sent.
        log_kept_bytes: 0,
        driver_tick_ms: random.u64(100..=500),
        gather_in_flight: random.usize(1..=8),
        peer_call_ms: random.u64(1000..=3000),
        hand_over_ms: random.u64(1000..=4000),
        ..NodeSettings::default()
    }
}

/// Settings of a node whose clock runs at `percent` of the others' speed: all its timers end that much later or earlier.
fn skewed(settings: &NodeSettings, percent: u64) -> NodeSettings {
    let scale = |millis: u64| millis * percent / 100;
    NodeSettings {
        heartbeat_ms: scale(settings.heartbeat_ms),
        election_min_ms: scale(settings.election_min_ms),
        election_max_ms: scale(settings.election_max_ms),
        driver_tick_ms: scale(settings.driver_tick_ms),
        peer_call_ms: scale(settings.peer_call_ms),
        ..settings.clone()
    }
}

/// Forms the cluster, makes the job and starts its workers.
///
/// # Errors
/// If that takes longer than it may.
pub(super) fn begin(seed: u64, shape: &Shape, random: &mut fastrand::Rng) -> Result<(Stage, Made), Error> {
    let mut builder = SimCluster::builder(seed)
        .nodes(shape.nodes)
        .shards(shape.shards)
        .replication(shape.replication)
        .settings(shape.settings.clone())
        .write_buffer_bytes(shape.write_buffer_bytes)
        .sync_latency(shape.sync_latency.0, shape.sync_latency.1)
        .latency(Duration::ZERO, shape.latency_max);
    if let Some(steps) = shape.jobs_begin_one_in {
        builder = builder.jobs_begin_one_in(steps);
    }
    for (node, percent) in (1..).zip(&shape.skew) {
        builder = builder.settings_of(node, skewed(&shape.settings, *percent));
    }
    let mut cluster = builder.build();
    cluster.form(FORMING)?;
    let made = make_job(&mut cluster, shape, random.u64(..))?;
    let stage = start_workers(cluster, shape, &made, random.u64(..));
    Ok((stage, made))
}

/// Creates job and table from a host of its own.
fn make_job(cluster: &mut SimCluster, shape: &Shape, seed: u64) -> Result<Made, Error> {
    let made = Rc::new(RefCell::new(None));
    let (to, endpoints, shape) = (Rc::clone(&made), cluster.endpoints(), shape.clone());
    cluster.client("maker", async move {
        let found = make(endpoints, client_options(seed), &shape).await?;
        *to.borrow_mut() = Some(found);
        HostResult::Ok(())
    });
    cluster.step_until("the job and its table", FORMING, |_| made.borrow().is_some())?;
    let made = made.borrow_mut().take();
    Ok(made.expect("waited for"))
}

async fn make(endpoints: Vec<String>, options: Options, shape: &Shape) -> Result<Made, petuum_types::Error> {
    let client = Client::connect(&endpoints, options).await?;
    let job = client.create_job(JOB, shape.workers, Some(shape.lease)).await?;
    let table = job.create_table(&TableDefinition::i64(TABLE, 2 * shape.workers, shape.staleness)).await?;
    if shape.refused.is_some() {
        job.create_table(&TableDefinition::f32(FRAGILE, 3, shape.staleness)).await?;
    }
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

fn start_workers(mut cluster: SimCluster, shape: &Shape, made: &Made, seed: u64) -> Stage {
    let oracle = UnitVectors::new(shape.workers as usize, u64::from(shape.staleness), seed);
    let handle = Rc::new(RefCell::new(Shared {
        oracle: if shape.removals { oracle.with_removals() } else { oracle },
        rows: made.rows.keys().copied().collect(),
        target: u64::MAX,
        stops: BTreeMap::new(),
        slow: BTreeMap::new(),
        latest: BTreeMap::new(),
        takes_over: BTreeSet::new(),
        finished: BTreeMap::new(),
        left: BTreeMap::new(),
        renewed: BTreeMap::new(),
        work: BTreeMap::new(),
        takeovers: 0,
        latest_reads: 0,
        given_up: 0,
        rejoins: 0,
        leaves: 0,
        over: false,
    }));
    for id in 0..shape.workers {
        let hosts = [Some(worker_host(id)), shape.rivals.then(|| rival_host(id))];
        for (host, waits) in hosts.into_iter().flatten().zip([false, true]) {
            let place = Place {
                handle: Rc::clone(&handle),
                id,
                host: host.clone(),
                waits,
                endpoints: cluster.endpoints(),
                options: shape.worker.clone(),
                pause_max: shape.pause_max,
                out_of_step: shape.out_of_step,
                refused: shape.refused,
                flushes_one_in: shape.flushes_one_in,
                removals: shape.removals,
                history: cluster.history().clone(),
            };
            cluster.worker(&host, move |options| worker::run(place.clone(), options));
        }
    }
    if shape.reader {
        let (handle, endpoints) = (Rc::clone(&handle), cluster.endpoints());
        cluster.worker(reader::HOST, move |options| reader::run(Rc::clone(&handle), endpoints.clone(), options));
    }
    Stage {
        cluster,
        handle,
        job: made.job,
        made: made.clone(),
        invariants: Invariants::default(),
        leases: Leases::default(),
        workers: shape.workers,
        removals: shape.removals,
        shards: shape.shards,
        replication: shape.replication,
        lease: shape.lease,
        steps: 0,
    }
}
