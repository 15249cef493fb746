//! Elections, proposals, reads, transfers, streams.

use crate::cluster::{CLUSTER, Cluster, GROUP, LONG, settings};
use crate::machine::{entry, sum};
use bytes::Bytes;
use petuum_consensus::{Error, ProposeError, Role, Settings};
use petuum_net::wire;
use petuum_types::NodeId;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Code, Request};

#[test]
fn three_nodes_elect_replicate_in_order_and_answer_with_the_machines_answer() {
    let cluster = Cluster::start(3, settings());
    let leader = cluster.leader();
    assert_eq!(leader, 0, "the node that was initialized campaigned first");
    let group = cluster.group(leader);
    let answers: Vec<_> = (1..=500).map(|value| group.submit(entry(value, 100))).collect();
    let answers = cluster.block(futures::future::try_join_all(answers)).unwrap();
    let sums: Vec<u64> = answers.iter().map(sum).collect();
    assert_eq!(sums, (1..=500u64).map(|n| n * (n + 1) / 2).collect::<Vec<_>>(), "answers in the order of the calls");
    assert_eq!(cluster.converged(), (1..=500).collect::<Vec<_>>());
}

#[test]
fn more_proposals_than_the_queue_holds_keep_their_order() {
    let cluster = Cluster::start(1, Settings { channel_size: 8, ..settings() });
    cluster.propose_all(0..2000, 0);
    assert_eq!(cluster.converged(), (0..2000).collect::<Vec<_>>());
}

/// Those that waited are given room before they are polled again, and later ones find room too.
#[test]
fn proposals_that_waited_for_room_in_the_queue_are_not_overtaken() {
    let cluster = Cluster::start(1, Settings { channel_size: 8, ..settings() });
    let group = cluster.group(cluster.leader());
    let mut next = 0..;
    for _ in 0..20 {
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.extend(next.by_ref().take(12).map(|value| group.submit(entry(value, 0))));
            cluster.pause(Duration::from_millis(5));
        }
        cluster.block(futures::future::try_join_all(answers)).unwrap();
    }
    assert_eq!(cluster.converged(), (0..720).collect::<Vec<_>>());
}

#[test]
fn a_follower_refuses_and_names_the_leader() {
    let cluster = Cluster::start(3, settings());
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let leads = Some(cluster.nodes[leader].id);
    let refused = cluster.block(cluster.group(follower).propose(entry(1, 0))).unwrap_err();
    assert_eq!(refused, ProposeError::NotLeader { leader: leads });
    assert!(!refused.outcome_unknown());
    let refused = cluster.block(cluster.group(follower).read_index()).unwrap_err();
    assert!(matches!(refused, Error::NotLeader { leader, .. } if leader == leads), "{refused}");
    let refused = cluster.block(cluster.group(follower).transfer_leader(NodeId(1))).unwrap_err();
    assert!(matches!(refused, Error::NotLeader { .. }), "{refused}");
}

#[test]
fn initialize_is_idempotent_and_a_second_start_is_refused() {
    let cluster = Cluster::start(3, settings());
    cluster.propose_all(0..3, 0);
    for at in 0..3 {
        cluster.block(cluster.group(at).initialize()).unwrap();
    }
    cluster.propose_all(3..6, 0);
    assert_eq!(cluster.converged(), (0..6).collect::<Vec<_>>());
}

#[test]
fn read_index_contains_what_was_answered_before() {
    let cluster = Cluster::start(3, settings());
    let group = cluster.group(cluster.leader());
    for value in 0..20 {
        cluster.block(group.propose(entry(value, 0))).unwrap();
        let index = cluster.block(group.read_index()).unwrap();
        assert!(group.status().applied.unwrap() >= index);
        assert!(group.status().last_index.unwrap() <= index);
    }
}

#[test]
fn read_index_fails_without_a_majority() {
    let mut cluster = Cluster::start(3, settings());
    let leader = cluster.leader();
    for at in (0..3).filter(|at| *at != leader) {
        cluster.kill(at);
    }
    let group = cluster.group(leader);
    let failed = cluster.block(async { tokio::time::timeout(LONG, group.read_index()).await }).unwrap().unwrap_err();
    assert!(matches!(failed, Error::NoQuorum { .. } | Error::NotLeader { .. }), "{failed}");
}

#[test]
fn leadership_is_handed_over_on_demand_and_changes_are_reported() {
    let cluster = Cluster::start(3, settings());
    let (leader, follower) = (cluster.leader(), cluster.follower());
    cluster.propose_all(0..10, 0);
    let watcher = cluster.group(follower);
    cluster.block(watcher.changed());
    let term = cluster.status(leader).term;
    cluster.block(cluster.group(leader).transfer_leader(cluster.nodes[follower].id)).unwrap();
    cluster.block(async {
        while watcher.status().role != Role::Leader {
            tokio::time::timeout(LONG, watcher.changed()).await.expect("the new leader hears that it leads");
        }
    });
    assert_eq!(cluster.leader(), follower);
    assert!(cluster.status(follower).term > term);
    cluster.propose_all(10..20, 0);
    assert_eq!(cluster.converged(), (0..20).collect::<Vec<_>>());
    let unknown = cluster.block(cluster.group(follower).transfer_leader(NodeId(9))).unwrap_err();
    assert!(matches!(unknown, Error::Refused { .. }), "{unknown}");
}

/// Openraft waits out its backoff inside the request stream, so the RPC is opened after the first request.
#[test]
fn a_peer_that_refuses_connections_is_not_asked_in_a_loop() {
    let mut cluster = Cluster::start(3, Settings { connect_pause: Duration::ZERO, ..settings() });
    let (leader, dead) = (cluster.leader(), cluster.follower());
    cluster.propose_all(0..10, 0);
    cluster.kill(dead);
    let connects = cluster.nodes[leader].wires.connects.clone();
    let before = connects.load(Ordering::SeqCst);
    let end = Instant::now() + Duration::from_secs(3);
    let mut value = 10;
    while Instant::now() < end {
        cluster.propose_all(value..value + 10, 0);
        value += 10;
        cluster.pause(Duration::from_millis(20));
    }
    let attempts = connects.load(Ordering::SeqCst) - before;
    // A heartbeat every 150 ms, and a backoff that grows from 50 to 500 ms.
    assert!((1..120).contains(&attempts), "{attempts} connects to a dead peer in 3 s");
    cluster.revive(dead);
    assert_eq!(cluster.converged(), (0..value).collect::<Vec<_>>());
}

/// The deadline is one of progress; a stream that has nothing to say does not end.
#[test]
fn an_idle_stream_is_not_begun_anew() {
    let cluster = Cluster::start(3, Settings { append_timeout: Duration::from_millis(200), ..settings() });
    let leader = cluster.leader();
    cluster.propose_all(0..10, 0);
    let term = cluster.status(leader).term;
    cluster.pause(Duration::from_secs(2));
    cluster.propose_all(10..20, 0);
    assert_eq!((cluster.leader(), cluster.status(leader).term), (leader, term));
    assert_eq!(cluster.converged(), (0..20).collect::<Vec<_>>());
}

/// A backoff that is not ended by a success would slow every request for the rest of the session.
#[test]
fn a_link_that_healed_is_as_fast_as_before() {
    let cluster = Cluster::start(3, settings());
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let other = 3 - leader - follower;
    let timed = |range: std::ops::Range<u64>| {
        let begun = Instant::now();
        for value in range {
            cluster.propose_all(value..value + 1, 0);
        }
        begun.elapsed()
    };
    let before = timed(0..50);
    cluster.nodes[leader].wires.cut(&cluster.nodes[follower].address);
    cluster.propose_all(50..60, 0);
    cluster.pause(Duration::from_secs(1));
    cluster.nodes[leader].wires.heal();
    cluster.converged();
    // Now the one that was cut off is needed for a majority.
    cluster.nodes[leader].wires.cut(&cluster.nodes[other].address);
    let after = timed(60..110);
    cluster.nodes[leader].wires.heal();
    assert!(after < before * 5 + Duration::from_secs(3), "50 proposals took {before:?}, and {after:?} afterwards");
    assert_eq!(cluster.converged(), (0..110).collect::<Vec<_>>());
}

/// What the follower missed exceeds the transport's limit of one message.
#[test]
fn a_backlog_larger_than_a_message_is_caught_up() {
    let mut cluster = Cluster::start(3, settings());
    let dead = cluster.follower();
    cluster.kill(dead);
    cluster.propose_all(0..100, 256 * 1024);
    // Beyond a frame, below a message.
    cluster.propose_all(100..103, 2 * 1024 * 1024 - 1024);
    cluster.revive(dead);
    assert_eq!(cluster.converged(), (0..103).collect::<Vec<_>>());
    assert_eq!(cluster.nodes[dead].probe.installs.load(Ordering::SeqCst), 0, "from the log, not by snapshot");
}

fn call(cluster: &str, from: u64, group: u32) -> wire::RaftCall {
    wire::RaftCall { cluster: cluster.into(), from, group, record: Bytes::new() }
}

#[test]
fn strangers_and_mistaken_addresses_are_refused() {
    let cluster = Cluster::start(3, settings());
    let term = cluster.status(cluster.leader()).term;
    let address = format!("http://{}", cluster.nodes[1].address);
    let here = CLUSTER.to_string();
    let elsewhere = "0".repeat(31) + "1";
    let refused = |cluster_id: &str, from: u64, to: u64, group: u32, said: wire::RaftCall| {
        let mut request = Request::new(said);
        let metadata = request.metadata_mut();
        metadata.insert("petuum-cluster", cluster_id.parse().unwrap());
        metadata.insert("petuum-from", from.to_string().parse().unwrap());
        metadata.insert("petuum-to", to.to_string().parse().unwrap());
        metadata.insert("petuum-group", group.to_string().parse().unwrap());
        cluster.block(async {
            let mut client = wire::peer_client::PeerClient::connect(address.clone()).await.unwrap();
            client.vote(request).await.unwrap_err()
        })
    };
    let group = GROUP.0;
    let status = refused(&elsewhere, 1, 2, group, call(&elsewhere, 1, group));
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("a request of cluster 0"), "{status}");
    let status = refused(&here, 1, 3, group, call(&here, 1, group));
    assert!(status.message().contains("a request for node 3 came to node 2"), "{status}");
    let status = refused(&here, 2, 2, group, call(&here, 2, group));
    assert!(status.message().contains("two nodes have this id"), "{status}");
    let status = refused(&here, 1, 2, 77, call(&here, 1, 77));
    assert_eq!(status.code(), Code::NotFound);
    let status = refused(&here, 1, 2, group, call(&here, 3, group));
    assert!(status.message().contains("than its envelope"), "{status}");
    let status = refused(&here, 1, 2, group, call(&here, 1, group));
    assert_eq!(status.code(), Code::InvalidArgument, "garbage for a record: {status}");
    assert_eq!(cluster.status(cluster.leader()).term, term, "nobody was impressed");
}
