//! P10, P12, P13: what a replica answers, and that answering changes nothing.

use crate::support::*;
use petuum_shard::ReadOutcome;
use petuum_types::command::ShardCommand;
use petuum_types::outcome::Fence;
use petuum_types::read::{Read, ReadRefusal};
use petuum_types::{Clock, Generation, Incarnation, JobId, LogIndex, MapEpoch, RowId, TableId, Values, WorkerId};

fn by(worker: u32, incarnation: u64) -> Option<(WorkerId, Incarnation)> {
    Some((WorkerId(worker), Incarnation(incarnation)))
}

#[test]
fn an_answer_is_of_one_index_and_says_how_fresh_it_is() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.commit(&mut client, 0, add(FLOATS, 5, 0, &[1.0]));
    let changed = rig.index;
    rig.commit(&mut client, 1, add(FLOATS, 6, 0, &[2.0]));
    let answer = answered(rig.shard.read(&Read { reader: by(0, 1), ..read(FLOATS, &[6, 5, 9]) }));
    assert_eq!((answer.index, answer.min_clock, answer.own_clock), (LogIndex(rig.index), Clock(2), Clock(2)));
    let rows: Vec<_> = answer.rows.iter().map(|r| (r.row.0, r.changed.0, r.values.as_f32().unwrap()[0])).collect();
    assert_eq!(rows, [(6, rig.index, 2.0), (5, changed, 1.0), (9, 0, 0.0)]);
}

#[test]
fn a_read_waits_for_each_thing_it_needs() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.join(1, 2);
    rig.tick_empty(&mut client, 0..2);
    let needs = [
        Read { min_clock: Clock(1), ..read(FLOATS, &[1]) },
        Read { reader: by(0, 1), own_clock: Clock(3), ..read(FLOATS, &[1]) },
        Read { min_index: LogIndex(rig.index + 1), ..read(FLOATS, &[1]) },
        Read { epoch: MapEpoch(2), ..read(FLOATS, &[1]) },
        Read { generation: Generation(2), ..read(FLOATS, &[1]) },
        Read { reader: by(0, 3), ..read(FLOATS, &[1]) },
        Read { reader: by(3, 3), ..read(FLOATS, &[1]) },
        Read { min_clock: Clock(1), ..read(FLOATS, &[]) },
    ];
    for need in needs {
        assert_eq!(rig.shard.read(&need), ReadOutcome::Wait, "{need:?}");
    }
    let met = Read { reader: by(0, 1), own_clock: Clock(2), min_index: LogIndex(rig.index), ..read(FLOATS, &[1]) };
    answered(rig.shard.read(&met));
}

#[test]
fn what_can_never_be_answered_is_refused() {
    let mut rig = Rig::new();
    rig.join(0, 1);
    rig.join(0, 2);
    rig.command(&ShardCommand::DropTable(COUNTERS));
    let refusals = [
        (Read { job: JobId(5), ..read(FLOATS, &[1]) }, ReadRefusal::UnknownJob { job: JobId(5) }),
        (read(TableId(70), &[1]), ReadRefusal::UnknownTable { table: TableId(70) }),
        (read(COUNTERS, &[1]), ReadRefusal::ForeignTable { table: COUNTERS }),
        (
            Read { epoch: MapEpoch(0), ..read(FLOATS, &[1]) },
            ReadRefusal::Epoch { ours: MapEpoch(1), theirs: MapEpoch(0) },
        ),
        (
            Read { generation: Generation(0), min_index: LogIndex(9999), ..read(FLOATS, &[1]) },
            ReadRefusal::Fenced(Fence::OldGeneration { current: GENERATION }),
        ),
        (
            Read { reader: by(0, 1), min_clock: Clock(99), ..read(FLOATS, &[1]) },
            ReadRefusal::Fenced(Fence::Replaced { by: Incarnation(2) }),
        ),
    ];
    for (read, refusal) in refusals {
        assert_eq!(rig.shard.read(&read), ReadOutcome::Refused(refusal), "{read:?}");
    }
    rig.command(&fence(0, 3, false));
    rig.command(&settle(0, 3, 0, false));
    let removed = ReadOutcome::Refused(ReadRefusal::Fenced(Fence::Removed { at: Clock(0) }));
    assert_eq!(rig.shard.read(&Read { reader: by(0, 2), ..read(FLOATS, &[1]) }), removed);
}

#[test]
fn an_untouched_row_is_a_pure_function_and_reading_creates_nothing() {
    let rig = Rig::new();
    let before = rig.shard.clone();
    let first = rig.row(NORMALS, 77);
    assert_eq!(first, rig.row(NORMALS, 77));
    assert_ne!(first.0, rig.row(NORMALS, 78).0);
    assert_eq!(rig.row(COUNTERS, 1).0, Values::I64(vec![7, 7]));
    assert_eq!(rig.shard, before);
    assert_eq!(rig.shard.read_bytes(&read(NORMALS, &[1, 2])), 2 * 3 * 4);
}

#[test]
fn an_update_adds_to_the_initial_value() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let before = rig.row(NORMALS, 77).0;
    rig.commit(&mut client, 0, add(NORMALS, 77, 1, &[0.5]));
    let (before, after) = (before.as_f32().unwrap().to_vec(), rig.row(NORMALS, 77).0);
    assert_eq!(after.as_f32().unwrap(), [before[0], before[1] + 0.5, before[2]]);
}

#[test]
fn an_answer_keeps_its_values_while_the_shard_goes_on() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.commit(&mut client, 0, add(FLOATS, 5, 0, &[1.0]));
    let answer = answered(rig.shard.read(&read(FLOATS, &[5])));
    rig.commit(&mut client, 1, add(FLOATS, 5, 0, &[1.0]));
    assert_eq!((answer.rows[0].values.as_f32().unwrap()[0], rig.floats(5)[0]), (1.0, 2.0));
    assert_eq!(answer.rows[0].row, RowId(5));
}
