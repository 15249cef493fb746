//! Saving, purging, and followers that need a snapshot.

use crate::cluster::{Cluster, settings};
use petuum_consensus::Settings;
use petuum_types::LogIndex;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

fn small() -> Settings {
    Settings { snapshot_after_entries: 100, log_kept_entries: 20, snapshot_piece_bytes: 256, ..settings() }
}

fn purged(cluster: &Cluster, at: usize) -> u64 {
    cluster.status(at).purged.map_or(0, |index| index.0)
}

/// Saves and purges everywhere so far that whoever is down needs a snapshot.
fn fill_until_purged(cluster: &Cluster, value: &mut u64, beyond: u64) {
    while (0..cluster.nodes.len()).filter(|at| cluster.runs(*at)).any(|at| purged(cluster, at) <= beyond) {
        cluster.propose_all(*value..*value + 50, 10);
        *value += 50;
    }
}

#[test]
fn logs_are_saved_and_purged_and_enough_is_kept() {
    let cluster = Cluster::start(3, small());
    let mut value = 0;
    fill_until_purged(&cluster, &mut value, 300);
    for at in 0..3 {
        let status = cluster.status(at);
        let (saved, purged) = (status.snapshot_index.unwrap(), status.purged.unwrap());
        assert!(purged.0 + 20 <= saved.0, "{status:?}");
    }
    assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
}

#[test]
fn a_snapshot_is_taken_on_demand() {
    let cluster = Cluster::start(1, settings());
    cluster.propose_all(0..10, 0);
    let applied = cluster.status(0).applied;
    cluster.block(cluster.group(0).trigger_snapshot());
    cluster.until("it is saved", |cluster| cluster.status(0).snapshot_index >= applied);
    assert!(cluster.status(0).snapshot_index > Some(LogIndex(0)));
}

#[test]
fn a_follower_behind_the_purged_log_gets_a_snapshot_in_pieces() {
    let mut cluster = Cluster::start(3, small());
    let dead = cluster.follower();
    cluster.propose_all(0..30, 10);
    cluster.converged();
    cluster.kill(dead);
    let mut value = 30;
    fill_until_purged(&cluster, &mut value, 100);
    let installs = cluster.nodes[dead].probe.installs.load(Ordering::SeqCst);
    cluster.revive(dead);
    assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
    assert!(cluster.nodes[dead].probe.installs.load(Ordering::SeqCst) > installs, "not by snapshot");
    assert!(cluster.status(dead).snapshot_index.is_some());
    // And what it was sent is what it starts from.
    cluster.kill(dead);
    cluster.revive(dead);
    assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
}

/// A leader with a deadline for the whole install would throw the success of a slow one away and send it again.
#[test]
fn an_install_far_slower_than_the_limit_of_silence_is_learnt_as_success() {
    let settings = Settings { install_timeout: Duration::from_millis(800), ..small() };
    let mut cluster = Cluster::start(3, settings);
    let dead = cluster.follower();
    cluster.propose_all(0..10, 10);
    cluster.converged();
    cluster.kill(dead);
    let mut value = 10;
    fill_until_purged(&cluster, &mut value, 100);
    let probe = cluster.nodes[dead].probe.clone();
    probe.install_millis.store(5000, Ordering::SeqCst);
    let installs = probe.installs.load(Ordering::SeqCst);
    cluster.revive(dead);
    let begun = Instant::now();
    assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
    assert!(begun.elapsed() >= Duration::from_secs(4), "the install was not slow");
    assert_eq!(probe.installs.load(Ordering::SeqCst) - installs, 1, "sent more than once");
    probe.install_millis.store(0, Ordering::SeqCst);
}

/// A node that kept only in memory what is purged would not find the beginning of its log.
#[test]
fn every_node_restarts_after_a_purge_again_and_again() {
    let mut cluster = Cluster::start(3, small());
    let mut value = 0;
    for round in 1..=3 {
        fill_until_purged(&cluster, &mut value, round * 150);
        for at in 0..3 {
            let before = purged(&cluster, at);
            cluster.stop(at);
            cluster.revive(at);
            cluster.leader();
            assert!(purged(&cluster, at) >= before);
        }
        assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
    }
}

#[test]
fn a_failed_group_is_rebuilt_from_its_snapshot_and_the_log_behind_it() {
    let cluster = Cluster::start(3, small());
    let follower = cluster.follower();
    let mut value = 0;
    fill_until_purged(&cluster, &mut value, 100);
    let installs = cluster.nodes[follower].probe.installs.load(Ordering::SeqCst);
    cluster.nodes[follower].probe.fail_once.store(true, Ordering::SeqCst);
    cluster.propose_all(value..value + 10, 0);
    cluster.until("it failed", |cluster| !cluster.nodes[follower].probe.fail_once.load(Ordering::SeqCst));
    cluster.until("it is rebuilt", |cluster| {
        cluster.nodes[follower].probe.installs.load(Ordering::SeqCst) > installs
            && cluster.status(follower).failure.is_none()
    });
    assert_eq!(cluster.converged(), (0..value + 10).collect::<Vec<_>>());
}

/// A request stream that is polled after openraft gave it up reads log that is purged, which ends the leader.
#[test]
fn a_follower_that_comes_and_goes_while_the_log_is_purged_harms_no_leader() {
    let harsh = Settings { snapshot_after_entries: 20, log_kept_entries: 0, ..small() };
    let cluster = Cluster::start(3, harsh);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let term = cluster.status(leader).term;
    let mut value = 0;
    for round in 0..8 {
        let cut_at = cluster.status(leader).last_index.unwrap().0;
        cluster.nodes[leader].wires.cut(&cluster.nodes[follower].address);
        while purged(&cluster, leader) <= cut_at {
            cluster.propose_all(value..value + 30, 10);
            value += 30;
        }
        cluster.nodes[leader].wires.heal();
        for _ in 0..round % 3 {
            cluster.propose_all(value..value + 30, 10);
            value += 30;
        }
        let status = cluster.status(leader);
        assert_eq!((status.failure, status.term), (None, term), "round {round}");
    }
    assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
    assert!(cluster.nodes[follower].probe.installs.load(Ordering::SeqCst) > 0, "nothing was purged under it");
    assert_eq!(cluster.nodes[leader].probe.installs.load(Ordering::SeqCst), 0, "the leader was rebuilt");
}
