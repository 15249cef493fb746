//! Swarm testing: each seed switches on a few kinds of faults, at a rate of its own, and draws every setting anew, so
//! that what faults hide from each other in one seed shows in another.
//!
//! Source: Groce et al., Swarm Testing, ISSTA 2012.

use std::time::Duration;

use petuum_chaos::Failpoint;
use petuum_client::WorkerOptions;

use super::faults::Kind;
use super::plan::{Clumsy, Drawn, Plan};
use super::setup::{Shape, draw_settings};

/// Kinds that a seed has at least; with fewer than this many, faults could not meet.
const KINDS_MIN: usize = 5;
/// Faults of a run.
const FAULTS: std::ops::RangeInclusive<usize> = 12..=20;

/// What a seed's run is made of.
pub(super) fn draw(random: &mut fastrand::Rng) -> Drawn {
    let nodes = one_of(random, &[1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7]);
    let kinds = draw_kinds(random, nodes);
    let removals = kinds.iter().any(|kind| kind.removes());
    let replication_max = nodes.min(5);
    let replication = if random.u8(..4) == 0 { random.u32(1..=replication_max) } else { nodes.min(3) };
    let lease = if removals { random.u64(2000..=5000) } else { 60_000 };
    let worker = draw_worker(random);
    let latency_max = Duration::from_millis(one_of(random, &[1, 1, 2, 5, 10, 20]));
    let shape = Shape {
        settings: draw_settings(random),
        nodes,
        shards: random.u32(1..=6),
        replication,
        workers: one_of(random, &[1, 2, 3, 4, 4, 5, 6, 7, 8]),
        rivals: kinds.contains(&Kind::Rival),
        staleness: one_of(random, &[0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, u32::MAX]),
        lease: Duration::from_millis(lease),
        removals,
        latency_max,
        sync_latency: (Duration::from_micros(random.u64(100..=500)), Duration::from_millis(random.u64(1..=8))),
        write_buffer_bytes: (64 << 10) << random.u32(0..=4),
        jobs_begin_one_in: random.bool().then(|| random.u32(2..400)),
        skew: draw_skew(random, nodes),
        reader: random.u8(..4) > 0,
        refused: (worker.threads > 1 && random.u8(..4) > 0).then(|| one_of(random, &[16, 64, 200])),
        worker,
        flushes_one_in: one_of(random, &[1, 4, 8, 32]),
        pause_max: Duration::from_micros(one_of(random, &[100, 400, 1500])),
        out_of_step: if random.bool() { 2 * latency_max } else { Duration::ZERO },
    };
    let count = random.usize(FAULTS);
    let faults = (0..count).map(|at| if at < kinds.len() { kinds[at] } else { one_of(random, &kinds) }).collect();
    let clumsy = if random.bool() { Clumsy::Drawn } else { Clumsy::Nowhere };
    Drawn { shape, plan: Plan { faults, clumsy, points: Failpoint::ALL } }
}

fn draw_kinds(random: &mut fastrand::Rng, nodes: u32) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Kind::all().filter(|kind| kind.nodes() <= nodes).collect();
    random.shuffle(&mut kinds);
    kinds.truncate(random.usize(KINDS_MIN..=10));
    // A removed worker's clocks are lost at a clock that only its next session hears of; a second process of the same
    // worker could hear it instead. So a run has one or the other.
    if let Some(first) = kinds.iter().position(|kind| kind.removes() || *kind == Kind::Rival) {
        let removes = kinds[first].removes();
        kinds.retain(|kind| if removes { *kind != Kind::Rival } else { !kind.removes() });
    }
    kinds
}

/// In percent, per node. The worst that clocks can do is one that is slow among others that are fast: a leader there believes
/// for long that it leads.
fn draw_skew(random: &mut fastrand::Rng, nodes: u32) -> Vec<u64> {
    let slow = random.u32(..nodes);
    match random.u8(..4) {
        0 => (0..nodes).map(|_| one_of(random, &[50, 60, 80, 100, 100, 130, 200])).collect(),
        1 => (0..nodes).map(|node| if node == slow { 200 } else { one_of(random, &[50, 60, 80]) }).collect(),
        _ => Vec::new(),
    }
}

fn draw_worker(random: &mut fastrand::Rng) -> WorkerOptions {
    let default = WorkerOptions::default();
    WorkerOptions {
        part_bytes: one_of(random, &[64, 96, 256, default.part_bytes, default.part_bytes]),
        cache_bytes: one_of(random, &[200, 2000, default.cache_bytes, default.cache_bytes]),
        window_clocks: one_of(random, &[0, 1, 4, default.window_clocks, default.window_clocks]),
        threads: one_of(random, &[1, 1, 2, 2, 3]),
        ..default
    }
}

fn one_of<T: Copy>(random: &mut fastrand::Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_between_them_have_every_kind() {
        let drawn: Vec<Drawn> = (0..200).map(|seed| draw(&mut fastrand::Rng::with_seed(seed))).collect();
        for kind in Kind::all() {
            let seeds = drawn.iter().filter(|drawn| drawn.plan.faults.contains(&kind)).count();
            assert!((5..195).contains(&seeds), "{} in {seeds} of 200 seeds", kind.name());
        }
        for Drawn { shape, plan } in &drawn {
            assert!(plan.faults.iter().all(|kind| kind.nodes() <= shape.nodes));
            assert!(shape.replication <= shape.nodes && shape.settings.validate().is_ok());
            assert!(!(shape.rivals && shape.removals));
        }
    }
}
