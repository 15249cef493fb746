//! Many seeds, as many at once as there are cores, and whether together they have shown what they are for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use petuum_chaos::{Buggify, Failpoint};

use super::faults::Kind;
use super::report::Report;
use super::run::Scenario;
use super::seed::{self, Stopwatch, Variant};

/// Seeds of a sweep from which on it must have shown everything that is switched on.
const WHOLE: usize = 50;

/// Figures that a swarm's median seed must reach, once a sweep is whole.
const MEDIANS: [(&str, u64); 5] =
    [("clocks-acknowledged", 2000), ("rows-read", 500), ("elections", 5), ("faults", 10), ("kinds-of-faults", 4)];

/// What must have happened somewhere in a whole sweep, besides faults of every kind.
const SOMETIMES: [&str; 10] = [
    "takeovers",
    "rejoins",
    "leaves",
    "repeats",
    "clocks-given-up",
    "latest-reads",
    "snapshots-installed",
    "bytes-lost",
    "torn-logs",
    "replicas-compared",
];

/// Names of all figures that must not be 0 in a whole sweep: faults, failpoints, clumsy places, and what they are for.
fn expected() -> impl Iterator<Item = String> {
    let kinds = Kind::all().map(|kind| kind.name().to_owned());
    let reached = Failpoint::ALL.iter().map(|point| format!("reached:{}", point.name()));
    let clumsy = Buggify::ALL.iter().map(|place| format!("clumsy:{}", place.name()));
    kinds.chain(reached).chain(clumsy).chain(SOMETIMES.map(str::to_owned))
}

/// What to run.
pub(super) struct Sweep {
    pub(super) seeds: Range<u64>,
    pub(super) variant: Variant,
    /// Seeds that are run whatever the limit.
    pub(super) least: u64,
    pub(super) limit: Option<Duration>,
    /// Where what is done is kept, so that a sweep that was ended goes on.
    pub(super) record: Option<PathBuf>,
}

/// Figures of the seeds that were run.
#[derive(Default)]
pub(super) struct Done {
    pub(super) reports: BTreeMap<u64, Report>,
}

impl Sweep {
    /// Runs the seeds in turn until `limit` has passed and at least `least` are done.
    ///
    /// # Errors
    /// The first failure, with the command that repeats it.
    pub(super) fn run(&self) -> Result<Done, String> {
        let begin = Stopwatch::start();
        let mut done = self.record.as_deref().map_or_else(|| Ok(Done::default()), Done::read)?;
        let seeds: Vec<u64> = self.seeds.clone().filter(|seed| !done.reports.contains_key(seed)).collect();
        let in_time = |at: usize| (at as u64) < self.least || self.limit.is_none_or(|limit| begin.elapsed() < limit);
        let runs = seeds.iter().enumerate().take_while(|(at, _)| in_time(*at)).map(|(_, seed)| (*seed, self.variant));
        seed::run_all(runs, |at, report| {
            let (seed, report) = (seeds[at], report?);
            if let Some(record) = &self.record {
                write(record, seed, &report)?;
            }
            done.reports.insert(seed, report);
            Ok(())
        })?;
        Ok(done)
    }
}

impl Done {
    fn read(record: &Path) -> Result<Self, String> {
        if !record.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(record).map_err(|e| format!("{}: {e}", record.display()))?;
        let mut done = Self::default();
        for line in text.lines() {
            let entry =
                line.split_once(' ').and_then(|(seed, report)| Some((seed.parse().ok()?, Report::parse(report)?)));
            let (seed, report) = entry.ok_or_else(|| {
                format!("{}: {line:?}; expected a seed and its figures on each line", record.display())
            })?;
            done.reports.insert(seed, report);
        }
        Ok(done)
    }

    /// The sums of all seeds.
    pub(super) fn total(&self) -> Report {
        let mut total = Report::default();
        self.reports.values().for_each(|report| total.add(report));
        total
    }

    fn median(&self, name: &str) -> u64 {
        let mut values: Vec<u64> = self.reports.values().map(|report| report.get(name)).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    }

    /// The medians that a swarm is judged by.
    pub(super) fn medians(&self) -> String {
        let medians: Vec<String> = MEDIANS.iter().map(|(name, _)| format!("{name}={}", self.median(name))).collect();
        format!("median seed: {}", medians.join(" "))
    }

    /// Whether a sweep that is long enough has shown everything.
    ///
    /// # Errors
    /// What it has not.
    pub(super) fn judge(&self, scenario: Scenario) -> Result<(), String> {
        if scenario != Scenario::Swarm || self.reports.len() < WHOLE {
            return Ok(());
        }
        let total = self.total();
        if let Some(name) = expected().find(|name| total.get(name) == 0) {
            return Err(format!("failed: {name} never happened in {} seeds", self.reports.len()));
        }
        for (name, least) in MEDIANS {
            let median = self.median(name);
            if median < least {
                return Err(format!("failed: the median seed has {name}={median}; expected at least {least}"));
            }
        }
        Ok(())
    }
}

fn write(record: &Path, seed: u64, report: &Report) -> Result<(), String> {
    use std::io::Write;
    let failed = |e: std::io::Error| format!("{}: {e}", record.display());
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(record).map_err(failed)?;
    writeln!(file, "{seed} {report}").map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(figures: &str) -> Report {
        Report::parse(figures).unwrap()
    }

    #[test]
    fn a_record_is_read_back_and_a_broken_one_named() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        write(&record, 7, &report("faults=3")).unwrap();
        write(&record, 9, &report("faults=4")).unwrap();
        let done = Done::read(&record).unwrap();
        assert_eq!((done.total().get("faults"), done.median("faults")), (7, 4));
        std::fs::write(&record, "seven\n").unwrap();
        assert!(Done::read(&record).err().unwrap().contains("expected a seed"));
    }

    #[test]
    fn a_whole_sweep_in_which_a_fault_never_happened_fails() {
        let mut done = Done::default();
        let all: Vec<String> = expected().map(|name| format!("{name}=1")).collect();
        let medians: Vec<String> = MEDIANS.iter().map(|(name, least)| format!("{name}={least}")).collect();
        let whole = format!("{} {}", all.join(" "), medians.join(" "));
        for seed in 0..WHOLE as u64 {
            done.reports.insert(seed, report(&whole));
        }
        done.judge(Scenario::Swarm).unwrap();
        for report in done.reports.values_mut() {
            *report = self::report(&whole.replace("ring=1", "ring=0"));
        }
        assert!(done.judge(Scenario::Swarm).unwrap_err().contains("ring never happened"));
    }
}
