//! Answers, routes, figures and the end of a session, without a network.

use super::*;
use crate::options::Options;
use petuum_types::map::ShardMap;
use petuum_types::{Generation, Incarnation, Sequence, WorkerId};

const SHARD: ShardId = ShardId(0);

fn core() -> Arc<Core> {
    let nodes = (1..=3).map(|n| (NodeId(n), format!("127.0.0.1:{n}"))).collect();
    let place = Place {
        cluster: Arc::new(Cluster::new(vec!["127.0.0.1:1".into()], Options::default()).unwrap()),
        map: Arc::new(ShardMap::spread(nodes, 1, 3).unwrap()),
        job: JobId(1),
        name: "job".into(),
        workers: 1,
        staleness: Staleness(0),
    };
    let registration = Registration {
        worker: WorkerId(0),
        incarnation: Incarnation(1),
        generation: Generation(1),
        start: Clock(0),
        lease: Duration::from_secs(10),
        removed_at: None,
    };
    Arc::new(Core::new(place, registration, WorkerOptions::default(), Instant::now()))
}

/// Ends a clock that was asked for at `called`, and sends its one message.
fn send_clock(core: &Core, called: Instant) -> Sequence {
    core.tick(0, called, &mut 0).unwrap();
    core.lock().committer.next_message(SHARD).expect("a tick").sequence
}

fn reply(sequence: Sequence, outcome: Outcome) -> wire::MessageReply {
    convert::reply_to_wire(&Reply { shard: SHARD, sequence, outcome }, Clock(0))
}

#[tokio::test]
async fn a_node_that_is_no_longer_asked_does_not_say_where_to_go() {
    let core = core();
    let sequence = send_clock(&core, Instant::now());
    let elsewhere = reply(sequence, Outcome::Retry(Retry::NotLeader { leader: Some(NodeId(3)) }));
    core.on_reply(NodeId(1), &reply(sequence, Outcome::Retry(Retry::NotLeader { leader: Some(NodeId(2)) })));
    assert_eq!(core.lock().routes[&SHARD].node, NodeId(2), "the node that was asked is obeyed");
    assert_eq!(core.lock().committer.next_message(SHARD).expect("sent again").sequence, sequence);
    // The first node's second answer comes late, for what it was sent before.
    core.on_reply(NodeId(1), &elsewhere);
    assert_eq!(core.lock().routes[&SHARD].node, NodeId(2));
    assert!(core.lock().committer.next_message(SHARD).is_none(), "nothing is sent a third time");
    core.on_reply(NodeId(2), &reply(sequence, Outcome::Accepted));
    assert_eq!(core.lock().committer.acked(), Clock(1));
}

#[tokio::test]
async fn what_an_old_route_has_decided_counts() {
    let core = core();
    let sequence = send_clock(&core, Instant::now());
    core.on_reply(NodeId(1), &reply(sequence, Outcome::Retry(Retry::NotLeader { leader: Some(NodeId(2)) })));
    core.on_reply(NodeId(1), &reply(sequence, Outcome::Accepted));
    assert_eq!(core.lock().committer.acked(), Clock(1));
}

#[tokio::test(start_paused = true)]
async fn the_commit_gap_counts_from_the_call_of_clock() {
    let core = core();
    let called = Instant::now();
    // It waits for room, here for five seconds.
    tokio::time::advance(Duration::from_secs(5)).await;
    let sequence = send_clock(&core, called);
    tokio::time::advance(Duration::from_secs(1)).await;
    core.on_reply(NodeId(1), &reply(sequence, Outcome::Accepted));
    assert_eq!(core.report().longest_commit_gap, Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn g8_a_node_that_only_puts_a_shard_off_is_left_for_the_next() {
    let core = core();
    let sequence = send_clock(&core, Instant::now());
    let unheard = reply(sequence, Outcome::Retry(Retry::Unregistered));
    core.on_reply(NodeId(1), &unheard);
    assert_eq!(core.lock().routes[&SHARD].node, NodeId(1));
    tokio::time::advance(core.cluster.options.stall_after).await;
    core.lock().committer.resume(SHARD);
    assert!(core.lock().committer.next_message(SHARD).is_some());
    core.on_reply(NodeId(1), &unheard);
    assert_eq!(core.lock().routes[&SHARD].node, NodeId(2));
}

#[tokio::test]
async fn a_shard_that_stalls_goes_elsewhere_and_only_from_the_node_that_has_it() {
    let core = core();
    let sequence = send_clock(&core, Instant::now());
    core.on_stalled(NodeId(3), SHARD);
    assert_eq!(core.lock().routes[&SHARD].node, NodeId(1));
    core.on_stalled(NodeId(1), SHARD);
    assert_eq!(core.lock().routes[&SHARD].node, NodeId(2));
    assert_eq!(core.lock().committer.next_message(SHARD).expect("sent again").sequence, sequence);
}

#[tokio::test]
async fn a_state_left_half_changed_ends_the_session_with_a_typed_error() {
    let core = core();
    let waiting = tokio::spawn({
        let core = core.clone();
        async move { core.until(|state| state.check().map(|()| None::<()>), |_| "ever".to_owned()).await }
    });
    tokio::task::yield_now().await;
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _state = core.lock();
        panic!("inside the lock");
    }));
    assert!(panicked.is_err());
    assert_eq!(core.tick(0, Instant::now(), &mut 0).unwrap_err().kind(), ErrorKind::Internal);
    // Whoever waited is woken, long before its deadline.
    let woken = tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert_eq!(woken.unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn a_task_that_panics_ends_the_session_with_a_typed_error() {
    let core = core();
    core.clone().watched(async { panic!("a defect") }).await;
    let error = core.lock().check().unwrap_err();
    assert!(error.kind() == ErrorKind::Internal && error.message().contains("register"), "{error}");
}

#[tokio::test]
async fn a_thread_that_has_not_heard_of_an_abort_ends_no_clock() {
    let (core, mut seen) = (core(), 0);
    core.lock().aborts = (1, Some(Error::new(ErrorKind::InvalidArgument, "refused")));
    let error = core.tick(0, Instant::now(), &mut seen).unwrap_err();
    assert_eq!((error.kind(), seen), (ErrorKind::InvalidArgument, 1));
    assert_eq!(core.lock().workspace.clocks().least(), Clock(0), "the next attempt has not begun");
    core.tick(0, Instant::now(), &mut seen).unwrap();
    assert_eq!(core.lock().workspace.clocks().least(), Clock(1));
}
