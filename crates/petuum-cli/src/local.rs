//! `petuum local`: a whole cluster on this machine.

use crate::nodes::{LocalCluster, Shape};
use crate::output::{Failure, line, note};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// Flags of `petuum local`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Nodes, each a process
    #[arg(long, default_value_t = 3, value_name = "N")]
    nodes: u32,
    /// Shards
    #[arg(long, default_value_t = 8, value_name = "N")]
    shards: u32,
    /// Replicas of each shard [default: 3, or all nodes if there are fewer]
    #[arg(long, value_name = "N")]
    replication: Option<u32>,
    /// Keep the data here and start from it again; without it everything is gone at the end
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The first node's port, the others follow; free ports without it
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

/// Runs a local cluster until Ctrl-C.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let shape = Shape {
        nodes: args.nodes,
        shards: args.shards,
        replication: args.replication,
        data: args.data.clone(),
        port: args.port,
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::new)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::new)?;
    let mut cluster = tokio::select! {
        started = LocalCluster::start(&shape) => started?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let endpoints = cluster.endpoints();
    line(format_args!("A cluster of {} nodes and {} shards is running.", args.nodes, args.shards));
    for (number, endpoint) in (1..).zip(&endpoints) {
        line(format_args!("  node {number}   {endpoint}"));
    }
    if args.data.is_none() {
        line("Its data is gone when it stops; keep it with --data DIR.");
    }
    line("\nTry, in another terminal:");
    line(format_args!("  export PETUUM_ENDPOINTS={}", endpoints.join(",")));
    line("  petuum ctl status");
    line("  petuum train mlr --data examples/data/fashion-mnist-10k --workers 4 --staleness 1");
    line("\nCtrl-C stops it.");
    while cluster.is_running() {
        tokio::select! {
            told = cluster.any_ended() => note(told),
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }
    if !cluster.is_running() {
        return Err(Failure::new("no node runs any more; the reasons are above"));
    }
    note("stopping");
    let stopping = cluster.stop();
    tokio::select! {
        stopped = stopping => stopped?,
        _ = interrupt.recv() => note("stopped at once"),
    }
    Ok(())
}
