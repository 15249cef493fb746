//! P15, P18: joins, jobs, tables and slots as log entries.

use crate::support::*;
use petuum_shard::{Settings, Shard};
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::{Clock, Generation, Initial, JobId, LogIndex, MapEpoch, ShardId, TableId, ValueType};

#[test]
fn a_join_counts_at_the_min_clock_before_it_is_settled() {
    let mut rig = Rig::new();
    let mut first = rig.join(0, 1);
    rig.tick_empty(&mut first, 0..3);
    assert_eq!(rig.command(&fence(1, 2, true)), ShardAnswer::Clock(Clock(3)));
    rig.tick_empty(&mut first, 3..6);
    assert_eq!(rig.min_clock(), 3, "clocks cannot run ahead of a joiner");
    assert_eq!(rig.command(&settle(1, 2, 5, true)), ShardAnswer::Done);
    assert_eq!((rig.min_clock(), rig.clock(1)), (5, 5));
}

#[test]
fn a_join_of_a_live_worker_is_a_takeover_that_keeps_its_clock() {
    let mut rig = Rig::new();
    let mut first = rig.join(0, 1);
    rig.tick_empty(&mut first, 0..3);
    rig.send(&first.stage(3, 0, add(FLOATS, 5, 0, &[1.0])));
    assert_eq!(rig.command(&fence(0, 2, true)), ShardAnswer::Clock(Clock(3)));
    rig.command(&settle(0, 2, 4, true));
    assert_eq!((rig.floats(5)[0], rig.clock(0)), (1.0, 4));
}

#[test]
fn a_removed_worker_comes_back_no_earlier_than_it_left() {
    let mut rig = Rig::new();
    let (mut gone, _slow) = (rig.join(0, 1), rig.join(1, 2));
    rig.tick_empty(&mut gone, 0..4);
    rig.command(&fence(0, 3, false));
    rig.command(&settle(0, 3, 6, false));
    assert_eq!(rig.min_clock(), 0);
    assert_eq!(rig.command(&fence(0, 4, true)), ShardAnswer::Clock(Clock(6)));
    assert_eq!(rig.min_clock(), 0);
}

#[test]
fn jobs_and_tables_are_opened_once() {
    let mut rig = Rig::new();
    let open = |generation, workers| ShardCommand::OpenJob { job: JOB, generation: Generation(generation), workers };
    assert_eq!(rig.command(&open(1, WORKERS)), ShardAnswer::Done);
    for other in [open(1, 2), open(2, WORKERS), open(0, WORKERS), open(1, 0)] {
        assert!(matches!(rig.command(&other), ShardAnswer::Refused(_)), "{other:?}");
    }
    assert_eq!(rig.command(&ShardCommand::CreateTable(floats())), ShardAnswer::Done);
    let wider = petuum_types::TableSchema { width: 5, ..floats() };
    let orphan = petuum_types::TableSchema { id: TableId(9), job: JobId(9), ..floats() };
    let wrong = schema(TableId(9), ValueType::I64, 1, Initial::Normal { mean: 0, deviation: 0 });
    for schema in [wider, orphan, wrong] {
        assert!(matches!(rig.command(&ShardCommand::CreateTable(schema)), ShardAnswer::Refused(_)));
    }
    assert_eq!(rig.command(&ShardCommand::DropTable(TableId(50))), ShardAnswer::Done);
    let late = schema(TableId(50), ValueType::F32, 1, Initial::Zero);
    assert_eq!(rig.command(&ShardCommand::CreateTable(late)), ShardAnswer::Done);
    assert_eq!(rig.shard.tables().count(), 3, "dropped before it was created: it never is");
}

#[test]
fn slots_come_with_a_growing_epoch_and_do_not_move() {
    let mut shard = Shard::new(ShardId(1), Settings::default());
    let mut index = 0;
    let mut own = |epoch, slots: std::ops::Range<u16>| {
        index += 1;
        let command = ShardCommand::Own { epoch: MapEpoch(epoch), slots };
        let petuum_shard::Applied::Command(answer) =
            shard.apply(LogIndex(index), &petuum_types::entry::Entry::Command(command))
        else {
            panic!("a command answers as one")
        };
        (answer == ShardAnswer::Done, shard.epoch().0, shard.slots())
    };
    #[expect(clippy::reversed_empty_ranges, reason = "a range that ends before it starts is what is tested")]
    let backwards = 5..2;
    assert_eq!(own(1, backwards), (false, 0, 0..0));
    assert_eq!(own(1, 0..5000), (false, 0, 0..0));
    assert_eq!(own(1, 512..1024), (true, 1, 512..1024));
    assert_eq!(own(1, 0..512), (true, 1, 512..1024), "an equal epoch changes nothing");
    assert_eq!(own(2, 0..512), (false, 1, 512..1024));
    assert_eq!(own(3, 512..1024), (true, 3, 512..1024));
}
