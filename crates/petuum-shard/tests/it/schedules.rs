//! The schedules of events that P2-P5 and P15 exist for, over two shards: each was a counterexample to a simpler rule.

use crate::support::*;
use petuum_types::Clock;
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::outcome::Outcome;

/// Two shards of one job. Rows are the tests' own to place: each shard here owns every slot.
struct Cluster {
    a: Rig,
    b: Rig,
}

impl Cluster {
    fn new() -> Self {
        Self { a: Rig::new(), b: Rig::new() }
    }

    /// A driver's step in both shards.
    fn both(&mut self, command: &ShardCommand) -> [ShardAnswer; 2] {
        [self.a.command(command), self.b.command(command)]
    }

    fn clocks(answers: [ShardAnswer; 2]) -> [u64; 2] {
        answers.map(|answer| match answer {
            ShardAnswer::Clock(Clock(clock)) => clock,
            other => panic!("expected a clock, got {other:?}"),
        })
    }

    /// A whole transition: fence, C, settle.
    fn transition(&mut self, worker: u32, incarnation: u64, admit: bool, keep: bool) -> u64 {
        let [a, b] = Self::clocks(self.both(&fence(worker, incarnation, admit)));
        let c = a.max(b);
        assert_eq!(self.both(&settle(worker, incarnation, c, keep)), [ShardAnswer::Done, ShardAnswer::Done]);
        c
    }

    fn join(&mut self, worker: u32, incarnation: u64) -> [Client; 2] {
        self.transition(worker, incarnation, true, true);
        [Client::new(worker, incarnation), Client::new(worker, incarnation)]
    }
}

fn ones() -> bytes::Bytes {
    add(FLOATS, 5, 0, &[1.0])
}

#[test]
fn half_sent_clock_then_restart_with_different_updates() {
    let mut cluster = Cluster::new();
    let [mut to_a, _] = cluster.join(0, 1);
    // Staged in one shard only; the process dies and its successor computes something else for the same clock.
    assert_eq!(cluster.a.send(&to_a.stage(0, 0, ones())), Outcome::Accepted);
    let late = to_a.tick(0, 1);
    let c = cluster.transition(0, 2, false, true);
    assert_eq!(c, 0, "no shard ticked it: the clock counts nowhere");
    let mut new = [Client::new(0, 2), Client::new(0, 2)];
    let other = add(FLOATS, 5, 0, &[10.0]);
    cluster.a.commit(&mut new[0], 0, other.clone());
    cluster.b.commit(&mut new[1], 0, other);
    assert!(matches!(cluster.a.send(&late), Outcome::Fenced(_)));
    assert_eq!((cluster.a.floats(5)[0], cluster.b.floats(5)[0]), (10.0, 10.0));
}

#[test]
fn tick_in_one_shard_only() {
    let mut cluster = Cluster::new();
    let [mut to_a, mut to_b] = cluster.join(0, 1);
    cluster.a.send(&to_a.stage(0, 0, ones()));
    cluster.b.send(&to_b.stage(0, 0, ones()));
    // The tick proves that every shard holds its parts, so the takeover finishes it from them.
    assert_eq!(cluster.a.send(&to_a.tick(0, 1)), Outcome::Accepted);
    let late = to_b.tick(0, 1);
    assert_eq!(cluster.transition(0, 2, false, true), 1);
    assert!(matches!(cluster.b.send(&late), Outcome::Fenced(_)));
    assert_eq!((cluster.a.floats(5)[0], cluster.b.floats(5)[0]), (1.0, 1.0));
    assert_eq!((cluster.a.clock(0), cluster.b.clock(0)), (1, 1));
}

/// P4: message 5 is lost with its connection and 6 comes over a new one. A shard that took anything higher would take the
/// repeated 5 for old: acknowledged and dropped.
#[test]
fn p4_message_six_before_message_five() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.tick_empty(&mut client, 0..5);
    let (five, six) = (client.stage(5, 0, ones()), client.tick(5, 1));
    assert_eq!((five.sequence.0, six.sequence.0), (5, 6));
    assert_eq!(rig.send(&six), gap(5));
    assert_eq!((rig.clock(0), rig.status(0).next_sequence.0), (5, 5), "6 left nothing behind");
    // 5 comes twice, as after a lost answer; then 6 is the next.
    assert_eq!([rig.send(&five), rig.send(&five)], [Outcome::Accepted, Outcome::Accepted]);
    assert_eq!(rig.send(&six), Outcome::Accepted);
    assert_eq!((rig.clock(0), rig.floats(5)[0]), (6, 1.0));
    assert_eq!([rig.send(&five), rig.send(&six)], [Outcome::Ticked, Outcome::Ticked]);
    assert_eq!((rig.clock(0), rig.floats(5)[0]), (6, 1.0));
}

/// P5: of two takeovers the later one reaches a shard first.
#[test]
fn p5_incarnation_six_before_incarnation_five() {
    let mut cluster = Cluster::new();
    let [mut to_a, mut to_b] = cluster.join(0, 1);
    cluster.a.send(&to_a.stage(0, 0, ones()));
    cluster.b.send(&to_b.stage(0, 0, ones()));
    cluster.a.send(&to_a.tick(0, 1));
    // Takeover 5 reaches only shard A before takeover 6 overtakes it everywhere.
    assert_eq!(cluster.a.command(&fence(0, 5, false)), ShardAnswer::Clock(Clock(1)));
    assert_eq!(cluster.transition(0, 6, false, true), 1);
    let mut six = [Client::new(0, 6), Client::new(0, 6)];
    cluster.b.send(&six[1].stage(1, 0, ones()));
    let stale = ShardAnswer::Stale { incarnation: petuum_types::Incarnation(6) };
    assert_eq!(cluster.b.command(&fence(0, 5, false)), stale);
    assert_eq!(cluster.both(&settle(0, 5, 1, true)), [stale.clone(), stale]);
    assert_eq!(cluster.b.send(&six[1].tick(1, 1)), Outcome::Accepted, "6 goes on, its parts are there");
    cluster.a.tick_empty(&mut six[0], 1..2);
    assert_eq!((cluster.a.floats(5)[0], cluster.b.floats(5)[0]), (1.0, 2.0));
}

#[test]
fn evict_arriving_after_reregister() {
    let mut cluster = Cluster::new();
    cluster.join(0, 1);
    // Eviction 2 was decided, then the worker registered again as 3; the eviction's entries come late.
    cluster.transition(0, 3, true, true);
    let stale = ShardAnswer::Stale { incarnation: petuum_types::Incarnation(3) };
    assert_eq!(cluster.both(&fence(0, 2, false)), [stale.clone(), stale.clone()]);
    assert_eq!(cluster.both(&settle(0, 2, 0, false)), [stale.clone(), stale]);
    assert!(cluster.a.status(0).live && cluster.b.status(0).live);
    cluster.a.tick_empty(&mut Client::new(0, 3), 0..1);
}

#[test]
fn join_race() {
    let mut cluster = Cluster::new();
    let [mut to_a, mut to_b] = cluster.join(0, 1);
    cluster.a.tick_empty(&mut to_a, 0..2);
    cluster.b.tick_empty(&mut to_b, 0..1);
    // The join is logged in shard A; worker 0 ticks on in both; then it is logged in B.
    assert_eq!(cluster.a.command(&fence(1, 2, true)), ShardAnswer::Clock(Clock(2)));
    cluster.a.tick_empty(&mut to_a, 2..4);
    cluster.b.tick_empty(&mut to_b, 1..4);
    assert_eq!(cluster.b.command(&fence(1, 2, true)), ShardAnswer::Clock(Clock(4)));
    assert_eq!(cluster.a.min_clock(), 2, "A waits for the joiner");
    assert_eq!(cluster.both(&settle(1, 2, 4, true)), [ShardAnswer::Done, ShardAnswer::Done]);
    assert_eq!((cluster.a.clock(1), cluster.b.clock(1)), (4, 4));
    assert_eq!((cluster.a.min_clock(), cluster.b.min_clock()), (4, 4));
}

#[test]
fn old_tick_still_in_the_log_at_takeover() {
    let mut cluster = Cluster::new();
    let [mut to_a, mut to_b] = cluster.join(0, 1);
    cluster.a.send(&to_a.stage(0, 0, ones()));
    cluster.b.send(&to_b.stage(0, 0, ones()));
    let (tick_a, tick_b) = (to_a.tick(0, 1), to_b.tick(0, 1));
    // In A the old tick was logged before the fence and counts in its answer; in B it comes after and does nothing.
    assert_eq!(cluster.a.send(&tick_a), Outcome::Accepted);
    let answers = Cluster::clocks(cluster.both(&fence(0, 2, false)));
    assert_eq!(answers, [1, 0]);
    assert!(matches!(cluster.b.send(&tick_b), Outcome::Retry(_)));
    assert_eq!(cluster.both(&settle(0, 2, 1, true)), [ShardAnswer::Done, ShardAnswer::Done]);
    assert!(matches!(cluster.b.send(&tick_b), Outcome::Fenced(_)));
    assert_eq!((cluster.a.floats(5)[0], cluster.b.floats(5)[0]), (1.0, 1.0));
}
