//! Tests of what a worker shows to its readers: a test per rule, and random runs against a plain model of a job.

mod model;

use super::*;
use crate::updates::tests::table;
use petuum_types::limits::OWN_CLOCKS_MAX;
use petuum_types::read::{ReadAnswer, RowAnswer};
use petuum_types::{Clock, ErrorKind, LogIndex, RowId, ShardId, Staleness, TableSchema, ValueType, Values};
use std::sync::Arc;

const S0: ShardId = ShardId(0);

fn schema() -> TableSchema {
    table(1, 2, ValueType::I64)
}

fn workspace(threads: usize, start: u64) -> Workspace {
    Workspace::new(threads, Clock(start), Staleness(1), &CacheSettings::default())
}

/// A small cache: two rows of two columns.
fn small(own_bytes: usize) -> Workspace {
    Workspace::new(1, Clock(0), Staleness(1), &CacheSettings { cache_bytes: 352, own_bytes })
}

fn answer(index: u64, min_clock: u64, own_clock: u64, rows: &[(u64, [i64; 2])]) -> ReadAnswer {
    let rows = rows.iter().map(|(row, values)| RowAnswer {
        row: RowId(*row),
        changed: LogIndex(index - 1),
        values: Arc::new(Values::I64(values.to_vec())),
    });
    ReadAnswer {
        index: LogIndex(index),
        min_clock: Clock(min_clock),
        own_clock: Clock(own_clock),
        rows: rows.collect(),
    }
}

fn shown(w: &mut Workspace, thread: usize, row: u64) -> Option<Vec<i64>> {
    w.lookup(thread, &schema(), RowId(row)).map(|values| values.as_i64().unwrap().to_vec())
}

fn received(w: &mut Workspace, answer: &ReadAnswer) -> Vec<Option<Vec<i64>>> {
    let rows = w.receive(0, S0, &schema(), answer).unwrap();
    rows.into_iter().map(|row| row.map(|values| values.as_i64().unwrap().to_vec())).collect()
}

#[test]
fn a_worker_s_clock_is_the_least_of_its_threads() {
    let mut clocks = ThreadClocks::new(2, Clock(5));
    assert_eq!(clocks.tick(0), None);
    assert_eq!(clocks.tick(0), None);
    assert_eq!((clocks.clock(0), clocks.clock(1), clocks.least()), (Clock(7), Clock(5), Clock(5)));
    assert_eq!(clocks.tick(1), Some(Clock(5)));
    assert_eq!(clocks.tick(1), Some(Clock(6)));
    assert_eq!(clocks.tick(1), None);
    assert_eq!((clocks.least(), clocks.threads()), (Clock(7), 2));
}

#[test]
fn p10_the_cache_answers_while_its_row_is_fresh_enough() {
    let mut w = workspace(1, 5);
    assert_eq!(shown(&mut w, 0, 7), None);
    let requirement = w.requirement(0, S0, &schema(), &[RowId(7)]);
    assert_eq!(requirement, Requirement { min_clock: Clock(4), own_clock: Clock(5), min_index: LogIndex(0) });
    assert_eq!(received(&mut w, &answer(30, 4, 5, &[(7, [1, 2])])), [Some(vec![1, 2])]);
    assert_eq!(shown(&mut w, 0, 7), Some(vec![1, 2]));
    assert_eq!(w.cache().changed(schema().id, RowId(7)), Some(LogIndex(29)));
    let (clock, updates) = w.tick(0).unwrap();
    assert_eq!((clock, updates.is_empty()), (Clock(5), true));
    assert_eq!(shown(&mut w, 0, 7), None, "at clock 6 and s = 1 the min clock must be 5");
    let requirement = w.requirement(0, S0, &schema(), &[RowId(7)]);
    assert_eq!(requirement, Requirement { min_clock: Clock(5), own_clock: Clock(5), min_index: LogIndex(30) });
    assert_eq!(w.differentials().iter().collect::<Vec<_>>(), [(&-1, &2)]);
}

#[test]
fn p6_after_a_barrier_the_cache_shows_nothing_older() {
    let mut w = workspace(1, 5);
    received(&mut w, &answer(30, 4, 5, &[(7, [1, 2])]));
    assert_eq!(shown(&mut w, 0, 7), Some(vec![1, 2]), "at s = 1 the min clock may be 4");
    w.passed_barrier(Clock(5));
    assert_eq!(shown(&mut w, 0, 7), None);
    let requirement = w.requirement(0, S0, &schema(), &[RowId(7)]);
    assert_eq!(requirement.min_clock, Clock(5));
    w.passed_barrier(Clock(2));
    assert_eq!(w.requirement(0, S0, &schema(), &[RowId(7)]).min_clock, Clock(5), "a barrier is never undone");
}

#[test]
fn p10_each_thread_s_own_clock_governs_its_reads() {
    let mut w = workspace(2, 5);
    received(&mut w, &answer(30, 4, 5, &[(7, [1, 2])]));
    assert!(w.tick(1).is_none());
    assert_eq!(shown(&mut w, 1, 7), None);
    assert_eq!(shown(&mut w, 0, 7), Some(vec![1, 2]));
}

#[test]
fn g5_all_threads_see_the_worker_s_writes_at_once_and_each_once() {
    let mut w = workspace(2, 0);
    received(&mut w, &answer(10, 0, 0, &[(7, [100, 0])]));
    w.inc(0, &schema(), RowId(7), 0, 1i64).unwrap();
    w.inc_dense(1, &schema(), RowId(7), 0, [10i64, 5].as_slice()).unwrap();
    assert_eq!(shown(&mut w, 1, 7), Some(vec![111, 5]), "both threads' buffers");
    assert!(w.tick(0).is_none());
    assert_eq!(shown(&mut w, 1, 7), Some(vec![111, 5]), "one thread has ended the clock");
    let (_, updates) = w.tick(1).unwrap();
    assert!(updates.touches(schema().id, RowId(7)));
    assert_eq!(shown(&mut w, 0, 7), Some(vec![111, 5]), "on its way");
    assert_eq!(received(&mut w, &answer(11, 0, 0, &[(7, [200, 0])])), [Some(vec![211, 5])], "not contained");
    assert_eq!(received(&mut w, &answer(12, 1, 1, &[(7, [211, 5])])), [Some(vec![211, 5])], "contained");
}

#[test]
fn a_row_without_own_updates_is_shared_not_copied() {
    let mut w = workspace(1, 0);
    let answer = answer(10, 0, 0, &[(7, [1, 2])]);
    let shown = w.receive(0, S0, &schema(), &answer).unwrap();
    assert!(Arc::ptr_eq(shown[0].as_ref().unwrap(), &answer.rows[0].values));
    assert!(Arc::ptr_eq(&w.lookup(0, &schema(), RowId(7)).unwrap(), &answer.rows[0].values));
}

#[test]
fn g5_a_cached_row_is_never_replaced_by_one_of_lower_index() {
    let mut w = workspace(1, 0);
    received(&mut w, &answer(20, 3, 0, &[(7, [2, 2])]));
    assert_eq!(received(&mut w, &answer(19, 3, 0, &[(7, [1, 1]), (8, [5, 5])])), [Some(vec![2, 2]), Some(vec![5, 5])]);
    assert_eq!(shown(&mut w, 0, 7), Some(vec![2, 2]));
}

#[test]
fn g5_after_an_eviction_the_shard_s_floor_applies() {
    let mut w = small(1000);
    received(&mut w, &answer(20, 1, 0, &[(1, [1, 1])]));
    received(&mut w, &answer(15, 1, 0, &[(2, [2, 2])]));
    assert_eq!(shown(&mut w, 0, 1), Some(vec![1, 1]), "used last");
    received(&mut w, &answer(16, 1, 0, &[(3, [3, 3])]));
    assert_eq!((w.cache().len(), shown(&mut w, 0, 2)), (2, None), "the row used longest ago went");
    let floor = |w: &Workspace, rows: &[u64]| {
        let rows: Vec<RowId> = rows.iter().map(|row| RowId(*row)).collect();
        w.requirement(0, S0, &schema(), &rows).min_index
    };
    assert_eq!(floor(&w, &[2]), LogIndex(15));
    assert_eq!(floor(&w, &[2, 1]), LogIndex(20), "a read of many rows is as fresh as its most demanding row");
    assert_eq!(w.requirement(0, ShardId(1), &schema(), &[RowId(2)]).min_index, LogIndex(0), "another shard's log");
    // An answer to a read that was sent before the row was read and let go.
    assert_eq!(received(&mut w, &answer(14, 1, 0, &[(2, [0, 0])])), [None]);
    assert_eq!(received(&mut w, &answer(15, 1, 0, &[(2, [2, 2])])), [Some(vec![2, 2])]);
}

#[test]
fn p12_no_row_of_an_answer_is_refused_for_what_its_neighbour_drove_out() {
    let mut w = small(1000);
    received(&mut w, &answer(20, 1, 0, &[(1, [1, 1]), (2, [2, 2])]));
    assert_eq!(received(&mut w, &answer(15, 1, 0, &[(3, [3, 3]), (4, [4, 4])])), [Some(vec![3, 3]), Some(vec![4, 4])]);
    assert_eq!((shown(&mut w, 0, 1), shown(&mut w, 0, 4)), (None, Some(vec![4, 4])));
}

#[test]
fn g10_a_row_larger_than_the_cache_is_shown_and_let_go() {
    let mut w = Workspace::new(1, Clock(0), Staleness(1), &CacheSettings { cache_bytes: 10, own_bytes: 10 });
    assert_eq!(received(&mut w, &answer(20, 1, 0, &[(1, [1, 1])])), [Some(vec![1, 1])]);
    assert!(w.cache().is_empty() && w.cache().bytes() == 0);
    assert_eq!(w.requirement(0, S0, &schema(), &[RowId(1)]).min_index, LogIndex(20));
}

#[test]
fn g10_past_the_byte_budget_the_own_clock_floor_rises_instead() {
    let mut w = small(150);
    received(&mut w, &answer(20, 9, 0, &[(1, [1, 1])]));
    w.inc(0, &schema(), RowId(1), 0, 5i64).unwrap();
    w.tick(0).unwrap();
    assert_eq!((shown(&mut w, 0, 1), w.own_bytes()), (Some(vec![6, 1]), 112));
    w.inc(0, &schema(), RowId(1), 0, 7i64).unwrap();
    w.tick(0).unwrap();
    assert_eq!(w.own_bytes(), 112, "clock 0 went");
    assert_eq!(shown(&mut w, 0, 1), None, "the cached row lacks it");
    assert_eq!(w.requirement(0, S0, &schema(), &[RowId(1)]).own_clock, Clock(1));
    assert_eq!(received(&mut w, &answer(21, 9, 0, &[(1, [1, 1])])), [None]);
    assert_eq!(received(&mut w, &answer(22, 9, 1, &[(1, [6, 1])])), [Some(vec![13, 1])]);
}

/// A table without bound: a row stays cached for ever.
#[test]
fn g10_past_the_number_of_clocks_the_own_clock_floor_rises_instead() {
    let schema = TableSchema { staleness: Staleness(u32::MAX), ..schema() };
    let mut w = Workspace::new(1, Clock(0), schema.staleness, &CacheSettings::default());
    received(&mut w, &answer(20, 9, 0, &[(1, [0, 0])]));
    for clock in 1..=OWN_CLOCKS_MAX as i64 {
        w.inc(0, &schema, RowId(1), 0, 1i64).unwrap();
        w.tick(0).unwrap();
        assert_eq!(w.lookup(0, &schema, RowId(1)).unwrap().as_i64().unwrap(), [clock, 0]);
    }
    w.tick(0).unwrap();
    assert!(w.lookup(0, &schema, RowId(1)).is_none(), "the cached row lacks a clock that is forgotten");
    assert_eq!(w.requirement(0, S0, &schema, &[RowId(1)]).own_clock, Clock(1));
}

#[test]
fn own_updates_that_every_fresh_row_contains_are_forgotten() {
    let mut w = workspace(1, 0);
    for clock in 0..50 {
        w.inc(0, &schema(), RowId(1), 0, 1i64).unwrap();
        w.tick(0).unwrap();
        assert!(w.own_bytes() <= 112, "{} bytes at clock {clock}: s = 1 keeps one clock", w.own_bytes());
    }
}

#[test]
fn p4_a_clock_given_up_leaves_no_own_update() {
    let mut w = small(150);
    received(&mut w, &answer(20, 9, 0, &[(1, [1, 1])]));
    for _ in 0..3 {
        w.inc(0, &schema(), RowId(1), 0, 5i64).unwrap();
        w.tick(0).unwrap();
    }
    w.inc(0, &schema(), RowId(1), 0, 5i64).unwrap();
    w.give_up(Clock(0));
    assert_eq!((w.clocks().least(), w.own_bytes()), (Clock(0), 0));
    assert_eq!(w.requirement(0, S0, &schema(), &[]).own_clock, Clock(0), "nobody can contain what was given up");
    assert_eq!(shown(&mut w, 0, 1), Some(vec![1, 1]), "what was read stays");
    assert_eq!(w.tick(0).unwrap().0, Clock(0));
}

#[test]
fn an_answer_of_another_shape_is_refused_whole() {
    let mut w = workspace(1, 0);
    let mut wrong = answer(20, 1, 0, &[(1, [1, 1]), (2, [2, 2])]);
    wrong.rows[1].values = Arc::new(Values::F32(vec![1.0; 3]));
    let error = w.receive(0, S0, &schema(), &wrong).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let expected = "table \"t1\", row 2: shard 0 answered 3 values of type f32; expected 2 of type i64";
    assert_eq!(error.message(), expected);
    assert!(w.cache().is_empty());
}
