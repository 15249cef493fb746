//! The runner of checks: `ci` for what every change must pass, `model` for larger models, `sim` and its like for seeds.
//!
//! Exit code 0 if all hold, 1 with a schedule of events, or the seed and its command, if one does not.

use clap::{Args, Parser, Subcommand};
use sim_tests::model::{self, Bounds, Failover, Predecessor};
use sim_tests::scenarios::cli::{self, Action};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Checks of Petuum's protocol.
#[derive(Parser)]
#[command(name = "sim-tests", version, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every model of CI, then its scenarios.
    Ci {
        /// Minutes for the scenarios; a least number of seeds is run whatever it is.
        #[arg(long, default_value_t = 10, value_name = "M")]
        minutes: u64,
        /// Threads of the checker.
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// One model, as large as you say; by default at s = 1 all faults of CI but a repeat in one.
    Model(ModelArgs),
    #[command(flatten)]
    Scenario(Action),
}

#[derive(Args)]
struct ModelArgs {
    /// Staleness of the table.
    #[arg(long, default_value_t = 1)]
    staleness: u32,
    /// Clocks of each worker.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=i64::from(model::CLOCKS_MAX)))]
    clocks: u8,
    /// Each clock's updates lie in one shard.
    #[arg(long)]
    one_shard_clocks: bool,
    /// The workers' first joins are part of the model.
    #[arg(long)]
    joining: bool,
    /// Restarts of worker 0; with the re-joins at most 3.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    takeovers: u8,
    /// Restarts leave the old process running.
    #[arg(long)]
    rival: bool,
    /// Evictions of one worker.
    #[arg(long, default_value_t = 1)]
    evictions: u8,
    /// Which worker.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
    evicted: u8,
    /// How often a removed worker comes back.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    rejoins: u8,
    /// Packets that arrive twice.
    #[arg(long, default_value_t = 0)]
    repeats: u8,
    /// Packets that are lost.
    #[arg(long, default_value_t = 1)]
    losses: u8,
    /// Messages that arrive out of their sequence.
    #[arg(long, default_value_t = 0)]
    early: u8,
    /// Answers of shards take time and are repeated and lost by themselves.
    #[arg(long)]
    answers_travel: bool,
    /// A new control leader: `never`, `restart` or `overlap`.
    #[arg(long, default_value = "never", value_parser = failover)]
    failover: Failover,
    /// Look for a shortest counterexample; takes more memory.
    #[arg(long)]
    shortest: bool,
    /// Threads of the checker.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn failover(name: &str) -> Result<Failover, String> {
    match name {
        "never" => Ok(Failover::Never),
        "restart" => Ok(Failover::Restart),
        "overlap" => Ok(Failover::Overlap),
        other => Err(format!("`{other}`; expected never, restart or overlap")),
    }
}

impl ModelArgs {
    fn bounds(&self) -> Bounds {
        Bounds {
            staleness: self.staleness,
            clocks: self.clocks,
            one_shard_clocks: self.one_shard_clocks,
            joined: !self.joining,
            takeovers: self.takeovers,
            predecessor: if self.rival { Predecessor::Rival } else { Predecessor::Crashed },
            evictions: self.evictions,
            evicted: self.evicted,
            rejoins: self.rejoins,
            repeats: self.repeats,
            losses: self.losses,
            early: self.early,
            answers_travel: self.answers_travel,
            failover: self.failover,
            mutant: None,
        }
    }
}

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let done = match Cli::parse().command {
        Command::Ci { minutes, threads } => ci(Duration::from_secs(60 * minutes), threads, &mut out),
        Command::Scenario(action) => tell(cli::execute(action), &mut out),
        Command::Model(args) => check_all(&[args.bounds()], args.threads, args.shortest, &mut out),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

/// Equal traces, the model check, then seeds for as long as there is time; whether all is well.
fn ci(limit: Duration, threads: usize, out: &mut impl Write) -> std::io::Result<bool> {
    Ok(tell(cli::ci_meta(), out)? && check_all(&model::ci(), threads, false, out)? && tell(cli::ci(limit), out)?)
}

/// The last line; whether all is well.
fn tell(outcome: Result<String, String>, out: &mut impl Write) -> std::io::Result<bool> {
    match &outcome {
        Ok(done) => writeln!(out, "ok {done}")?,
        Err(failure) => writeln!(out, "failed: {failure}")?,
    }
    Ok(outcome.is_ok())
}

/// Checks models one after the other; whether all hold.
fn check_all(models: &[Bounds], threads: usize, shortest: bool, out: &mut impl Write) -> std::io::Result<bool> {
    let (mut steps, mut states, mut seconds) = (0, 0, 0.0);
    for bounds in models {
        match model::check(*bounds, threads, shortest) {
            Ok(report) => {
                let took = report.took.as_secs_f64();
                writeln!(
                    out,
                    "model: {bounds}: {} states ({} unique), depth {}, {took:.1} s",
                    report.steps, report.states, report.depth
                )?;
                (steps, states, seconds) = (steps + report.steps, states + report.states, seconds + took);
            }
            Err(found) => {
                writeln!(out, "model: {bounds}: FAILED: {found}")?;
                return Ok(false);
            }
        }
        out.flush()?;
    }
    writeln!(out, "model: ok, {steps} states ({states} unique) in {seconds:.1} s")?;
    Ok(true)
}
