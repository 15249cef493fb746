//! Deaths of a process and of a machine, seen from outside.

use std::time::Duration;

use petuum_sim::disk::{Fault, FileKind, Op, Rule};

use crate::scenario::{Scenario, contains, open};

const COUNT: u64 = 300;

#[test]
fn what_was_acknowledged_survives_deaths() {
    for seed in 1..=3 {
        let mut scenario = Scenario::new(seed, COUNT);
        scenario.run_with_faults();
        assert_eq!(*scenario.acked.borrow(), (0..COUNT).collect::<Vec<_>>());
        let counters = scenario.disk.counters();
        assert_eq!(counters.power_losses, 1);
        let db = open(&scenario.disk).unwrap();
        assert!((0..COUNT).all(|number| contains(&db, number)));
    }
}

#[test]
fn a_lying_disk_is_caught() {
    let mut scenario = Scenario::new(1, COUNT);
    scenario.disk.set_sync_ignored(true);
    scenario.run_with_faults();
    let db = open(&scenario.disk).unwrap();
    let missing = scenario.acked.borrow().iter().filter(|number| !contains(&db, **number)).count();
    assert!(missing > 0, "acknowledged numbers are gone");
}

#[test]
fn a_dead_machine_is_silent_and_a_dead_process_is_not() {
    let mut scenario = Scenario::new(1, COUNT);
    let sim = &mut scenario.simulation;
    sim.run_for(Duration::from_millis(200)).unwrap();
    assert!(sim.is_running("store"));
    sim.lose_power(&["store"]);
    assert!(!sim.is_running("store"));
    let before = scenario.acked.borrow().len();
    assert!(before > 0);
    sim.run_for(Duration::from_secs(2)).unwrap();
    assert_eq!(scenario.acked.borrow().len(), before);
    sim.restore_power(&["store"]);
    sim.run().unwrap();
    assert!(sim.elapsed() > Duration::from_secs(2));
}

#[test]
fn ten_minutes_of_refused_connects_do_not_use_up_the_ports() {
    let mut scenario = Scenario::new(1, 1);
    let sim = &mut scenario.simulation;
    sim.lose_power(&["store"]);
    sim.run_for(Duration::from_secs(590)).unwrap();
    sim.restore_power(&["store"]);
    sim.run().unwrap();
    assert_eq!(scenario.acked.borrow().len(), 1);
}

#[test]
fn a_store_that_ends_with_an_error_ends_the_simulation() {
    let mut scenario = Scenario::new(1, COUNT);
    scenario.disk.inject(Rule::once(Op::Append, FileKind::Manifest, Fault::Enospc));
    let error = scenario.simulation.run_for(Duration::from_secs(1)).unwrap_err();
    assert_eq!(error.seed, 1);
    assert!(error.to_string().contains("injected ENOSPC"), "{error}");
}
