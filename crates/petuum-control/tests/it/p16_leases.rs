//! P16: leases are a leader's soft state, and never touch a successor.

use crate::harness::{JOB, LEASE_MS, World, refusal};
use petuum_control::{ControlCommand, EvictReason, Leases, Phase};
use petuum_types::{ErrorKind, WorkerId};
use std::time::Duration;

const LEASE: Duration = Duration::from_millis(LEASE_MS);

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_silent_worker_expires_and_one_with_heartbeats_does_not() {
    let mut world = World::new(1, 2);
    let incarnations = world.start();
    let mut leases = Leases::new();
    leases.sync(&world.state, at(0));
    assert!(leases.heartbeat((JOB, WorkerId(0)), incarnations[0], LEASE, at(5_000)));
    assert!(leases.expired(&world.state, at(LEASE_MS - 1)).is_empty());
    assert_eq!(leases.expired(&world.state, LEASE), [(JOB, WorkerId(1), incarnations[1])]);
    assert_eq!(leases.expired(&world.state, at(5_000) + LEASE).len(), 2);
}

#[test]
fn a_heartbeat_after_the_end_of_a_lease_does_not_renew_it() {
    let mut world = World::new(1, 2);
    let incarnations = world.start();
    let mut leases = Leases::new();
    (0..LEASE_MS).step_by(500).for_each(|ms| leases.sync(&world.state, at(ms)));
    assert!(leases.heartbeat((JOB, WorkerId(0)), incarnations[0], LEASE, LEASE - at(1)));
    // Its removal may be on its way to the log: nobody may be told that it lives.
    assert!(!leases.heartbeat((JOB, WorkerId(1)), incarnations[1], LEASE, LEASE));
    assert_eq!(leases.expired(&world.state, LEASE), [(JOB, WorkerId(1), incarnations[1])]);
}

#[test]
fn time_in_which_the_leader_stood_still_counts_for_no_lease() {
    let mut world = World::new(1, 2);
    let incarnations = world.start();
    let mut leases = Leases::new();
    leases.sync(&world.state, at(0));
    // Stopped for many leases; the first heartbeat comes before it has looked again.
    let woken = LEASE * 5;
    assert!(leases.heartbeat((JOB, WorkerId(0)), incarnations[0], LEASE, woken));
    leases.sync(&world.state, woken);
    assert!(leases.expired(&world.state, woken).is_empty());
    // The silent one has what was left of its lease but for the second in which a leader need not look.
    assert_eq!(leases.expired(&world.state, woken + LEASE - at(1_000)), [(JOB, WorkerId(1), incarnations[1])]);
}

#[test]
fn what_is_left_of_a_lease_counts_from_the_last_heartbeat() {
    let mut world = World::new(1, 2);
    let mut leases = Leases::new();
    assert!(leases.left(&world.state, JOB, at(0)).is_empty(), "nobody has a lease before the start");
    let incarnations = world.start();
    leases.sync(&world.state, at(0));
    assert!(leases.heartbeat((JOB, WorkerId(0)), incarnations[0], LEASE, at(400)));
    let left = leases.left(&world.state, JOB, at(1_000));
    assert_eq!(left[&WorkerId(0)], LEASE - at(600));
    assert_eq!(left[&WorkerId(1)], LEASE - at(1_000));
    assert_eq!(leases.left(&world.state, JOB, at(1_000) + LEASE)[&WorkerId(1)], at(0));
}

#[test]
fn lease_of_successor_is_not_touched_by_the_predecessors_expiry() {
    let mut world = World::new(1, 2);
    let incarnations = world.start();
    let mut leases = Leases::new();
    leases.sync(&world.state, at(0));
    let expired = leases.expired(&world.state, LEASE);
    let (job, worker, incarnation) = expired[1];
    // Decided before, logged after the second process has registered.
    let (_, second) = world.register(1);
    assert_eq!(refusal(world.log(ControlCommand::lease_expired(job, worker, incarnation))), ErrorKind::Replaced);
    world.run();
    assert!(matches!(world.phase(1), Phase::Live { incarnation, .. } if incarnation == second));
    // The successor has a full lease from when it is seen to be live, whatever the old lease had left.
    leases.sync(&world.state, LEASE);
    assert!(!leases.expired(&world.state, LEASE + LEASE - at(1)).iter().any(|(_, w, _)| *w == WorkerId(1)));
    // And the replaced process does not keep it alive.
    assert!(leases.heartbeat((JOB, WorkerId(1)), incarnations[1], LEASE, LEASE + at(1)));
    assert!(leases.expired(&world.state, LEASE + LEASE).contains(&(JOB, WorkerId(1), second)));
}

#[test]
fn a_new_control_leader_gives_everybody_a_full_lease() {
    let mut world = World::new(1, 2);
    world.start();
    let mut leases = Leases::new();
    assert!(leases.expired(&world.state, at(1_000_000)).is_empty(), "before the first sync");
    leases.sync(&world.state, at(1_000_000));
    assert!(leases.expired(&world.state, at(1_000_000) + LEASE - at(1)).is_empty());
    assert_eq!(leases.expired(&world.state, at(1_000_000) + LEASE).len(), 2);
}

#[test]
fn workers_that_wait_for_the_start_have_no_lease() {
    let mut world = World::new(1, 2);
    let mut leases = Leases::new();
    let (_, first) = world.register(0);
    world.run();
    leases.sync(&world.state, at(0));
    assert!(leases.expired(&world.state, at(1_000_000)).is_empty());
    world.register(1);
    world.run();
    // At the start each has a full one.
    leases.sync(&world.state, at(1_000_000));
    assert!(leases.expired(&world.state, at(1_000_000) + LEASE - at(1)).is_empty());
    assert!(leases.heartbeat((JOB, WorkerId(0)), first, LEASE, at(1_000_001)));
    assert_eq!(leases.expired(&world.state, at(1_000_000) + LEASE).len(), 1);
}

#[test]
fn only_live_workers_expire() {
    let mut world = World::new(1, 2);
    world.start();
    let mut leases = Leases::new();
    leases.sync(&world.state, at(0));
    world.evict(1, None, EvictReason::Operator);
    world.register(0);
    assert!(leases.expired(&world.state, LEASE).is_empty(), "both are in transition");
}

#[test]
fn an_expiry_logged_twice_removes_once() {
    let mut world = World::new(1, 2);
    let incarnations = world.start();
    let expiry = ControlCommand::lease_expired(JOB, WorkerId(1), incarnations[1]);
    let first = world.log(expiry.clone());
    assert_eq!(world.log(expiry.clone()), first);
    world.run();
    assert_eq!(world.log(expiry.clone()), first);
    // Re-joined since: the old expiry is of the past.
    world.register_as(1, true);
    assert_eq!(refusal(world.log(expiry)), ErrorKind::Replaced);
}
