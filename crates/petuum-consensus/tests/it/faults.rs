//! Nodes and machines that fail.

use crate::cluster::{Cluster, LONG, settings};
use crate::machine::entry;
use petuum_consensus::{ProposeError, Role};
use std::sync::atomic::Ordering;

#[test]
fn a_killed_leader_is_succeeded_and_catches_up_when_it_is_back() {
    let mut cluster = Cluster::start(3, settings());
    let first = cluster.leader();
    cluster.propose_all(0..100, 50);
    cluster.kill(first);
    let second = cluster.leader();
    assert_ne!(first, second);
    cluster.propose_all(100..200, 50);
    cluster.revive(first);
    assert_eq!(cluster.converged(), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_stopped_replica_says_so() {
    let mut cluster = Cluster::start(3, settings());
    let follower = cluster.follower();
    let group = cluster.group(follower);
    cluster.block(group.shutdown());
    let status = group.status();
    assert_eq!(status.role, Role::Down);
    assert!(status.failure.unwrap().contains("was stopped"));
    let refused = cluster.block(group.propose(entry(1, 0))).unwrap_err();
    assert!(matches!(refused, ProposeError::Stopped { .. }), "{refused}");
    drop(group);
    cluster.propose_all(0..10, 0);
    cluster.kill(follower);
    cluster.revive(follower);
    assert_eq!(cluster.converged(), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_machine_that_failed_is_rebuilt_from_what_is_stored() {
    let cluster = Cluster::start(3, settings());
    let follower = cluster.follower();
    cluster.propose_all(0..50, 0);
    cluster.nodes[follower].probe.fail_always.store(true, Ordering::SeqCst);
    cluster.propose_all(50..60, 0);
    cluster.until("the failure is seen", |cluster| {
        cluster.status(follower).failure.is_some_and(|failure| failure.contains("told to fail"))
    });
    assert_eq!(cluster.status(follower).role, Role::Down);
    cluster.propose_all(60..70, 0);
    cluster.nodes[follower].probe.fail_always.store(false, Ordering::SeqCst);
    cluster.until("it is rebuilt", |cluster| cluster.status(follower).failure.is_none());
    assert_eq!(cluster.converged(), (0..70).collect::<Vec<_>>());
}

#[test]
fn a_leader_whose_machine_fails_leaves_the_outcome_unknown_and_the_others_go_on() {
    let cluster = Cluster::start(3, settings());
    let leader = cluster.leader();
    cluster.propose_all(0..10, 0);
    cluster.nodes[leader].probe.fail_once.store(true, Ordering::SeqCst);
    let (group, term) = (cluster.group(leader), cluster.status(leader).term);
    let failed = cluster.block(async { tokio::time::timeout(LONG, group.propose(entry(10, 0))).await });
    assert!(failed.expect("it is answered").unwrap_err().outcome_unknown());
    cluster.until("another term, or its own again", |cluster| {
        (0..3).any(|at| cluster.status(at).role == Role::Leader && cluster.status(at).term > term)
    });
    cluster.propose_all(11..20, 0);
    cluster.until("it is rebuilt", |cluster| cluster.status(leader).role != Role::Down);
    let values = cluster.converged();
    let without: Vec<u64> = values.iter().copied().filter(|value| *value != 10).collect();
    assert_eq!(without, (0..10).chain(11..20).collect::<Vec<_>>(), "{values:?}");
}

#[test]
fn a_machine_that_panicked_is_rebuilt_too() {
    let cluster = Cluster::start(3, settings());
    let follower = cluster.follower();
    cluster.propose_all(0..10, 0);
    cluster.nodes[follower].probe.panic_once.store(true, Ordering::SeqCst);
    cluster.propose_all(10..11, 0);
    // With no further entry: openraft alone would not notice.
    cluster.until("it panicked", |cluster| !cluster.nodes[follower].probe.panic_once.load(Ordering::SeqCst));
    assert_eq!(cluster.converged(), (0..11).collect::<Vec<_>>());
}

/// The restart of a single leader, or of everybody.
#[test]
fn all_nodes_killed_at_once_come_back_with_every_answered_entry() {
    for count in [1, 3] {
        let mut cluster = Cluster::start(count, settings());
        let mut value = 0;
        for _ in 0..3 {
            cluster.propose_all(value..value + 100, 10);
            value += 100;
            for at in 0..cluster.nodes.len() {
                cluster.kill(at);
            }
            for at in 0..cluster.nodes.len() {
                cluster.revive(at);
            }
            cluster.leader();
            for at in 0..cluster.nodes.len() {
                cluster.block(cluster.group(at).wait_for_recovery(LONG)).unwrap();
            }
            assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>(), "{count} nodes");
        }
    }
}
