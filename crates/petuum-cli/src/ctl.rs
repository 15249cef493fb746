//! `petuum ctl`: operate a cluster.

use crate::endpoints::{Endpoints, seconds};
use crate::listing::{replicas, rows};
use crate::nodes::init;
use crate::output::{Failure, line};
use crate::tables::TableCommand;
use clap::Subcommand;
use petuum_client::Client;
use petuum_types::{GroupId, WorkerId};
use std::time::Duration;

/// Flags of `petuum ctl`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    endpoints: Endpoints,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Form a cluster of nodes that are running and belong to none; the same call again changes nothing
    Init {
        /// Every node as it advertises itself, `host:port,…`; [default: the endpoints]
        #[arg(long, value_delimiter = ',', value_name = "HOST:PORT,…")]
        nodes: Vec<String>,
        /// Shards, 1 to 4096
        #[arg(long, default_value_t = 8)]
        shards: u32,
        /// Replicas of each shard [default: 3, or all nodes if there are fewer]
        #[arg(long)]
        replication: Option<u32>,
    },
    /// Every replica: who leads, how far it is, clocks
    Status,
    /// Jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// A job's tables
    #[command(subcommand)]
    Table(TableCommand),
    /// A job's workers
    #[command(subcommand)]
    Worker(WorkerCommand),
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    /// Create a job
    Create {
        /// Its name
        name: String,
        /// How many workers it has
        #[arg(long)]
        workers: u32,
        /// How long a worker may be silent before it is evicted, in seconds
        #[arg(long, default_value_t = 10, value_parser = seconds())]
        lease: u64,
    },
    /// Every job
    List,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    /// A job's workers
    List {
        /// The job
        job: String,
    },
    /// Remove a worker; the others go on without it
    Evict {
        /// The job
        job: String,
        /// The worker's number
        worker: u32,
    },
}

/// Carries out one command.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let Args { endpoints, command } = args;
    match command {
        Command::Init { nodes, shards, replication } => {
            let nodes = if nodes.is_empty() { endpoints.endpoints } else { nodes };
            let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
            let answer = init(&nodes, shards, replication.unwrap_or_else(|| count.min(3))).await?;
            let what = if answer.existed { "exists already" } else { "is formed" };
            line(format_args!("cluster {} {what}: {count} nodes, {shards} shards", answer.cluster));
            Ok(())
        }
        Command::Status => status(&endpoints.connect().await?).await,
        Command::Job(command) => job(&endpoints.connect().await?, command).await,
        Command::Table(command) => command.run(&endpoints.connect().await?).await,
        Command::Worker(command) => worker(&endpoints.connect().await?, command).await,
    }
}

async fn status(client: &Client) -> Result<(), Failure> {
    line(format_args!("cluster {}, {}", client.cluster_id(), client.map().epoch));
    let mut table = rows(&["NODE", "GROUP", "ROLE", "TERM", "LAST", "APPLIED", "SNAPSHOT", "ROWS", "BYTES", "CLOCKS"]);
    let mut unreachable = Vec::new();
    for (node, address) in &client.map().nodes {
        let replicas = match replicas(address).await {
            Ok(replicas) => replicas,
            Err(failure) => {
                unreachable.push(format!("{node} at {address}: {failure}"));
                continue;
            }
        };
        for replica in replicas {
            let group = GroupId(replica.group).shard().map_or("control".to_owned(), |s| format!("{}", s.0));
            let role = if replica.failure.is_empty() { replica.role } else { format!("failed: {}", replica.failure) };
            let clocks = replica.clocks.iter().map(|c| {
                let most = c.workers.iter().filter(|w| w.live).map(|w| w.clock).max().unwrap_or(c.min_clock);
                format!("job {}: {}..{most}", c.job, c.min_clock)
            });
            table.add_row(vec![
                node.0.to_string(),
                group,
                role,
                replica.term.to_string(),
                replica.last_index.to_string(),
                replica.applied_index.to_string(),
                replica.snapshot_index.to_string(),
                replica.rows.to_string(),
                replica.bytes.to_string(),
                clocks.collect::<Vec<_>>().join(", "),
            ]);
        }
    }
    line(table);
    for missing in &unreachable {
        line(format_args!("unreachable: {missing}"));
    }
    Ok(())
}

async fn job(client: &Client, command: JobCommand) -> Result<(), Failure> {
    match command {
        JobCommand::Create { name, workers, lease } => {
            let job = client.create_job(&name, workers, Some(Duration::from_secs(lease))).await?;
            line(format_args!("{} {name:?}: {workers} workers", job.info().id));
        }
        JobCommand::List => {
            let mut table = rows(&["ID", "NAME", "WORKERS", "LEASE"]);
            for job in client.jobs().await? {
                let lease = humantime::format_duration(job.lease).to_string();
                table.add_row(vec![job.id.0.to_string(), job.name, job.workers.to_string(), lease]);
            }
            line(table);
        }
    }
    Ok(())
}

async fn worker(client: &Client, command: WorkerCommand) -> Result<(), Failure> {
    match command {
        WorkerCommand::List { job } => {
            let mut table = rows(&["WORKER", "PHASE", "INCARNATION", "CLOCK", "LEASE LEFT"]);
            for worker in client.job(&job).await?.workers().await? {
                let left = f64::from(worker.lease_left_ms) / 1000.0;
                let left = if worker.lease_left_ms == 0 { "-".to_owned() } else { format!("{left:.1} s") };
                table.add_row(vec![
                    worker.worker.to_string(),
                    worker.phase,
                    worker.incarnation.to_string(),
                    worker.clock.to_string(),
                    left,
                ]);
            }
            line(table);
        }
        WorkerCommand::Evict { job, worker } => {
            let clock = client.job(&job).await?.evict(WorkerId(worker)).await?;
            line(format_args!("worker {worker} is removed at {clock}"));
        }
    }
    Ok(())
}
