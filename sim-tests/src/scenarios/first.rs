//! The first scenario: every kind of fault that a user meets, once, in an order and at times from the seed, under the
//! unit-vector oracle; then peace, in which all workers must finish and all replicas be equal.

use std::time::Duration;

use petuum_client::WorkerOptions;

use super::faults::Kind;
use super::plan::{Clumsy, Drawn, Plan};
use super::setup::{Shape, draw_settings};

/// Longer than any fault keeps a worker away: none is removed.
const LEASE: Duration = Duration::from_secs(30);

/// What a seed's run is made of.
pub(super) fn draw(random: &mut fastrand::Rng) -> Drawn {
    let shape = Shape {
        settings: draw_settings(random),
        nodes: if random.u8(..4) == 0 { 4 } else { 3 },
        shards: if random.u8(..4) == 0 { random.u32(5..=8) } else { random.u32(2..=4) },
        replication: 3,
        workers: random.u32(2..=3),
        rivals: false,
        staleness: random.u32(0..=2),
        lease: LEASE,
        removals: false,
        latency_max: Duration::from_millis(random.u64(1..=10)),
        sync_latency: (Duration::from_micros(500), Duration::from_millis(2)),
        write_buffer_bytes: 64 << 20,
        jobs_begin_one_in: None,
        skew: Vec::new(),
        worker: WorkerOptions::default(),
        reader: false,
        refused: None,
        flushes_one_in: 8,
        pause_max: Duration::from_millis(20),
        out_of_step: Duration::ZERO,
    };
    let plan = Plan { faults: Kind::FIRST.to_vec(), clumsy: Clumsy::Nowhere, points: &[] };
    Drawn { shape, plan }
}
