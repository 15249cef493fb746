//! One golden trace or named test per rule. A line is: shard #sequence kind clock count <acknowledged below.

use super::*;
use petuum_types::message::Kind;
use petuum_types::outcome::{Fence, Outcome, Refusal, Retry};
use petuum_types::{ErrorKind, Sequence};

const S0: ShardId = ShardId(0);
const S1: ShardId = ShardId(1);

fn ok(committer: &mut Committer, shard: ShardId, sequence: u64) -> Vec<Event> {
    committer.on_outcome(shard, Sequence(sequence), &Outcome::Accepted)
}

#[test]
fn p3_ticks_wait_for_every_part_in_every_shard() {
    let mut c = committer(2, 0);
    c.commit(Clock(0), parts(&[(0, 2), (1, 1)])).unwrap();
    assert_eq!(drain(&mut c), ["0 #0 Stage c0 n0 <0", "0 #1 Stage c0 n1 <0", "1 #0 Stage c0 n0 <0"]);
    assert_eq!(ok(&mut c, S0, 0), []);
    assert_eq!(ok(&mut c, S1, 0), []);
    assert!(drain(&mut c).is_empty(), "one part is missing");
    assert_eq!(ok(&mut c, S0, 1), []);
    assert_eq!(drain(&mut c), ["0 #2 Tick c0 n2 <2", "1 #1 Tick c0 n1 <1"]);
    assert_eq!((c.acked(), c.unacked_clocks(), c.unacked_bytes()), (Clock(0), 1, 12));
    assert_eq!(ok(&mut c, S1, 1), [Event::Acknowledged { clock: Clock(0) }]);
    assert_eq!((c.acked(), c.ticked_everywhere(), c.flushed()), (Clock(1), Clock(0), false));
    assert_eq!((c.unacked_clocks(), c.unacked_bytes()), (0, 0));
    assert_eq!(ok(&mut c, S0, 2), [Event::TickedEverywhere { clock: Clock(0) }]);
    assert!(c.flushed());
}

#[test]
fn p3_a_clock_of_one_part_stages_and_ticks_at_once_and_the_others_follow_its_ack() {
    let mut c = committer(3, 0);
    c.commit(Clock(0), parts(&[(1, 1)])).unwrap();
    assert_eq!(drain(&mut c), ["1 #0 StageTick c0 n0 <0"]);
    assert_eq!(ok(&mut c, S1, 0), [Event::Acknowledged { clock: Clock(0) }]);
    assert_eq!(drain(&mut c), ["0 #0 Tick c0 n0 <0", "2 #0 Tick c0 n0 <0"]);
}

#[test]
fn p3_an_empty_clock_ticks_everywhere() {
    let mut c = committer(2, 0);
    c.commit(Clock(0), BTreeMap::new()).unwrap();
    assert_eq!(drain(&mut c), ["0 #0 Tick c0 n0 <0", "1 #0 Tick c0 n0 <0"]);
}

#[test]
fn p3_stages_of_the_next_clock_do_not_wait_for_a_tick_that_is_not_allowed() {
    let mut c = committer(2, 1);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    c.commit(Clock(1), parts(&[(0, 1)])).unwrap();
    // Clock 1 is one part, but shard 0 has not been sent the tick of clock 0: it cannot tick at once.
    assert_eq!(drain(&mut c), ["0 #0 Stage c0 n0 <0", "0 #1 Stage c1 n0 <0", "1 #0 Stage c0 n0 <0"]);
    ok(&mut c, S0, 0);
    ok(&mut c, S0, 1);
    assert!(drain(&mut c).is_empty(), "clock 1 is held everywhere, but ticks go in order");
    ok(&mut c, S1, 0);
    assert_eq!(drain(&mut c), ["0 #2 Tick c0 n1 <2", "0 #3 Tick c1 n1 <2", "1 #1 Tick c0 n1 <1", "1 #2 Tick c1 n0 <1"]);
    assert_eq!(
        ok(&mut c, S0, 3),
        [Event::Acknowledged { clock: Clock(0) }, Event::Acknowledged { clock: Clock(1) }],
        "a shard ticks in order"
    );
}

#[test]
fn p3_nothing_ticks_behind_a_stage_and_tick_that_may_be_refused() {
    let mut c = committer(1, 2);
    c.commit(Clock(0), parts(&[(0, 1)])).unwrap();
    c.commit(Clock(1), parts(&[(0, 1)])).unwrap();
    c.commit(Clock(2), BTreeMap::new()).unwrap();
    assert_eq!(drain(&mut c), ["0 #0 StageTick c0 n0 <0", "0 #1 Stage c1 n0 <0"]);
    ok(&mut c, S0, 1);
    assert!(drain(&mut c).is_empty(), "clock 0 is not acknowledged");
    ok(&mut c, S0, 0);
    assert_eq!(drain(&mut c), ["0 #2 Tick c1 n1 <2", "0 #3 Tick c2 n0 <2"]);
}

#[test]
fn p4_ticked_for_a_part_goes_on_to_the_remaining_ticks() {
    let mut c = committer(2, 0);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    drain(&mut c);
    c.on_outcome(S0, Sequence(0), &Outcome::Ticked);
    assert_eq!(drain(&mut c), ["0 #1 Tick c0 n1 <1", "1 #1 Tick c0 n1 <0"]);
    assert_eq!(c.on_outcome(S0, Sequence(1), &Outcome::Ticked), [Event::Acknowledged { clock: Clock(0) }]);
}

#[test]
fn p4_a_lost_connection_sends_the_same_bytes_again_in_order() {
    let mut c = committer(1, 0);
    c.commit(Clock(0), parts(&[(0, 3)])).unwrap();
    let first: Vec<WorkerMessage> = std::iter::from_fn(|| c.next_message(S0)).collect();
    ok(&mut c, S0, 0);
    ok(&mut c, S0, 2);
    c.on_lost(S0);
    let again: Vec<WorkerMessage> = std::iter::from_fn(|| c.next_message(S0)).collect();
    assert_eq!(again, first[1..2], "also the mark of what was acknowledged when it was first sent");
    assert_eq!(again[0].encode(), first[1].encode());
    assert_eq!((c.counters().retries, c.counters().stages), (1, 3));
    ok(&mut c, S0, 1);
    ok(&mut c, S0, 1);
    assert_eq!(c.counters().repeats, 1);
}

#[test]
fn p4_a_gap_rewinds_once_to_the_first_open_message() {
    let mut c = committer(1, 0);
    c.commit(Clock(0), parts(&[(0, 3)])).unwrap();
    drain(&mut c);
    let gap = |expected| Outcome::Retry(Retry::Gap { expected: Sequence(expected) });
    // Message 1 was lost on its way; 0 was applied, but its answer is not known.
    assert_eq!(c.on_outcome(S0, Sequence(2), &gap(1)), []);
    assert_eq!(drain(&mut c), ["0 #0 Stage c0 n0 <0", "0 #1 Stage c0 n1 <0", "0 #2 Stage c0 n2 <0"]);
    assert_eq!(c.on_outcome(S0, Sequence(1), &gap(0)), []);
    assert!(drain(&mut c).is_empty(), "an answer to an earlier transmission");
    // A shard that expects less than was acknowledged is not caught up yet: no use in sending at once.
    ok(&mut c, S0, 0);
    assert_eq!(
        c.on_outcome(S0, Sequence(2), &gap(0)),
        [Event::Backoff { shard: S0, reason: Retry::Gap { expected: Sequence(0) } }]
    );
    assert!(drain(&mut c).is_empty());
    c.resume(S0);
    assert_eq!(drain(&mut c), ["0 #2 Stage c0 n2 <0"]);
}

#[test]
fn p4_retryable_refusals_pause_the_lane_and_keep_the_bytes() {
    let reasons = [
        Retry::Unregistered,
        Retry::NotLeader { leader: None },
        Retry::ShardBehind { ours: MapEpoch(0) },
        Retry::Busy("full".into()),
        Retry::Unknown("timeout".into()),
    ];
    for reason in reasons {
        let mut c = committer(1, 0);
        c.commit(Clock(0), parts(&[(0, 2)])).unwrap();
        let sent = drain(&mut c);
        let events = c.on_outcome(S0, Sequence(0), &Outcome::Retry(reason.clone()));
        assert_eq!(events, [Event::Backoff { shard: S0, reason: reason.clone() }]);
        assert_eq!(c.on_outcome(S0, Sequence(1), &Outcome::Retry(reason.clone())), [], "told once");
        assert!(drain(&mut c).is_empty());
        assert_eq!(c.waiting_for()[0].reason, Some(reason));
        c.resume(S0);
        assert_eq!(drain(&mut c), sent);
    }
}

#[test]
fn p25_a_later_map_is_reported_and_the_lane_waits() {
    let mut c = committer(1, 0);
    c.commit(Clock(0), parts(&[(0, 2)])).unwrap();
    drain(&mut c);
    let outcome = Outcome::Retry(Retry::MapBehind { ours: MapEpoch(2) });
    let events = c.on_outcome(S0, Sequence(0), &outcome);
    assert_eq!(events, [Event::StaleMap { shard: S0, ours: MapEpoch(2) }]);
    assert!(drain(&mut c).is_empty());
}

#[test]
fn p4_a_fence_ends_the_session_with_what_to_do() {
    let fences = [
        (Fence::Replaced { by: Incarnation(9) }, ErrorKind::Replaced, "incarnation 9 has registered as this worker"),
        (Fence::Removed { at: Clock(4) }, ErrorKind::Evicted, "removed from the job at clock 4"),
        (Fence::OldGeneration { current: Generation(2) }, ErrorKind::OldGeneration, "the job is at generation 2"),
    ];
    for (fence, kind, message) in fences {
        let mut c = committer(1, 1);
        c.commit(Clock(0), parts(&[(0, 1)])).unwrap();
        drain(&mut c);
        let events = c.on_outcome(S0, Sequence(0), &Outcome::Fenced(fence.clone()));
        assert_eq!(events, [Event::Fenced(fence)]);
        c.on_lost(S0);
        assert!(drain(&mut c).is_empty());
        let error = c.commit(Clock(1), BTreeMap::new()).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.message().contains(message), "{error}");
        assert_eq!(c.error(), Some(error));
        assert!(!c.room());
        assert_eq!(ok(&mut c, S0, 0), []);
    }
}

#[test]
fn a_shard_that_refuses_a_tick_ends_the_session_and_no_answer_panics() {
    let mut c = committer(1, 1);
    c.commit(Clock(0), BTreeMap::new()).unwrap();
    drain(&mut c);
    let refusal = Refusal::ClockOrder { expected: Clock(4), got: Clock(0) };
    assert_eq!(ok(&mut c, ShardId(7), 0), []);
    assert_eq!(ok(&mut c, S0, u64::MAX), []);
    let events = c.on_outcome(S0, Sequence(0), &Outcome::Refused(refusal));
    assert!(
        matches!(&events[..], [Event::Failed { message }] if message.contains("shard 0 refused the Tick of clock 0"))
    );
    assert_eq!(c.error().unwrap().kind(), ErrorKind::Internal);
    // A clock that one shard calls ticked while another refuses a part of it.
    let mut c = committer(2, 1);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    drain(&mut c);
    c.on_outcome(S0, Sequence(0), &Outcome::Ticked);
    let events = c.on_outcome(S1, Sequence(0), &Outcome::Refused(Refusal::Malformed("x".into())));
    assert!(matches!(&events[..], [Event::Failed { .. }]));
}

#[test]
fn p5_a_restarted_process_goes_on_at_c_with_sequences_from_0() {
    let start = SessionStart { incarnation: Incarnation(8), ..session(2, 41) };
    let mut c = Committer::new(start, Settings::new(Staleness(0)));
    assert_eq!((c.acked(), c.next_clock(), c.flushed()), (Clock(41), Clock(41), true));
    c.commit(Clock(41), parts(&[(1, 1)])).unwrap();
    let message = c.next_message(S1).unwrap();
    assert_eq!((message.sequence, message.incarnation, message.clock), (Sequence(0), Incarnation(8), Clock(41)));
    assert_eq!((message.kind, c.next_message(S0)), (Kind::StageTick, None));
}

#[test]
fn p6_at_most_min_s_window_plus_one_clocks_wait() {
    for (staleness, window_clocks, window) in [(0, 16, 1), (2, 16, 3), (100, 16, 17), (5, 0, 1)] {
        let settings = Settings { window_clocks, ..Settings::new(Staleness(staleness)) };
        let mut c = Committer::new(session(2, 0), settings);
        for clock in 0..window {
            c.commit(Clock(clock), BTreeMap::new()).unwrap();
        }
        assert!(!c.room());
        let error = c.commit(Clock(window), BTreeMap::new()).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::ResourceExhausted, true));
        drain(&mut c);
        ok(&mut c, S0, 0);
        assert!(c.room(), "the first tick's ack makes room");
    }
}

#[test]
fn p6_unacked_bytes_block_but_one_clock_always_fits() {
    let settings = Settings { unacked_bytes: 100, ..Settings::new(Staleness(9)) };
    let mut c = Committer::new(session(1, 0), settings);
    c.commit(Clock(0), sized(&[(0, 1)], 99)).unwrap();
    c.commit(Clock(1), sized(&[(0, 1)], 99)).unwrap();
    assert!(!c.room());
    assert!(c.commit(Clock(2), BTreeMap::new()).unwrap_err().message().contains("the limits are 10 clocks, 100 bytes"));
}

#[test]
fn p2_a_clock_that_cannot_fit_is_refused_before_anything_is_sent() {
    let settings = Settings { staged_bytes: 1000, ..Settings::new(Staleness(9)) };
    let mut c = Committer::new(session(2, 0), settings);
    let refused = [
        (sized(&[(0, 1), (1, 11)], 100), "1100 bytes of updates for shard 1; the limit is 1000 staged bytes"),
        (sized(&[(0, 1)], 1024 * 1024 + 1), "the limit is 1048576 bytes per part"),
        (parts(&[(2, 1)]), "parts for shard 2, which map epoch 1 does not have"),
    ];
    for (parts, message) in refused {
        let error = c.commit(Clock(0), parts).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidArgument, false));
        assert!(error.message().contains(message), "{error}");
    }
    let error = c.commit(Clock(1), BTreeMap::new()).unwrap_err();
    assert!(error.message().contains("committing clock 1; expected clock 0"), "{error}");
    assert!(drain(&mut c).is_empty());
    assert!(c.flushed());
}

#[test]
fn p2_a_shard_is_never_sent_more_than_it_keeps_staged() {
    let settings = Settings { staged_bytes: 1000, ..Settings::new(Staleness(9)) };
    let mut c = Committer::new(session(1, 0), settings);
    c.commit(Clock(0), sized(&[(0, 2)], 400)).unwrap();
    c.commit(Clock(1), sized(&[(0, 2)], 200)).unwrap();
    assert_eq!(drain(&mut c), ["0 #0 Stage c0 n0 <0", "0 #1 Stage c0 n1 <0", "0 #2 Stage c1 n0 <0"]);
    (0..3).for_each(|sequence| drop(ok(&mut c, S0, sequence)));
    assert_eq!(drain(&mut c), ["0 #3 Tick c0 n2 <3"]);
    ok(&mut c, S0, 3);
    assert_eq!(drain(&mut c), ["0 #4 Stage c1 n1 <4"]);
}

#[test]
fn g10_a_lane_has_bounded_messages_and_bytes_on_their_way() {
    let settings = Settings { lane_in_flight_messages: 2, lane_in_flight_bytes: 500, ..Settings::new(Staleness(9)) };
    let mut c = Committer::new(session(1, 0), settings);
    c.commit(Clock(0), sized(&[(0, 3)], 100)).unwrap();
    c.commit(Clock(1), sized(&[(0, 2)], 600)).unwrap();
    assert_eq!(drain(&mut c).len(), 2);
    ok(&mut c, S0, 1);
    assert!(drain(&mut c).is_empty(), "answers are kept in order: the first is missing");
    ok(&mut c, S0, 0);
    assert_eq!(drain(&mut c), ["0 #2 Stage c0 n2 <2"]);
    ok(&mut c, S0, 2);
    assert_eq!(drain(&mut c), ["0 #3 Tick c0 n3 <3"]);
    ok(&mut c, S0, 3);
    assert_eq!(drain(&mut c), ["0 #4 Stage c1 n0 <4"], "a message larger than the limit goes alone");
}

#[test]
fn whom_a_session_waits_for() {
    let mut c = committer(2, 1);
    assert!(c.waiting_for().is_empty());
    c.commit(Clock(0), parts(&[(0, 1), (1, 2)])).unwrap();
    c.commit(Clock(1), parts(&[(1, 1)])).unwrap();
    let said = |c: &Committer| c.waiting_for().iter().map(Waiting::to_string).collect::<Vec<_>>();
    assert_eq!(said(&c), ["shard 0 for 1 parts from clock 0 on", "shard 1 for 3 parts from clock 0 on"]);
    drain(&mut c);
    ok(&mut c, S0, 0);
    assert_eq!(said(&c), ["shard 1 for 3 parts from clock 0 on"], "shard 0 waits for shard 1 itself");
    c.on_outcome(S1, Sequence(2), &Outcome::Retry(Retry::Busy("full".into())));
    assert_eq!(said(&c), ["shard 1 for 3 parts from clock 0 on (over a limit, try again: full)"]);
    c.on_lost(S1);
    drain(&mut c);
    (0..3).for_each(|sequence| drop(ok(&mut c, S1, sequence)));
    assert_eq!(said(&c), ["shard 0 for the tick of clock 0", "shard 1 for the tick of clock 0"]);
}

#[test]
fn the_state_is_equal_whatever_the_counters_say() {
    let (mut a, mut b) = (committer(1, 0), committer(1, 0));
    for c in [&mut a, &mut b] {
        c.commit(Clock(0), parts(&[(0, 1)])).unwrap();
        drain(c);
    }
    a.on_lost(S0);
    assert_ne!(a, b);
    drain(&mut a);
    assert_eq!(a, b);
    assert_ne!(a.counters().retries, b.counters().retries);
}
