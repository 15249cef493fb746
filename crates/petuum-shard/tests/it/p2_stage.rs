//! P2: a part is checked whole and held; no row is touched.

use crate::support::*;
use petuum_shard::Settings;
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::outcome::{Outcome, Refusal, Retry};
use petuum_types::part::{self, SectionData};
use petuum_types::{Clock, Initial, JobId, RowId, TableId, ValueType, limits};

#[test]
fn a_staged_part_touches_no_row_and_survives_as_state() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let part = add(FLOATS, 5, 0, &[1.0; 4]);
    let bytes = part.len() as u64;
    assert_eq!(rig.send(&client.stage(0, 0, part)), Outcome::Accepted);
    assert_eq!((rig.floats(5), rig.clock(0)), (vec![0.0; 4], 0));
    assert_eq!((rig.status(0).staged_bytes, rig.status(0).staged_clocks), (bytes, 1));
    assert_eq!(rig.shard.tables().map(|t| t.rows).sum::<u64>(), 0);
}

#[test]
fn every_wrong_part_is_refused_by_name_and_leaves_nothing() {
    let mut rig = Rig::new();
    let other_job = JobId(9);
    rig.command(&ShardCommand::OpenJob { job: other_job, generation: GENERATION, workers: 1 });
    let foreign = petuum_types::TableSchema { job: other_job, ..schema(TableId(8), ValueType::F32, 1, Initial::Zero) };
    assert_eq!(rig.command(&ShardCommand::CreateTable(foreign)), ShardAnswer::Done);
    rig.command(&ShardCommand::DropTable(TableId(6)));
    let mut client = rig.join(0, 1);
    let row = RowId(5);
    let wrong = [
        (add(TableId(99), 5, 0, &[1.0]), Refusal::UnknownTable { table: TableId(99) }),
        (add(TableId(8), 5, 0, &[1.0]), Refusal::ForeignTable { table: TableId(8) }),
        (add(TableId(6), 5, 0, &[1.0]), Refusal::ForeignTable { table: TableId(6) }),
        (
            add(COUNTERS, 5, 0, &[1.0, 1.0]),
            Refusal::WrongType { table: COUNTERS, row, expected: ValueType::I64, got: ValueType::F32 },
        ),
        (add(FLOATS, 5, 2, &[1.0; 3]), Refusal::Column { table: FLOATS, row, first: 2, end: 5, width: 4 }),
        (
            add(FLOATS, 5, u32::MAX, &[1.0; 3]),
            Refusal::Column { table: FLOATS, row, first: u32::MAX, end: u64::from(u32::MAX) + 3, width: 4 },
        ),
        (add(FLOATS, 5, 1, &[1.0, f32::NAN]), Refusal::NonFinite { table: FLOATS, row, column: 2 }),
    ];
    for (part, refusal) in wrong {
        assert_eq!(rig.send(&client.stage(0, 0, part.clone())), Outcome::Refused(refusal.clone()));
        assert_eq!(rig.send(&client.stage_tick(0, part)), Outcome::Refused(refusal));
    }
    let garbage = rig.send(&client.stage(0, 0, bytes::Bytes::from_static(b"garbage")));
    assert!(matches!(refused(garbage), Refusal::Malformed(_)));
    let long = add(FLOATS, 5, 0, &vec![0.0; limits::PART_BYTES_MAX / 4]);
    assert!(matches!(refused(rig.send(&client.stage(0, 0, long))), Refusal::Malformed(_)));
    assert_eq!((rig.status(0).staged_bytes, rig.clock(0)), (0, 0));
    assert_eq!(rig.shard.tables().map(|t| t.rows).sum::<u64>(), 0);
}

#[test]
fn one_bad_row_refuses_the_whole_part() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let (good, bad) = (1.0f32.to_le_bytes(), f32::INFINITY.to_le_bytes());
    let rows = vec![(RowId(1), good.as_slice()), (RowId(2), bad.as_slice())];
    let section = SectionData { table: FLOATS, value_type: ValueType::F32, first_column: 3, columns: 1, rows };
    let outcome = rig.send(&client.stage(0, 0, part::encode(&[section])));
    assert_eq!(refused(outcome), Refusal::NonFinite { table: FLOATS, row: RowId(2), column: 3 });
    assert_eq!(rig.status(0).staged_bytes, 0);
}

#[test]
fn a_row_of_another_shard_is_refused() {
    let mut rig = Rig::owning(0..2048, Settings::default());
    let mut client = rig.join(0, 1);
    let slot = |row| petuum_types::Slot::of(FLOATS, RowId(row)).0;
    let ours = (0..).find(|row| slot(*row) < 2048).unwrap();
    let theirs = (0..).find(|row| slot(*row) >= 2048).unwrap();
    assert_eq!(rig.send(&client.stage(0, 0, add(FLOATS, ours, 0, &[1.0]))), Outcome::Accepted);
    let outcome = rig.send(&client.stage(0, 1, add(FLOATS, theirs, 0, &[1.0])));
    assert_eq!(refused(outcome), Refusal::WrongShard { table: FLOATS, row: RowId(theirs) });
}

#[test]
fn staged_bytes_are_limited_per_worker_early_and_in_apply() {
    let part = add(FLOATS, 5, 0, &[1.0; 4]);
    let size = part.len();
    let mut rig = Rig::with(Settings { staged_bytes_max: 2 * size, ..Settings::default() });
    let mut client = rig.join(0, 1);
    let mut other = rig.join(1, 2);
    assert_eq!(rig.send(&client.stage(0, 0, part.clone())), Outcome::Accepted);
    assert_eq!(rig.send(&client.stage(1, 0, part.clone())), Outcome::Accepted);
    let over = client.stage(2, 0, part.clone());
    assert!(matches!(rig.shard.precheck(&over), Some(Outcome::Retry(Retry::Busy(_)))), "early: retryable");
    let (bytes, limit) = (3 * size as u64, 2 * size as u64);
    assert_eq!(refused(rig.send(&over)), Refusal::StagedBytes { bytes, limit }, "in apply: final");
    assert_eq!(rig.send(&other.stage(0, 0, part.clone())), Outcome::Accepted, "no pool is shared");
    let tick = client.tick(0, 1);
    assert_eq!(rig.shard.precheck(&tick), None, "a tick is never refused for limits");
    assert_eq!(rig.send(&tick), Outcome::Accepted);
    assert_eq!(rig.send(&client.stage(2, 0, part)), Outcome::Accepted, "the tick freed room");
}

#[test]
fn a_part_number_takes_another_content_only_after_an_abort() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    assert_eq!(rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[1.0]))), Outcome::Accepted);
    let second = rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[2.0])));
    assert!(refused(second).to_string().contains("part 0 of clock 0 is already staged"));
    assert_eq!(rig.send(&client.abort(0)), Outcome::Accepted);
    assert_eq!(rig.status(0).staged_bytes, 0);
    assert_eq!(rig.send(&client.stage(0, 0, add(FLOATS, 5, 0, &[4.0]))), Outcome::Accepted);
    assert_eq!(rig.send(&client.tick(0, 1)), Outcome::Accepted);
    assert_eq!(rig.floats(5)[0], 4.0);
}

#[test]
fn a_table_that_drops_counts_what_it_leaves_out() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let before = rig.row(NORMALS, 5).0;
    rig.commit(&mut client, 0, add(NORMALS, 5, 0, &[f32::NAN, 1.0, f32::INFINITY]));
    let (before, after) = (before.as_f32().unwrap().to_vec(), rig.row(NORMALS, 5).0);
    assert_eq!(after.as_f32().unwrap(), [before[0], before[1] + 1.0, before[2]]);
    assert_eq!(rig.shard.tables().find(|t| t.schema.id == NORMALS).unwrap().non_finite, 2);
    assert_eq!(rig.status(0).non_finite, 2);
}

#[test]
fn a_sum_that_overflows_keeps_a_rejecting_table_finite() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    rig.commit(&mut client, 0, add(FLOATS, 5, 0, &[f32::MAX]));
    rig.commit(&mut client, 1, add(FLOATS, 5, 0, &[f32::MAX]));
    assert_eq!((rig.floats(5)[0], rig.status(0).non_finite), (f32::MAX, 1));
    assert_eq!(rig.status(0).clock, Clock(2));
}
