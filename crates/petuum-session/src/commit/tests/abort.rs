//! P4: a refused part gives up its clock and those queued behind it, everywhere, before any tick.

use super::*;
use petuum_types::outcome::{Outcome, Refusal};
use petuum_types::{ErrorKind, Sequence, TableId};

const S0: ShardId = ShardId(0);
const S1: ShardId = ShardId(1);

fn refusal(table: u32) -> Refusal {
    Refusal::UnknownTable { table: TableId(table) }
}

fn refuse(c: &mut Committer, shard: ShardId, sequence: u64, table: u32) -> Vec<Event> {
    c.on_outcome(shard, Sequence(sequence), &Outcome::Refused(refusal(table)))
}

fn ok(c: &mut Committer, shard: ShardId, sequence: u64) -> Vec<Event> {
    c.on_outcome(shard, Sequence(sequence), &Outcome::Accepted)
}

#[test]
fn p4_every_shard_that_was_sent_a_part_is_sent_an_abort_and_nothing_new_before_all_acks() {
    let mut c = committer(3, 0);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    drain(&mut c);
    assert_eq!(refuse(&mut c, S1, 0, 9), []);
    assert_eq!(c.aborting(), Some((Clock(0), &refusal(9))));
    // Shard 0 has not answered its part: the abort goes behind it all the same. Shard 2 has had nothing.
    assert_eq!(drain(&mut c), ["0 #1 Abort c0 n0 <0", "1 #1 Abort c0 n0 <1"]);
    assert!(!c.room());
    let error = c.commit(Clock(0), BTreeMap::new()).unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    assert!(error.message().contains("clock 0 was refused"), "{error}");
    assert_eq!(c.waiting_for()[1].to_string(), "shard 1 for the abort of clock 0");
    assert_eq!(ok(&mut c, S1, 1), []);
    assert!(!c.flushed());
    let aborted = Event::Aborted { clock: Clock(0), end: Clock(1), refusal: refusal(9) };
    assert_eq!(ok(&mut c, S0, 1), [aborted]);
    assert!(c.flushed() && c.room());
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    // Behind the message of the first attempt that shard 0 has not answered.
    assert_eq!(drain(&mut c), ["0 #2 Stage c0 n0 <0", "1 #2 Stage c0 n0 <2"]);
}

#[test]
fn p4_answers_to_a_clock_given_up_do_not_count_for_the_next_attempt() {
    let mut c = committer(2, 0);
    c.commit(Clock(0), parts(&[(0, 2), (1, 1)])).unwrap();
    drain(&mut c);
    refuse(&mut c, S0, 1, 1);
    drain(&mut c);
    ok(&mut c, S0, 2);
    assert_eq!(ok(&mut c, S1, 1).len(), 1);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    assert_eq!(drain(&mut c), ["0 #3 Stage c0 n0 <0", "1 #2 Stage c0 n0 <0"]);
    // Late: the first attempt's part in shard 0 was taken, the one in shard 1 refused too.
    assert_eq!(ok(&mut c, S0, 0), []);
    assert_eq!(refuse(&mut c, S1, 0, 2), []);
    assert_eq!(c.aborting(), None);
    ok(&mut c, S0, 3);
    assert!(drain(&mut c).is_empty(), "shard 1's part of this attempt is not acknowledged");
    ok(&mut c, S1, 2);
    assert_eq!(drain(&mut c), ["0 #4 Tick c0 n1 <4", "1 #3 Tick c0 n1 <3"]);
}

#[test]
fn p4_a_repeat_of_a_clock_given_up_may_be_answered_ticked_later() {
    let mut c = committer(2, 0);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    drain(&mut c);
    refuse(&mut c, S0, 0, 1);
    drain(&mut c);
    ok(&mut c, S0, 1);
    ok(&mut c, S1, 1);
    c.commit(Clock(0), BTreeMap::new()).unwrap();
    drain(&mut c);
    ok(&mut c, S1, 2);
    assert_eq!(c.on_outcome(S1, Sequence(0), &Outcome::Ticked), [], "the first attempt's part, heard of only now");
    assert_eq!(ok(&mut c, S0, 2), [Event::TickedEverywhere { clock: Clock(0) }]);
}

#[test]
fn p4_later_clocks_go_with_a_refused_one_and_earlier_ones_go_on() {
    let mut c = committer(2, 3);
    c.commit(Clock(0), parts(&[(0, 1), (1, 1)])).unwrap();
    c.commit(Clock(1), parts(&[(0, 1), (1, 1)])).unwrap();
    c.commit(Clock(2), parts(&[(1, 1)])).unwrap();
    drain(&mut c);
    c.commit(Clock(3), parts(&[(0, 1)])).unwrap();
    refuse(&mut c, S0, 1, 1);
    assert_eq!(c.next_clock(), Clock(1));
    // Clock 3 was never sent: nothing to abort.
    assert_eq!(drain(&mut c), ["0 #2 Abort c1 n0 <0", "1 #3 Abort c1 n0 <0", "1 #4 Abort c2 n0 <0"]);
    ok(&mut c, S0, 0);
    ok(&mut c, S1, 0);
    assert_eq!(drain(&mut c), ["0 #3 Tick c0 n1 <2", "1 #5 Tick c0 n1 <1"], "clock 0 is not touched");
    ok(&mut c, S0, 2);
    ok(&mut c, S1, 4);
    assert_eq!(ok(&mut c, S1, 3), [Event::Aborted { clock: Clock(1), end: Clock(4), refusal: refusal(1) }]);
    c.commit(Clock(1), parts(&[(0, 1)])).unwrap();
    assert_eq!(drain(&mut c), ["0 #4 StageTick c1 n0 <3"]);
}

#[test]
fn p4_an_earlier_clock_refused_while_aborts_are_open_extends_them() {
    let mut c = committer(2, 3);
    for clock in 0..3 {
        c.commit(Clock(clock), parts(&[(0, 1), (1, 1)])).unwrap();
    }
    drain(&mut c);
    refuse(&mut c, S1, 2, 2);
    assert_eq!(drain(&mut c), ["0 #3 Abort c2 n0 <0", "1 #3 Abort c2 n0 <0"]);
    refuse(&mut c, S0, 0, 1);
    refuse(&mut c, S0, 1, 7);
    assert_eq!(
        drain(&mut c),
        ["0 #4 Abort c0 n0 <2", "0 #5 Abort c1 n0 <2", "1 #4 Abort c0 n0 <0", "1 #5 Abort c1 n0 <0"]
    );
    for sequence in 3..6 {
        assert_eq!(ok(&mut c, S0, sequence), []);
    }
    ok(&mut c, S1, 3);
    ok(&mut c, S1, 4);
    assert_eq!(ok(&mut c, S1, 5), [Event::Aborted { clock: Clock(0), end: Clock(3), refusal: refusal(1) }]);
    assert_eq!(c.next_clock(), Clock(0));
}

#[test]
fn p4_a_refused_stage_and_tick_gives_up_its_clock() {
    let mut c = committer(2, 0);
    c.commit(Clock(0), parts(&[(0, 1)])).unwrap();
    drain(&mut c);
    refuse(&mut c, S0, 0, 1);
    assert_eq!(drain(&mut c), ["0 #1 Abort c0 n0 <1"]);
    assert_eq!(ok(&mut c, S0, 1).len(), 1);
    c.commit(Clock(0), parts(&[(0, 1)])).unwrap();
    assert_eq!(drain(&mut c), ["0 #2 StageTick c0 n0 <2"]);
}

#[test]
fn p4_an_abort_is_sent_again_until_it_is_acknowledged() {
    let mut c = committer(1, 0);
    c.commit(Clock(0), parts(&[(0, 2)])).unwrap();
    drain(&mut c);
    refuse(&mut c, S0, 0, 1);
    drain(&mut c);
    c.on_lost(S0);
    assert_eq!(drain(&mut c), ["0 #1 Stage c0 n1 <0", "0 #2 Abort c0 n0 <1"]);
}
