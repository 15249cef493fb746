//! The petuum command: `serve`, `local`, `ctl`, `train`, `demo`.
//!
//! The only place with argument parsing, signals and process exits. Everything it does is done by the library crates;
//! what is printed is decided here.

mod config;
mod ctl;
mod demo;
mod endpoints;
mod initial;
mod listing;
mod local;
mod nodes;
mod output;
mod serve;
mod tables;
mod train;
mod training;
mod worker;

use clap::{Parser, Subcommand};
use output::Failure;

/// A parameter server with bounded staleness that loses nothing when a server dies.
#[derive(Debug, Parser)]
#[command(name = "petuum", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one node of a cluster.
    Serve(serve::Args),
    /// Run a whole cluster on this machine, nodes as child processes.
    Local(local::Args),
    /// Operate a cluster: form it, look at it, create jobs and tables, evict workers.
    Ctl(ctl::Args),
    /// Train a model.
    Train(train::Args),
    /// Train while servers and workers are killed, and check that every clock counted once.
    Demo(demo::Args),
    /// One worker process of `train`; started by it.
    #[command(hide = true)]
    Worker(worker::Args),
}

fn main() {
    let cli = Cli::parse();
    output::start_logging();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => output::end(Err(Failure::new(format_args!("no runtime could be started: {error}")))),
    };
    let result = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Local(args) => local::run(args).await,
            Command::Ctl(args) => ctl::run(args).await,
            Command::Train(args) => train::run(args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Worker(args) => worker::run(args).await,
        }
    });
    // A task that is stuck in a system call does not keep the process alive.
    runtime.shutdown_background();
    output::end(result)
}
