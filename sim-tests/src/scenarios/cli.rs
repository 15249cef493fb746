//! The commands of the scenarios.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use petuum_chaos::{Failpoint, Mutant};
use petuum_sim::meta;

use super::faults::Kind;
use super::mutants;
use super::named::{self, Named};
use super::run::{Scenario, Settings};
use super::seed::{self, Files, Stopwatch, Variant, run_here};
use super::sweep::{Done, Sweep};

/// Seeds that a lying disk must be found within.
const LYING_SEEDS: Range<u64> = 1..11;
/// Seeds whose traces CI compares.
const META_SEEDS: Range<u64> = 1..4;
/// Of the swarm: one that is clumsy, with clocks at different speeds and jobs of the disk held back.
const META_SWARM_SEEDS: Range<u64> = 2..3;
/// Seeds of the swarm that CI runs.
const SWARM_SEEDS: Range<u64> = 1..101;
/// Seeds of the swarm that CI runs at least, whatever its time.
const SWARM_SEEDS_MIN: u64 = 60;
/// Seeds of the first scenario that CI runs.
const FIRST_SEEDS: Range<u64> = 1..51;

/// What to run. Ends in a line `ok …`, or in what failed with the command that repeats it.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// One seed
    Run {
        /// Decides everything
        #[arg(long)]
        seed: u64,
        /// Which faults
        #[arg(long, value_enum, default_value = "swarm")]
        scenario: Scenario,
        /// Write every event there
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
        /// Draw the run there, in one page
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// The disks report syncs and make nothing durable: the run should fail
        #[arg(long)]
        no_fsync: bool,
        /// Give it the shape of this named run
        #[arg(long, value_name = "NAME")]
        named: Option<String>,
        /// Plant this defect: the run should fail
        #[arg(long, value_parser = mutant, value_name = "NAME")]
        mutant: Option<Mutant>,
    },
    /// Many seeds
    Sweep {
        /// First seed, and the one after the last: `1..51`
        #[arg(long, value_parser = seeds, value_name = "A..B")]
        seeds: Range<u64>,
        /// Which faults
        #[arg(long, value_enum, default_value = "swarm")]
        scenario: Scenario,
        /// End after so many minutes, with the seeds done by then
        #[arg(long, value_name = "M")]
        minutes: Option<u64>,
        /// Keep what is done there, and go on from it
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// One seed in two processes: both must write the same trace
    Meta {
        /// The seed
        #[arg(long)]
        seed: u64,
        /// Which faults
        #[arg(long, value_enum, default_value = "swarm")]
        scenario: Scenario,
    },
    /// Defects planted on purpose, each of which must be found
    Mutants {
        /// Only this one
        #[arg(long, value_parser = mutant, value_name = "NAME")]
        name: Option<Mutant>,
        /// Seeds that it must be found within
        #[arg(long, value_parser = seeds, value_name = "A..B", default_value = "1..301")]
        seeds: Range<u64>,
    },
    /// Runs with fixed seeds that found a bug or stand for a report
    Named {
        /// Only this one
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Every kind of fault, where it is made, and what of the real thing it is not
    ListFaults,
    /// Every failpoint and clumsy place, with the rules of its step
    ListFailpoints,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let expected = || format!("{text:?} is no range of seeds; expected two numbers as in 1..51");
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let range = from.parse().map_err(|_| expected())?..to.parse().map_err(|_| expected())?;
    if range.is_empty() { Err(expected()) } else { Ok(range) }
}

fn mutant(name: &str) -> Result<Mutant, String> {
    Mutant::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
        format!("no mutant {name:?}; there are {}", names.join(", "))
    })
}

fn name_of(name: Option<&str>) -> Result<Option<&'static str>, String> {
    name.map(|name| named(name).map(|named| named.name)).transpose()
}

fn named(name: &str) -> Result<&'static Named, String> {
    named::find(name).ok_or_else(|| {
        let names: Vec<&str> = named::all().map(|named| named.name).collect();
        format!("no run is named {name:?}; there are {}", names.join(", "))
    })
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn line(text: &str) {
    println!("{text}");
}

/// Runs a command. The text of its last line: after `ok`, or what failed.
///
/// # Errors
/// What failed, and the command that repeats it.
pub fn execute(action: Action) -> Result<String, String> {
    match action {
        Action::Run { seed, scenario, trace, html, no_fsync, named, mutant } => {
            let named = name_of(named.as_deref())?;
            let variant = Variant { settings: Settings { scenario, fsync: !no_fsync, named }, mutant };
            run_here(seed, variant, &Files { trace, html }).map(|report| report.to_string())
        }
        Action::Sweep { seeds, scenario, minutes, record } => {
            let limit = minutes.map(|minutes| Duration::from_secs(60 * minutes));
            sweep(&Sweep { seeds, variant: Variant::plain(scenario), least: 1, limit, record })
        }
        Action::Meta { seed, scenario } => meta_seeds(seed..seed + 1, scenario),
        Action::Mutants { name: Some(mutant), seeds } => hunt_all(&[mutant], &seeds),
        Action::Mutants { name: None, seeds } => hunt_all(Mutant::ALL, &seeds),
        Action::Named { name: Some(name) } => play(&[named(&name)?]),
        Action::Named { name: None } => play(&named::all().collect::<Vec<_>>()),
        Action::ListFaults => Ok(list_faults()),
        Action::ListFailpoints => Ok(list_failpoints()),
    }
}

/// What CI runs first: seeds whose traces must be equal in two processes.
///
/// # Errors
/// As [`execute`].
pub fn ci_meta() -> Result<String, String> {
    let first = meta_seeds(META_SEEDS, Scenario::First)?;
    Ok(format!("{first}; swarm, {}", meta_seeds(META_SWARM_SEEDS, Scenario::Swarm)?))
}

/// What CI runs of the scenarios besides: a disk that lies until it is caught, a few seeds of the first scenario, runs that
/// have names, then seeds of the swarm.
///
/// # Errors
/// As [`execute`].
pub fn ci(limit: Duration) -> Result<String, String> {
    let begin = Stopwatch::start();
    line(&format!("ok {}", lying_disk(LYING_SEEDS)?));
    let first = Sweep {
        seeds: FIRST_SEEDS,
        variant: Variant::plain(Scenario::First),
        least: FIRST_SEEDS.end,
        limit: None,
        record: None,
    };
    line(&format!("ok {}", sweep(&first)?));
    line(&format!("ok {}", play(&named::all().collect::<Vec<_>>())?));
    let limit = Some(limit.saturating_sub(begin.elapsed()));
    let variant = Variant::plain(Scenario::Swarm);
    sweep(&Sweep { seeds: SWARM_SEEDS, variant, least: SWARM_SEEDS_MIN, limit, record: None })
}

fn sweep(sweep: &Sweep) -> Result<String, String> {
    let begin = Stopwatch::start();
    let done: Done = sweep.run()?;
    let (count, total) = (done.reports.len(), done.total());
    let (real, virtual_seconds) = (begin.elapsed().as_secs_f64(), total.get("virtual-ms") / 1000);
    line(&format!("{count} seeds, {virtual_seconds} virtual seconds, in {real:.0} s; {}", done.medians()));
    done.judge(sweep.variant.settings.scenario)?;
    Ok(total.to_string())
}

/// Runs seeds on disks that make nothing durable, until one is found out.
fn lying_disk(seeds: Range<u64>) -> Result<String, String> {
    let variant = Variant { settings: Settings { fsync: false, ..Settings::plain(Scenario::First) }, mutant: None };
    match mutants::first_failure(variant, seeds.clone())? {
        Some(caught) => Ok(format!("fsync off: caught by \"{}\" after {} seeds", caught.why, caught.seeds)),
        None => Err(format!(
            "fsync off: not caught within seeds {}..{}; lost data would not be seen",
            seeds.start, seeds.end
        )),
    }
}

/// Runs what has a name; what it stands for must have happened.
fn play(runs: &[&Named]) -> Result<String, String> {
    let variant = |named: &Named| Variant::named(named);
    let seeds = runs.iter().map(|named| (named.seed, variant(named)));
    seed::run_all(seeds, |at, report| {
        let (named, report) = (runs[at], report?);
        named.judge(&report).map_err(|e| format!("{}: {e}\n{}", named.name, variant(named).repeat(named.seed)))?;
        line(&format!("{}: {}", named.name, named.about));
        Ok(())
    })?;
    Ok(format!("{} named runs", runs.len()))
}

fn hunt_all(mutants: &[Mutant], seeds: &Range<u64>) -> Result<String, String> {
    let mut missed = Vec::new();
    for mutant in mutants {
        match mutants::hunt(*mutant, seeds.clone())? {
            Some(caught) => {
                line(&format!("{}: caught by \"{}\" after {} seeds", mutant.name(), caught.why, caught.seeds));
            }
            None => {
                line(&format!("{}: missed", mutant.name()));
                missed.push(mutant.name());
            }
        }
    }
    if missed.is_empty() {
        Ok(format!("{} mutants caught", mutants.len()))
    } else {
        Err(format!("missed: {}", missed.join(", ")))
    }
}

fn meta_seeds(seeds: Range<u64>, scenario: Scenario) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let mut texts = Vec::new();
    for seed in seeds {
        let variant = Variant::plain(scenario);
        variant.command(seed)?;
        let command = |trace: &Path| {
            let mut command = variant.command(seed).expect("the same was made before");
            command.arg("--trace").arg(trace).stdout(Stdio::null());
            command
        };
        let equal = meta::run_twice(folder.path(), command)
            .map_err(|error| format!("seed {seed}: {error}\n{}", variant.repeat(seed)))?;
        texts.push(format!("seed {seed}: two processes, {} equal lines, {} bytes", equal.lines, equal.bytes));
    }
    Ok(texts.join("; "))
}

fn list_faults() -> String {
    for kind in Kind::all() {
        line(&format!("{:30} {:24} {}", kind.name(), kind.made(), kind.approximation()));
    }
    line("process-paused                 real processes           petuum-cli, tests/processes/pauses.rs");
    line("cpu-starved                    real processes           petuum-cli, tests/starvation");
    format!("{} kinds of faults", Kind::all().count())
}

fn list_failpoints() -> String {
    for point in Failpoint::ALL {
        line(&format!("{:30} {:10} {}", point.name(), point.rules(), point.place()));
    }
    for place in petuum_chaos::Buggify::ALL {
        line(&format!("{:30} {:10} clumsy: {}", place.name(), place.rules(), place.clumsiness()));
    }
    format!("{} failpoints, {} clumsy places", Failpoint::ALL.len(), petuum_chaos::Buggify::ALL.len())
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
    fn mutants_are_found_by_name() {
        assert_eq!(mutant(Mutant::ALL[0].name()), Ok(Mutant::ALL[0]));
        assert!(mutant("none").unwrap_err().contains(Mutant::ALL[1].name()));
    }
}
