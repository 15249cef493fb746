//! P5: fence, settle, and every way they can be late, doubled or crossed.

use crate::support::*;
use petuum_types::command::{ShardAnswer, ShardCommand, WorkerKey};
use petuum_types::outcome::{Fence, Outcome};
use petuum_types::{Clock, Generation, Incarnation, JobId, Sequence};

fn stale(incarnation: u64) -> ShardAnswer {
    ShardAnswer::Stale { incarnation: Incarnation(incarnation) }
}

fn clock(clock: u64) -> ShardAnswer {
    ShardAnswer::Clock(Clock(clock))
}

#[test]
fn the_shard_ticks_up_from_what_is_staged_and_drops_the_rest() {
    let mut rig = Rig::new();
    let mut old = rig.join(0, 1);
    for (c, value) in [(0, 1.0), (1, 2.0), (2, 4.0)] {
        rig.send(&old.stage(c, 0, add(FLOATS, 5, 0, &[value])));
    }
    assert_eq!(rig.command(&fence(0, 2, false)), clock(0));
    assert_eq!(rig.command(&settle(0, 2, 2, true)), ShardAnswer::Done);
    assert_eq!((rig.floats(5)[0], rig.row(FLOATS, 5).1), (3.0, rig.index));
    let status = rig.status(0);
    assert_eq!((status.clock, status.staged_bytes, status.next_sequence), (Clock(2), 0, Sequence(0)));
    assert_eq!(rig.min_clock(), 2);
}

#[test]
fn nobody_speaks_between_fence_and_settle_and_the_old_one_learns_why_after() {
    let mut rig = Rig::new();
    let mut old = rig.join(0, 1);
    rig.command(&fence(0, 2, false));
    let (of_old, of_new) = (old.tick(0, 0), Client::new(0, 2).tick(0, 0));
    assert_eq!(rig.entry(&[of_old.clone(), of_new.clone()]), [UNREGISTERED, UNREGISTERED]);
    rig.command(&settle(0, 2, 0, true));
    let replaced = Outcome::Fenced(Fence::Replaced { by: Incarnation(2) });
    assert_eq!(rig.shard.precheck(&of_old), Some(replaced.clone()));
    assert_eq!(rig.entry(&[of_old, of_new]), [replaced, Outcome::Accepted]);
}

#[test]
fn an_eviction_removes_at_c_and_says_so() {
    let mut rig = Rig::new();
    let (mut slow, mut fast) = (rig.join(0, 1), rig.join(1, 2));
    rig.tick_empty(&mut fast, 0..5);
    rig.tick_empty(&mut slow, 0..2);
    assert_eq!(rig.min_clock(), 2);
    assert_eq!(rig.command(&fence(0, 3, false)), clock(2));
    assert_eq!(rig.command(&settle(0, 3, 3, false)), ShardAnswer::Done);
    assert_eq!((rig.min_clock(), rig.status(0).live, rig.clock(0)), (5, false, 3));
    assert_eq!(rig.send(&slow.tick(2, 0)), Outcome::Fenced(Fence::Removed { at: Clock(3) }));
    assert_eq!(rig.command(&settle(0, 3, 3, false)), ShardAnswer::Done, "a repeat is confirmed");
}

#[test]
fn the_min_clock_stays_when_nobody_is_left() {
    let mut rig = Rig::new();
    let mut only = rig.join(0, 1);
    rig.tick_empty(&mut only, 0..4);
    rig.command(&fence(0, 2, false));
    rig.command(&settle(0, 2, 4, false));
    assert_eq!(rig.min_clock(), 4);
}

#[test]
fn repeats_change_nothing_and_answer_the_same() {
    let mut rig = Rig::new();
    let mut old = rig.join(0, 1);
    rig.tick_empty(&mut old, 0..2);
    assert_eq!(rig.command(&fence(0, 2, false)), clock(2));
    assert_eq!(rig.command(&fence(0, 2, false)), clock(2));
    assert_eq!(rig.command(&settle(0, 2, 3, true)), ShardAnswer::Done);
    let mut new = Client::new(0, 2);
    rig.commit(&mut new, 3, add(FLOATS, 5, 0, &[1.0]));
    rig.send(&new.stage(4, 0, add(FLOATS, 5, 0, &[2.0])));
    assert_eq!(rig.command(&settle(0, 2, 3, true)), ShardAnswer::Done);
    assert_eq!(rig.command(&fence(0, 2, false)), clock(2), "as the first time, though the clock is 4");
    let status = rig.status(0);
    assert_eq!((status.clock, status.staged_clocks, status.next_sequence), (Clock(4), 1, Sequence(3)));
    assert_eq!(rig.send(&new.tick(4, 1)), Outcome::Accepted);
    assert_eq!(rig.floats(5)[0], 3.0);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.tick_empty(&mut client, 0..3);
    let refusals = [
        (settle(0, 5, 3, true), "has not been fenced"),
        (settle(3, 5, 3, true), "has not been fenced"),
        (fence(WORKERS, 5, true), "job 1 has 4 workers"),
        (
            ShardCommand::Fence {
                worker: WorkerKey { generation: Generation(2), ..key(0) },
                incarnation: Incarnation(5),
                admit: false,
            },
            "generation 1",
        ),
        (
            ShardCommand::Fence {
                worker: WorkerKey { job: JobId(7), ..key(0) },
                incarnation: Incarnation(5),
                admit: false,
            },
            "not open",
        ),
    ];
    for (command, text) in refusals {
        let ShardAnswer::Refused(reason) = rig.command(&command) else { panic!("{command:?} was not refused") };
        assert!(reason.contains(text), "{reason}");
    }
    rig.command(&fence(0, 2, false));
    let ShardAnswer::Refused(reason) = rig.command(&settle(0, 2, 2, true)) else { panic!("a clock went back") };
    assert!(reason.contains("the fence answered clock 3"), "{reason}");
    assert_eq!((rig.clock(0), rig.status(0).settled), (3, false));
}

#[test]
fn a_worker_that_is_not_counted_stays_so_without_admission() {
    let mut rig = Rig::new();
    let mut other = rig.join(1, 1);
    rig.tick_empty(&mut other, 0..2);
    assert_eq!(rig.command(&fence(0, 3, false)), clock(0));
    assert!(!rig.status(0).live);
    assert_eq!(rig.command(&fence(0, 2, true)), stale(3), "the version is remembered");
    assert!(matches!(rig.command(&settle(0, 3, 2, true)), ShardAnswer::Refused(_)));
    assert_eq!(rig.command(&settle(0, 3, 5, false)), ShardAnswer::Done);
    assert_eq!((rig.min_clock(), rig.clock(0)), (2, 5));
}

#[test]
fn settles_of_lower_incarnations_are_stale() {
    let mut rig = Rig::new();
    rig.join(0, 1);
    rig.command(&fence(0, 2, false));
    rig.command(&fence(0, 3, false));
    assert_eq!(rig.command(&settle(0, 2, 0, false)), stale(3));
    assert!(rig.status(0).live);
}
