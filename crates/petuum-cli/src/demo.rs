//! `petuum demo`: train twice, once in peace and once under SIGKILL, and check that every clock counted once.

use crate::listing::replicas;
use crate::nodes::{LocalCluster, Shape};
use crate::output::{Failure, line};
use crate::training::{Plan, Training};
use crate::worker::{Event, Spec};
use petuum_apps::data;
use petuum_apps::mlr::Settings;
use petuum_apps::report::Report;
use petuum_client::Client;
use petuum_net::transport::{ChannelSettings, Connector, Tcp, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use petuum_types::{NodeId, ShardId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Flags of `petuum demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Images to train on
    #[arg(long, default_value = "examples/data/fashion-mnist-10k", value_name = "PATH")]
    data: PathBuf,
    /// Passes over the data, each run
    #[arg(long, default_value_t = 6, value_name = "N")]
    epochs: u64,
    /// Worker processes
    #[arg(long, default_value_t = 4, value_name = "N")]
    workers: u32,
}

const NODES: u32 = 3;
const SHARDS: u32 = 8;
const STALENESS: u32 = 1;
const CLOCKS_PER_EPOCH: u64 = 50;
/// Accuracy may differ by this much: staleness and restarts change the order of updates.
const ACCURACY_TOLERANCE: f64 = 0.015;

/// Shows the two runs and their checks.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let begin = Instant::now();
    line(format_args!(
        "Three nodes, {SHARDS} shards of three replicas each, {} worker processes, softmax regression at staleness {STALENESS}.",
        args.workers
    ));
    line("\nFirst without faults:");
    let quiet = one_run(&args, &mut []).await?;
    line(format_args!("  test accuracy {:.4}, {:.1} s", quiet.accuracy, quiet.report.merged.wall_seconds));
    line("\nAgain, and now servers and workers die:");
    let total = args.epochs * CLOCKS_PER_EPOCH;
    let mut faults = [
        (total / 3, Fault::KillLeader),
        (total / 2, Fault::RestartWorker(args.workers.saturating_sub(1))),
        (2 * total / 3, Fault::RestartNode),
    ];
    let rough = one_run(&args, &mut faults).await?;
    line(format_args!("  test accuracy {:.4}, {:.1} s", rough.accuracy, rough.report.merged.wall_seconds));
    summarize(&quiet, &rough);
    let difference = (quiet.accuracy - rough.accuracy).abs();
    if difference > ACCURACY_TOLERANCE {
        return Err(Failure::new(format_args!(
            "demo: accuracy differs by {difference:.4}; expected at most {ACCURACY_TOLERANCE}"
        )));
    }
    line(format_args!(
        "demo: ok, every clock counted once through {} kills, in {:.0} s",
        rough.kills,
        begin.elapsed().as_secs_f64()
    ));
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL to the node that leads most shards.
    KillLeader,
    /// Start that node again.
    RestartNode,
    /// SIGKILL to a worker, and start it again within its lease.
    RestartWorker(u32),
}

struct Outcome {
    report: Report,
    accuracy: f64,
    kills: u32,
}

async fn one_run(args: &Args, faults: &mut [(u64, Fault)]) -> Result<Outcome, Failure> {
    let shape = Shape { nodes: NODES, shards: SHARDS, replication: None, data: None, port: None };
    let mut cluster = LocalCluster::start(&shape).await?;
    let client = cluster.client().await?;
    let mut training = Training::start(&client, plan(args, &client)).await?;
    let kills = drive(&client, &mut cluster, &mut training, args.workers, faults).await?;
    check_counters(&training, args.workers)?;
    check_replicas(&client).await?;
    let report = training.report();
    let accuracy = report.metric.as_ref().map(|m| m.value);
    let accuracy = accuracy.ok_or_else(|| Failure::new("demo: the data has no test set"))?;
    cluster.stop().await?;
    Ok(Outcome { report, accuracy, kills })
}

fn plan(args: &Args, client: &Client) -> Plan {
    let settings = Settings { epochs: args.epochs, clocks_per_epoch: CLOCKS_PER_EPOCH, ..Settings::default() };
    let spec = Spec {
        endpoints: client.map().nodes.values().cloned().collect(),
        job: "demo".to_owned(),
        worker: 0,
        threads: 1,
        data: args.data.clone(),
        test: None,
        reading: data::Options::default(),
        settings,
        counter: true,
        pace_ms: 50,
        deadline_ms: 60_000,
    };
    Plan { spec, workers: args.workers, staleness: STALENESS, lease: Duration::from_secs(10) }
}

/// Watches the run and lets faults happen when the slowest worker reaches their clocks. Returns how many were killed.
async fn drive(
    client: &Client,
    cluster: &mut LocalCluster,
    training: &mut Training,
    workers: u32,
    faults: &mut [(u64, Fault)],
) -> Result<u32, Failure> {
    let mut clocks = vec![0u64; workers as usize];
    let mut pending = faults.iter().peekable();
    let mut killed_node = None;
    let mut kills = 0;
    let mut shown = 0;
    while let Some(event) = training.next().await? {
        match event {
            Event::Registered { worker, incarnation, start } if start > 0 => {
                line(format_args!(
                    "  clock {start:>4}  worker {worker} is back as incarnation {incarnation} and goes on at its committed clock"
                ));
            }
            Event::Clock { worker, point } => {
                clocks[worker as usize] = clocks[worker as usize].max(point.clock + 1);
                let least = clocks.iter().copied().min().unwrap_or(0);
                if least / CLOCKS_PER_EPOCH > shown {
                    shown = least / CLOCKS_PER_EPOCH;
                    line(format_args!("  clock {least:>4}  loss {:.4}", point.loss));
                }
                while let Some((_, fault)) = pending.next_if(|(clock, _)| least >= *clock) {
                    kills += inflict(client, cluster, training, least, *fault, &mut killed_node).await?;
                }
            }
            Event::Waiting { worker, message } => line(format_args!("  worker {worker}: {message}")),
            Event::Registered { .. } | Event::Done(_) => {}
        }
    }
    match pending.next() {
        None => Ok(kills),
        Some((clock, fault)) => {
            Err(Failure::new(format_args!("demo: the run ended before {fault:?} at clock {clock} could happen")))
        }
    }
}

async fn inflict(
    client: &Client,
    cluster: &mut LocalCluster,
    training: &mut Training,
    clock: u64,
    fault: Fault,
    killed_node: &mut Option<usize>,
) -> Result<u32, Failure> {
    match fault {
        Fault::KillLeader => {
            let (node, leads) = busiest(client).await?;
            line(format_args!("  clock {clock:>4}  SIGKILL to {node}, which leads {leads} shards"));
            let index = usize::try_from(node.0 - 1).map_err(Failure::new)?;
            cluster.kill(index).await?;
            *killed_node = Some(index);
            Ok(1)
        }
        Fault::RestartNode => {
            let index = killed_node.take().ok_or_else(|| Failure::new("demo: no node was killed"))?;
            line(format_args!("  clock {clock:>4}  node {} is started again", index + 1));
            cluster.restart(index).await?;
            Ok(0)
        }
        Fault::RestartWorker(worker) => {
            line(format_args!("  clock {clock:>4}  SIGKILL to worker {worker}; it is started again at once"));
            training.kill_worker(worker).await?;
            training.start_worker(worker)?;
            Ok(1)
        }
    }
}

/// The node that leads most groups, and how many shards it leads.
async fn busiest(client: &Client) -> Result<(NodeId, usize), Failure> {
    let mut most: Option<(usize, NodeId)> = None;
    for (node, address) in &client.map().nodes {
        let leads = replicas(address).await?.iter().filter(|r| r.group > 0 && r.role == "leader").count();
        if most.is_none_or(|(count, _)| leads > count) {
            most = Some((leads, *node));
        }
    }
    most.map(|(leads, node)| (node, leads)).ok_or_else(|| Failure::new("demo: the cluster has no node"))
}

/// Each worker added 1 per clock to one row in every shard.
fn check_counters(training: &Training, workers: u32) -> Result<(), Failure> {
    let finished: u64 = training.done().iter().map(|d| d.end_clock).sum();
    let expected = u64::from(workers) * training.clocks();
    let counters: Vec<i64> = training.done().iter().flat_map(|d| d.counters.iter().copied()).collect();
    if finished != expected {
        return Err(Failure::new(format_args!("demo: the workers finished {finished} clocks; expected {expected}")));
    }
    let wrong = counters.iter().position(|c| u64::try_from(*c) != Ok(expected));
    if counters.len() != SHARDS as usize || wrong.is_some() {
        return Err(Failure::new(format_args!(
            "demo: the counters of the shards are {counters:?}; expected {expected} in each of {SHARDS}"
        )));
    }
    line(format_args!(
        "  check  the counters of all {SHARDS} shards are {expected} = {workers} workers x {} clocks",
        training.clocks()
    ));
    Ok(())
}

/// Slot checksums are equal on all nodes at an equal log index (G6).
async fn check_replicas(client: &Client) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut slots = 0;
    for shard in client.map().shards.keys() {
        loop {
            match compare(client, *shard).await {
                Ok(Some(count)) => {
                    slots += count;
                    break;
                }
                // A replica that was down is still catching up.
                Ok(None) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(None) => {
                    return Err(Failure::new(format_args!(
                        "demo: the replicas of {shard} did not reach one log index in 30 s"
                    )));
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    line(format_args!("  check  {slots} slot checksums are equal on all {NODES} nodes at equal log index"));
    Ok(())
}

/// The number of slots compared, or `None` if the replicas are not at one index.
async fn compare(client: &Client, shard: ShardId) -> Result<Option<usize>, Failure> {
    let connector: Arc<dyn Connector> = Arc::new(Tcp);
    let mut sums: BTreeMap<NodeId, wire::Checksums> = BTreeMap::new();
    for node in &client.map().shards[&shard].replicas {
        let channel =
            channel(&connector, &client.map().nodes[node], ChannelSettings::default()).map_err(Failure::new)?;
        let request = wire::GetChecksumsRequest { format: petuum_net::FORMAT, shard: shard.0 };
        match AdminClient::new(channel).get_checksums(request).await {
            Ok(answer) => drop(sums.insert(*node, answer.into_inner())),
            Err(_) => return Ok(None),
        }
    }
    let mut sums = sums.into_iter();
    let Some((first, expected)) = sums.next() else { return Ok(None) };
    for (node, other) in sums {
        if other.index != expected.index {
            return Ok(None);
        }
        if other != expected {
            return Err(Failure::new(format_args!(
                "demo: {shard} differs between {first} and {node} at log index {}",
                expected.index
            )));
        }
    }
    Ok(Some(expected.slots.len()))
}

fn summarize(quiet: &Outcome, rough: &Outcome) {
    line("\n                          without faults   with faults");
    let row = |name: &str, a: String, b: String| line(format_args!("{name:<24}{a:>16}{b:>14}"));
    let (a, b) = (&quiet.report.merged, &rough.report.merged);
    row("test accuracy", format!("{:.4}", quiet.accuracy), format!("{:.4}", rough.accuracy));
    row("seconds per epoch", format!("{:.2}", a.seconds_per_epoch), format!("{:.2}", b.seconds_per_epoch));
    row("longest commit gap, ms", format!("{:.0}", a.longest_commit_gap_ms), format!("{:.0}", b.longest_commit_gap_ms));
    row("messages sent again", a.retries.to_string(), b.retries.to_string());
    row("failovers seen", a.failovers.to_string(), b.failovers.to_string());
}
