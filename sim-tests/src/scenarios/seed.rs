//! Seeds run in processes of their own: a panic in a host aborts, and a process has no state that another seed left.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::ValueEnum;
use petuum_chaos::Mutant;
use petuum_sim::Trace;

use super::named::Named;
use super::report::Report;
use super::run::{self, Scenario, Settings, VACUOUS};

/// The commit that this was built from; there may have been changes that were not committed.
const COMMIT: &str = env!("SIM_TESTS_COMMIT");
/// A run that takes longer in real time does not end: a seed takes seconds.
const RUN_MAX: Duration = Duration::from_secs(300);
/// Says so. A slow machine does it too, so that it finds no mutant.
const TOO_LONG: &str = "it has not ended";
/// Bytes of a failed run's output that are shown.
const OUTPUT_SHOWN: usize = 6000;
/// Lines of a failed run's history that are shown.
const HISTORY_SHOWN: usize = 25;

/// Which run, and what is different about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) settings: Settings,
    pub(super) mutant: Option<Mutant>,
}

impl Variant {
    pub(super) const fn plain(scenario: Scenario) -> Self {
        Self { settings: Settings::plain(scenario), mutant: None }
    }

    /// A run that has a name.
    pub(super) const fn named(named: &Named) -> Self {
        Self { settings: Settings { named: Some(named.name), ..Settings::plain(named.scenario) }, mutant: None }
    }

    fn arguments(self, seed: u64) -> Vec<String> {
        let scenario = self.settings.scenario.to_possible_value().expect("none is skipped");
        let mut arguments = vec!["run".to_owned(), "--seed".to_owned(), seed.to_string()];
        arguments.extend(["--scenario".to_owned(), scenario.get_name().to_owned()]);
        if !self.settings.fsync {
            arguments.push("--no-fsync".to_owned());
        }
        if let Some(name) = self.settings.named {
            arguments.extend(["--named".to_owned(), name.to_owned()]);
        }
        if let Some(mutant) = self.mutant {
            arguments.extend(["--mutant".to_owned(), mutant.name().to_owned()]);
        }
        arguments
    }

    /// The command that runs a seed of it.
    pub(super) fn command(self, seed: u64) -> Result<Command, String> {
        let this = std::env::current_exe().map_err(|e| format!("this program does not know where it is: {e}"))?;
        let mut command = Command::new(this);
        command.args(self.arguments(seed));
        Ok(command)
    }

    /// How a person repeats it.
    pub(super) fn repeat(self, seed: u64) -> String {
        format!("built from commit {COMMIT}; repeat with: target/debug/sim-tests {}", self.arguments(seed).join(" "))
    }

    /// Where the history of a run is drawn that was not to fail.
    fn failed(self, seed: u64) -> Option<PathBuf> {
        if self.mutant.is_some() || !self.settings.fsync {
            return None;
        }
        let folder = std::env::current_exe().ok()?.parent()?.join("failed-runs");
        std::fs::create_dir_all(&folder).ok()?;
        let name = self.settings.named.unwrap_or("run");
        Some(folder.join(format!("{name}-{:?}-{seed}.html", self.settings.scenario).to_lowercase()))
    }
}

/// Where a run is to be written down.
pub(super) struct Files {
    pub(super) trace: Option<PathBuf>,
    pub(super) html: Option<PathBuf>,
}

/// Runs a seed in this process.
///
/// # Errors
/// What was not as it must be, with the last events.
pub(super) fn run_here(seed: u64, variant: Variant, files: &Files) -> Result<Report, String> {
    let unwritable = |path: &Path, e: &std::io::Error| format!("cannot write {}: {e}", path.display());
    let trace =
        files.trace.as_deref().map(|path| Trace::to_file(path).map_err(|e| unwritable(path, &e))).transpose()?;
    let kept = variant.failed(seed);
    if let Some(file) = files.html.clone().or_else(|| kept.clone()) {
        petuum_sim::draw_if_it_panics(file);
    }
    let outcome = {
        let _planted = variant.mutant.map(petuum_chaos::plant);
        run::run(seed, variant.settings)
    };
    trace.map_or(Ok(()), Trace::finish).map_err(|e| format!("the trace could not be written: {e}"))?;
    if let Some(path) = &files.html {
        let title = format!("{:?}, seed {seed}", variant.settings.scenario);
        std::fs::write(path, outcome.history.html(&title)).map_err(|e| unwritable(path, &e))?;
    }
    outcome.result.map_err(|error| {
        let events = outcome.history.tail(HISTORY_SHOWN).join("\n");
        let title = format!("{:?}, seed {seed}: {error}", variant.settings.scenario);
        let kept = kept.and_then(|file| std::fs::write(&file, outcome.history.html(&title)).ok().map(|()| file));
        let drawn = kept.map_or_else(String::new, |file| format!("drawn in {}\n", file.display()));
        format!("{error}\nlast events:\n{events}\n{drawn}{}", variant.repeat(seed))
    })
}

/// A seed under way in a process of its own.
pub(super) struct Running {
    seed: u64,
    variant: Variant,
    child: Child,
    /// What it says of its errors: a file, because a process that dies of panics in destructors says more than a pipe holds.
    errors: File,
    begun: Stopwatch,
}

impl Running {
    pub(super) fn start(seed: u64, variant: Variant) -> Result<Self, String> {
        let mut command = variant.command(seed)?;
        // A panic inside a host ends in panics of destructors; only the first message says anything.
        command.stdout(Stdio::piped()).env("RUST_BACKTRACE", "0");
        let unwritable = |e: std::io::Error| format!("no temporary file: {e}");
        let errors = tempfile::tempfile().map_err(unwritable)?;
        command.stderr(errors.try_clone().map_err(unwritable)?);
        let child = command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))?;
        Ok(Self { seed, variant, child, errors, begun: Stopwatch::start() })
    }

    pub(super) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it has ended, or must.
    pub(super) fn is_over(&mut self) -> bool {
        self.begun.elapsed() > RUN_MAX || !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it: nobody wants to know any more.
    pub(super) fn stop(mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _reaped = self.child.wait();
    }

    /// The figures that it printed.
    ///
    /// # Errors
    /// What it said instead, and how to repeat it.
    pub(super) fn finish(mut self) -> Result<Report, String> {
        let (seed, repeat) = (self.seed, self.variant.repeat(self.seed));
        while !self.is_over() {
            wait();
        }
        if self.child.try_wait().map_err(|e| format!("seed {seed}: {e}"))?.is_none() {
            self.child.kill().map_err(|e| format!("seed {seed} does not end, and cannot be killed: {e}"))?;
            let _reaped = self.child.wait();
            return Err(format!("seed {seed}: failed: at the end of {RUN_MAX:?} {TOO_LONG}\n{repeat}"));
        }
        let output = self.child.wait_with_output().map_err(|e| format!("seed {seed}: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default();
        if let (true, Some(report)) = (output.status.success(), last.strip_prefix("ok ").and_then(Report::parse)) {
            return Ok(report);
        }
        let mut errors = Vec::new();
        let read = self.errors.rewind().and_then(|()| self.errors.read_to_end(&mut errors));
        read.map_err(|e| format!("seed {seed}: what it said cannot be read: {e}"))?;
        let shown: String = String::from_utf8_lossy(&errors).chars().take(OUTPUT_SHOWN).collect();
        Err(format!("seed {seed}: {}\n{text}\n{shown}{repeat}", output.status))
    }
}

/// Runs seeds, as many at once as there are cores, begun in their order. `over` is told of each when it ends, by its place
/// among them.
///
/// # Errors
/// The first that `over` gives; those under way are ended then.
pub(super) fn run_all(
    runs: impl IntoIterator<Item = (u64, Variant)>,
    mut over: impl FnMut(usize, Result<Report, String>) -> Result<(), String>,
) -> Result<(), String> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut left = runs.into_iter().enumerate();
    let mut running: Vec<(usize, Running)> = Vec::new();
    loop {
        while running.len() < at_once {
            let Some((at, (seed, variant))) = left.next() else { break };
            running.push((at, Running::start(seed, variant)?));
        }
        if running.is_empty() {
            return Ok(());
        }
        while let Some(ended) = running.iter_mut().position(|(_, run)| run.is_over()) {
            let (at, run) = running.remove(ended);
            if let Err(error) = over(at, run.finish()) {
                running.into_iter().for_each(|(_, run)| run.stop());
                return Err(error);
            }
        }
        wait();
    }
}

/// What an oracle or the first assertion has found, in the text of a failed run. A run in which a fault did not happen
/// has failed too, and has found nothing.
pub(super) fn reason(failure: &str) -> Option<&str> {
    let told = failure
        .lines()
        .find(|line| line.contains("failed: at ") && ![VACUOUS, TOO_LONG].iter().any(|no| line.contains(no)));
    told.or_else(|| failure.lines().skip_while(|line| !line.contains("panicked at")).nth(1))
}

#[expect(clippy::disallowed_methods, reason = "waits for a process, outside every simulation")]
pub(super) fn wait() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Real time since a moment: budgets of minutes, outside every simulation.
pub(super) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "budgets are in real time, and no simulation runs here")]
    pub(super) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_found_is_a_reason() {
        let told = "seed 1: exit status: 1\nfailed: at 2s of virtual time (seed 1): a row went back\n";
        assert_eq!(reason(told), Some("failed: at 2s of virtual time (seed 1): a row went back"));
        let asserted =
            "seed 1: signal: 6\n\nthread 'main' panicked at a.rs:1:1:\nassertion failed: a <= b\nnote: run\n";
        assert_eq!(reason(asserted), Some("assertion failed: a <= b"));
        let vacuous = format!("seed 1: exit status: 1\nfailed: at 9s of virtual time (seed 1): {VACUOUS}: retries");
        assert_eq!(reason(&vacuous), None);
        assert_eq!(reason(&format!("seed 1: failed: at the end of 300s {TOO_LONG}\nrepeat")), None);
        assert_eq!(reason("cannot start"), None);
    }
}
