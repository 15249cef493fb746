//! Defects planted on purpose: each must be found within a number of seeds, or the tests are blind for its rule.

use std::ops::Range;

use petuum_chaos::Mutant;

use super::run::{Scenario, Settings};
use super::seed::{Running, Variant, reason, wait};

/// How a mutant was found.
pub(super) struct Caught {
    pub(super) why: String,
    pub(super) seeds: u64,
}

/// Plants a defect in run after run until one fails.
///
/// # Errors
/// If a run cannot be started.
pub(super) fn hunt(mutant: Mutant, seeds: Range<u64>) -> Result<Option<Caught>, String> {
    let settings = Settings::plain(Scenario::Swarm);
    let first = seeds.start;
    let caught = first_failure(Variant { settings, mutant: Some(mutant) }, seeds)?;
    if let Some(caught) = &caught {
        // Without the defect the same seed must be well, or it was found by something else.
        let seed = first + caught.seeds - 1;
        Running::start(seed, Variant { settings, mutant: None })?.finish()?;
    }
    Ok(caught)
}

/// The first of the seeds, in their order, whose run finds something.
pub(super) fn first_failure(variant: Variant, seeds: Range<u64>) -> Result<Option<Caught>, String> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let first = seeds.start;
    let mut left = seeds;
    let mut running: Vec<Running> = Vec::new();
    loop {
        while running.len() < at_once {
            let Some(seed) = left.next() else { break };
            running.push(Running::start(seed, variant)?);
        }
        if running.is_empty() {
            return Ok(None);
        }
        // In order of seeds, so that the number is the same on every machine.
        let over = running.remove(0);
        let seed = over.seed();
        if let Err(failure) = over.finish()
            && let Some(why) = reason(&failure)
        {
            running.into_iter().for_each(Running::stop);
            return Ok(Some(Caught { why: short(why), seeds: seed - first + 1 }));
        }
        wait();
    }
}

/// What was found, without where and when.
fn short(why: &str) -> String {
    let told = why.split_once("): ").map_or(why, |(_, told)| told);
    let mut short: String = told.chars().take(160).collect();
    if short.len() < told.len() {
        short.push('…');
    }
    short
}
