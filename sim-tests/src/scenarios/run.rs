//! One run: a shape and a plan from the seed, faults, then peace, then the figures.

use petuum_sim::Error;
use petuum_sim::history::What;

use super::faults::{Faults, Kind};
use super::plan::Clumsy;
use super::report::{Report, Work};
use super::setup;
use super::stage::Stage;
use super::{first, named, peace, swarm};

/// Begins what is said of a run in which something that it is for did not happen.
pub(super) const VACUOUS: &str = "the run shows nothing";

/// A kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// Five kinds of faults, each once
    First,
    /// Any kinds of faults, at any rate
    Swarm,
}

/// How a run differs from others of its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which.
    pub scenario: Scenario,
    /// Whether disks make durable what they say they do.
    pub fsync: bool,
    /// The name of the run that it is, which may give it another shape.
    pub named: Option<&'static str>,
}

impl Settings {
    /// A run as its seed draws it, on disks that work.
    pub(super) const fn plain(scenario: Scenario) -> Self {
        Self { scenario, fsync: true, named: None }
    }
}

/// The outcome of a run, with its history.
pub struct Outcome {
    /// Figures, or what was not as it must be.
    pub result: Result<Report, Error>,
    /// What happened.
    pub history: petuum_sim::History,
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64, settings: Settings) -> Outcome {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = match settings.scenario {
        Scenario::First => first::draw(&mut random),
        Scenario::Swarm => swarm::draw(&mut random),
    };
    if let Some(named) = settings.named.and_then(named::find) {
        (named.shape)(&mut drawn);
    }
    tracing::info!(shape = ?drawn.shape, "a run");
    let (mut stage, made) = match setup::begin(seed, &drawn.shape, &mut random) {
        Ok(begun) => begun,
        Err(error) => return Outcome { result: Err(error), history: petuum_sim::History::new() },
    };
    let history = stage.cluster.history().clone();
    if !settings.fsync {
        stage.cluster.ignore_syncs();
    }
    match drawn.plan.clumsy {
        Clumsy::Nowhere => {}
        Clumsy::Drawn => stage.cluster.failpoints().buggify(random.u64(..)),
        Clumsy::At(places) => stage.cluster.failpoints().buggify_at(random.u64(..), places),
    }
    let mut faults = Faults::new(random.u64(..), drawn.plan.faults, drawn.plan.points);
    let done = faults.run(&mut stage).and_then(|()| peace::make(&mut stage, &made));
    let result = done.and_then(|()| judge(settings.scenario, &stage, &faults));
    if let Err(error) = &result {
        history.note(stage.elapsed(), "runner", What::Broken { message: error.to_string() });
    }
    Outcome { result, history }
}

/// A run of the first scenario must have had all that it is for; a swarm is judged as a whole.
fn judge(scenario: Scenario, stage: &Stage, faults: &Faults) -> Result<Report, Error> {
    let report = report(stage, faults);
    let missing = match scenario {
        Scenario::First => report.missing(Kind::FIRST.iter().map(|kind| kind.name())),
        Scenario::Swarm => None,
    };
    match missing {
        None => Ok(report),
        Some(name) => Err(stage.cluster.error(format!("{VACUOUS}: {name} is 0 in {report}"))),
    }
}

fn report(stage: &Stage, faults: &Faults) -> Report {
    let shared = stage.handle.borrow();
    let mut report = Report::default();
    let mut work = Work::default();
    shared.work.values().for_each(|of_session| work += *of_session);
    report.count("runs", 1);
    report.count("virtual-ms", u64::try_from(stage.elapsed().as_millis()).unwrap_or(u64::MAX));
    report.count("clocks-acknowledged", (0..stage.workers).map(|worker| stage.acked(worker)).sum());
    report.count("rows-checked", shared.oracle.reads());
    report.count("rows-read", work.rows_read);
    report.count("retries", work.retries);
    report.count("repeats", work.repeats);
    report.count("failovers", work.failovers);
    report.count("takeovers", shared.takeovers);
    report.count("rejoins", shared.rejoins);
    report.count("leaves", shared.leaves);
    report.count("latest-reads", shared.latest_reads);
    report.count("clocks-given-up", shared.given_up);
    report.count("workers-unjudged", shared.oracle.unjudged() as u64);
    // Each group's first leader is not due to a fault.
    report.count("elections", stage.invariants.terms().saturating_sub(u64::from(stage.shards) + 1));
    report.count("replicas-compared", stage.invariants.compared());
    for disk in stage.cluster.disks() {
        report.count("bytes-lost", disk.bytes_lost);
        report.count("torn-logs", disk.torn_tails);
        report.count("disk-errors", disk.injected);
    }
    let happened = faults.happened();
    for (kind, count) in &happened {
        report.count(kind.name(), *count);
        report.count("faults", *count);
    }
    report.count("kinds-of-faults", happened.len() as u64);
    let reached = stage.cluster.failpoints().reached();
    let installed = reached.get(&petuum_chaos::Failpoint::InstallAfter).copied().unwrap_or(0);
    report.count("snapshots-installed", installed);
    for (point, count) in reached {
        report.count(&format!("reached:{}", point.name()), count);
    }
    for (point, count) in faults.struck() {
        report.count(&format!("struck:{}", point.name()), *count);
    }
    for (place, count) in stage.cluster.failpoints().clumsy() {
        report.count(&format!("clumsy:{}", place.name()), count);
    }
    report
}
