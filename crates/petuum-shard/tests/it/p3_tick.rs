//! P3: a tick applies the clock's parts, advances the clock and marks the rows, in one entry.

use crate::support::*;
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::outcome::{Outcome, Refusal};
use petuum_types::{Clock, Values};

#[test]
fn a_tick_applies_all_parts_of_its_clock_and_only_those() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.send(&client.stage(0, 1, add(FLOATS, 5, 2, &[3.0, 4.0])));
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0, 2.0])));
    rig.send(&client.stage(1, 0, add(FLOATS, 5, 0, &[100.0])));
    assert_eq!(rig.send(&client.tick(0, 2)), Outcome::Accepted);
    assert_eq!((rig.floats(5), rig.clock(0), rig.min_clock()), (vec![1.0, 2.0, 3.0, 4.0], 1, 1));
    assert_eq!(rig.row(FLOATS, 5).1, rig.index);
    assert_eq!(rig.status(0).staged_clocks, 1);
}

#[test]
fn a_tick_with_other_parts_than_staged_is_refused_and_touches_nothing() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])));
    let outcome = rig.send(&client.tick(0, 2));
    assert_eq!(refused(outcome), Refusal::MissingParts { clock: Clock(0), expected: 2, held: 1 });
    let outcome = rig.send(&client.stage_tick(0, add(FLOATS, 5, 0, &[1.0])));
    assert_eq!(refused(outcome), Refusal::MissingParts { clock: Clock(0), expected: 0, held: 1 });
    assert_eq!((rig.floats(5)[0], rig.clock(0)), (0.0, 0));
    assert_eq!(rig.send(&client.tick(0, 1)), Outcome::Accepted);
}

#[test]
fn ticks_come_in_order() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let early = rig.send(&client.tick(1, 0));
    assert_eq!(refused(early), Refusal::ClockOrder { expected: Clock(0), got: Clock(1) });
    rig.tick_empty(&mut client, 0..2);
    assert_eq!(rig.send(&client.tick(1, 0)), Outcome::Ticked, "ticked before by the same incarnation");
    assert_eq!(rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0]))), Outcome::Ticked);
    assert_eq!((rig.clock(0), rig.status(0).staged_bytes), (2, 0));
}

#[test]
fn a_clock_in_one_shard_is_one_message() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    assert_eq!(rig.send(&client.stage_tick(0, count(3, &[1, -2]))), Outcome::Accepted);
    assert_eq!(rig.row(COUNTERS, 3).0, Values::I64(vec![8, 5]));
    assert_eq!((rig.clock(0), rig.status(0).staged_bytes), (1, 0));
}

#[test]
fn a_tick_rides_with_the_next_stage_in_one_entry() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])));
    let entry = [client.tick(0, 1), client.stage(1, 0, add(FLOATS, 5, 0, &[2.0]))];
    assert_eq!(rig.entry(&entry), [Outcome::Accepted, Outcome::Accepted]);
    assert_eq!((rig.floats(5)[0], rig.status(0).staged_clocks), (1.0, 1));
}

#[test]
fn several_workers_in_one_entry_share_its_index() {
    let mut rig = Rig::new();
    let (mut a, mut b) = (rig.join(0, 1), rig.join(1, 2));
    let entry = [a.stage_tick(0, add(FLOATS, 5, 0, &[1.0])), b.stage_tick(0, add(FLOATS, 5, 0, &[2.0]))];
    assert_eq!(rig.entry(&entry), [Outcome::Accepted, Outcome::Accepted]);
    assert_eq!((rig.floats(5)[0], rig.row(FLOATS, 5).1, rig.min_clock()), (3.0, rig.index, 1));
    assert_eq!(rig.shard.checksums(), rig.shard.checksums_recomputed());
}

#[test]
fn the_min_clock_is_the_least_of_the_live() {
    let mut rig = Rig::new();
    let (mut a, mut b) = (rig.join(0, 1), rig.join(1, 2));
    rig.tick_empty(&mut a, 0..3);
    assert_eq!(rig.min_clock(), 0);
    rig.tick_empty(&mut b, 0..2);
    assert_eq!(rig.min_clock(), 2);
}

#[test]
fn parts_staged_for_a_table_dropped_since_are_passed_over() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0])));
    rig.send(&client.stage(0, 1, count(5, &[1, 1])));
    assert_eq!(rig.command(&ShardCommand::DropTable(FLOATS)), ShardAnswer::Done);
    assert_eq!(rig.send(&client.tick(0, 2)), Outcome::Accepted);
    assert_eq!(rig.row(COUNTERS, 5).0, Values::I64(vec![8, 8]));
    assert_eq!(rig.command(&ShardCommand::CreateTable(floats())), ShardAnswer::Done, "a late repeat");
    assert!(rig.shard.tables().all(|t| t.schema.id != FLOATS), "a dropped table never comes back");
}
