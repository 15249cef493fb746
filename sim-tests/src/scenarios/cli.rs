//! The commands of the scenarios. Each seed of a sweep is run in a process of its own: a panic in a host aborts, and a
//! process has no state that another seed left.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use petuum_sim::{Trace, meta};

use super::first;
use super::report::Report;

/// Seeds that a lying disk must be found within.
const LYING_SEEDS: Range<u64> = 1..11;
/// Seeds whose traces CI compares.
const META_SEEDS: Range<u64> = 1..4;
/// Seeds that CI runs at least, whatever its time.
const SEEDS_MIN: u64 = 50;
/// A run that takes longer in real time does not end: a seed takes seconds.
const RUN_MAX: Duration = Duration::from_secs(180);
/// Bytes of a failed run's output that are shown.
const OUTPUT_SHOWN: usize = 4000;

/// What to run. Ends in a line `ok …`, or in what failed with the command that repeats it.
#[derive(Debug, clap::Subcommand)]
pub enum Scenario {
    /// One seed
    Run {
        /// Decides everything
        #[arg(long)]
        seed: u64,
        /// Write every event there
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
        /// The disks report syncs and make nothing durable: the run should fail
        #[arg(long)]
        no_fsync: bool,
    },
    /// Many seeds
    Sweep {
        /// First seed, and the one after the last: `1..51`
        #[arg(long, value_parser = seeds, value_name = "A..B")]
        seeds: Range<u64>,
        /// End after so many minutes, with the seeds done by then
        #[arg(long, value_name = "M")]
        minutes: Option<u64>,
    },
    /// One seed in two processes: both must write the same trace
    Meta {
        /// The seed
        #[arg(long)]
        seed: u64,
    },
    /// One seed, or with none a sweep of 200
    Sim {
        /// Only this one
        #[arg(long)]
        seed: Option<u64>,
    },
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let expected = || format!("{text:?} is no range of seeds; expected two numbers as in 1..51");
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let range = from.parse().map_err(|_| expected())?..to.parse().map_err(|_| expected())?;
    if range.is_empty() { Err(expected()) } else { Ok(range) }
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn line(text: &str) {
    println!("{text}");
}

/// Runs a command. The text of its last line: after `ok`, or what failed.
///
/// # Errors
/// What failed, and the command that repeats it.
pub fn execute(scenario: Scenario) -> Result<String, String> {
    match scenario {
        Scenario::Run { seed, trace, no_fsync } => run(seed, trace.as_deref(), !no_fsync),
        Scenario::Sweep { seeds, minutes } => {
            let limit = minutes.map(|minutes| Duration::from_secs(60 * minutes));
            sweep(seeds, 1, limit).map(|report| report.to_string())
        }
        Scenario::Meta { seed } => meta_seeds(seed..seed + 1),
        Scenario::Sim { seed: Some(seed) } => run(seed, None, true),
        Scenario::Sim { seed: None } => sweep(1..201, 1, None).map(|report| report.to_string()),
    }
}

/// What CI runs of the scenarios: traces of a few seeds twice, a disk that lies until it is caught, then as many seeds
/// as there is time for.
///
/// # Errors
/// As [`execute`].
pub fn ci(limit: Duration) -> Result<String, String> {
    let begin = Stopwatch::start();
    line(&format!("ok {}", meta_seeds(META_SEEDS)?));
    line(&format!("ok {}", lying_disk(LYING_SEEDS)?));
    let left = limit.saturating_sub(begin.elapsed());
    sweep(1..10_001, SEEDS_MIN, Some(left)).map(|report| report.to_string())
}

fn run(seed: u64, trace: Option<&Path>, fsync: bool) -> Result<String, String> {
    let trace = trace.map(|path| Trace::to_file(path).map_err(|e| format!("cannot write {}: {e}", path.display())));
    let trace = trace.transpose()?;
    let outcome = first::run(seed, fsync);
    trace.map_or(Ok(()), Trace::finish).map_err(|e| format!("the trace could not be written: {e}"))?;
    outcome.map(|report| report.to_string()).map_err(|error| error.to_string())
}

/// Runs seeds in turn, several at once, until `limit` has passed and at least `least` are done. The sums of all.
fn sweep(seeds: Range<u64>, least: u64, limit: Option<Duration>) -> Result<Report, String> {
    let begin = Stopwatch::start();
    let mut total = Report::default();
    let at_once = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let mut next = seeds.start;
    while next < seeds.end {
        let done = next - seeds.start;
        if done >= least && limit.is_some_and(|limit| begin.elapsed() >= limit) {
            break;
        }
        let end = seeds.end.min(next + at_once);
        let runs: Vec<_> = (next..end).map(|seed| Ok((seed, start(seed, true)?))).collect::<Result<_, String>>()?;
        for (seed, child) in runs {
            total.add(&finish(seed, child)?);
        }
        next = end;
    }
    line(&format!("{} seeds, {}..{next}, in {:.0} s", next - seeds.start, seeds.start, begin.elapsed().as_secs_f64()));
    Ok(total)
}

/// Runs seeds on disks that make nothing durable, until one is found out.
fn lying_disk(seeds: Range<u64>) -> Result<String, String> {
    for seed in seeds.clone() {
        let Err(caught) = start(seed, false).and_then(|child| finish(seed, child)) else { continue };
        if let Some(why) = reason(&caught) {
            return Ok(format!("fsync off: caught by \"{why}\" after {} seeds", seed - seeds.start + 1));
        }
    }
    Err(format!("fsync off: not caught within seeds {}..{}; lost data would not be seen", seeds.start, seeds.end))
}

/// What an oracle or the first assertion has found, in the text of a failed run. A run in which a fault did not happen
/// has failed too, and has found nothing.
fn reason(failure: &str) -> Option<&str> {
    let told = failure.lines().find(|line| line.starts_with("failed: at ") && !line.contains(first::VACUOUS));
    told.or_else(|| failure.lines().skip_while(|line| !line.contains("panicked at")).nth(1))
}

fn meta_seeds(seeds: Range<u64>) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let this = this_program()?;
    let mut texts = Vec::new();
    for seed in seeds {
        let command = |trace: &Path| {
            let mut command = Command::new(&this);
            command.args(["run", "--seed", &seed.to_string(), "--trace"]).arg(trace).stdout(Stdio::null());
            command
        };
        let equal = meta::run_twice(folder.path(), command);
        let equal =
            equal.map_err(|error| format!("seed {seed}: {error}\nrepeat with: sim-tests meta --seed {seed}"))?;
        texts.push(format!("seed {seed}: two processes, {} equal lines, {} bytes", equal.lines, equal.bytes));
    }
    Ok(texts.join("; "))
}

fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|e| format!("this program does not know where it is: {e}"))
}

/// Starts a run of one seed in a process of its own.
fn start(seed: u64, fsync: bool) -> Result<Child, String> {
    let mut command = Command::new(this_program()?);
    command.args(["run", "--seed", &seed.to_string()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A panic inside a host ends in panics of destructors; only the first message says anything.
    command.env("RUST_BACKTRACE", "0");
    if !fsync {
        command.arg("--no-fsync");
    }
    command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))
}

/// The figures that a run printed.
fn finish(seed: u64, mut child: Child) -> Result<Report, String> {
    let begin = Stopwatch::start();
    while child.try_wait().map_err(|e| format!("seed {seed}: {e}"))?.is_none() {
        if begin.elapsed() > RUN_MAX {
            child.kill().map_err(|e| format!("seed {seed} does not end, and cannot be killed: {e}"))?;
            let _reaped = child.wait();
            return Err(format!(
                "seed {seed} has not ended after {RUN_MAX:?}\nrepeat with: sim-tests run --seed {seed}"
            ));
        }
        wait();
    }
    let output = child.wait_with_output().map_err(|e| format!("seed {seed}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    if let (true, Some(report)) = (output.status.success(), last.strip_prefix("ok ").and_then(Report::parse)) {
        return Ok(report);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let shown: String = errors.chars().take(OUTPUT_SHOWN).collect();
    Err(format!("seed {seed}: {}\n{last}\n{shown}repeat with: sim-tests run --seed {seed}", output.status))
}

#[expect(clippy::disallowed_methods, reason = "waits for a process, outside every simulation")]
fn wait() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Real time since a moment: budgets of minutes, outside every simulation.
struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "budgets are in real time, and no simulation runs here")]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_seeds_are_read() {
        assert_eq!(seeds("1..51"), Ok(1..51));
        for wrong in ["", "5", "5..5", "9..2", "a..b"] {
            assert!(seeds(wrong).unwrap_err().contains("expected two numbers"), "{wrong}");
        }
    }

    #[test]
    fn only_what_was_found_is_a_reason() {
        let told = "seed 1: exit status: 1\nfailed: at 2s of virtual time (seed 1): a row went back\n";
        assert_eq!(reason(told), Some("failed: at 2s of virtual time (seed 1): a row went back"));
        let asserted =
            "seed 1: signal: 6\n\nthread 'main' panicked at a.rs:1:1:\nassertion failed: a <= b\nnote: run\n";
        assert_eq!(reason(asserted), Some("assertion failed: a <= b"));
        let vacuous =
            format!("seed 1: exit status: 1\nfailed: at 9s of virtual time (seed 1): {}: retries", first::VACUOUS);
        assert_eq!(reason(&vacuous), None);
        assert_eq!(reason("cannot start"), None);
    }
}
