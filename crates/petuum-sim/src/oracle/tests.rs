//! Rows that are allowed and rows that are not.

use super::*;

/// Two workers that have attempted two clocks each, one acknowledged, and the row as it should be.
fn oracle(staleness: u64) -> (UnitVectors, Vec<i64>) {
    let mut oracle = UnitVectors::new(2, staleness, 1);
    let mut row = vec![0; 4];
    for worker in 0..2 {
        oracle.registered(worker, Registered::new(1, 0)).unwrap();
        for clock in 0..2 {
            row[worker] += 1;
            row[2 + worker] += oracle.attempt(worker, clock);
        }
        oracle.acknowledged(worker, 1, 1).unwrap();
    }
    (oracle, row)
}

#[test]
fn reads_at_the_same_time_have_no_order_and_later_ones_of_any_thread_see_as_much_as_all_of_them() {
    let (mut oracle, row) = oracle(9);
    let mut older = row.clone();
    (older[1], older[3]) = (0, 0);
    let before = oracle.seen(0);
    oracle.read_since(0, &before, &[(2, 7, &row[..])]).unwrap();
    oracle.read_since(0, &before, &[(2, 7, &older[..])]).unwrap();
    let later = oracle.read_since(0, &oracle.seen(0), &[(2, 7, &older[..])]).unwrap_err();
    assert!(later.to_string().contains("seen before 2"), "{later}");
    assert_eq!(oracle.reads(), 2);
}

#[test]
fn what_is_allowed_passes() {
    let (mut oracle, row) = oracle(1);
    oracle.read(0, 2, 7, &row).unwrap();
    oracle.final_row(7, &row, 2).unwrap();
    assert_eq!((oracle.reads(), oracle.width(), oracle.attempted(0), oracle.acked(0)), (1, 4, 2, 1));
}

#[test]
fn counts_out_of_bounds_are_named() {
    let (mut oracle, row) = oracle(0);
    let mut says = |column: usize, value: i64| {
        let mut row = row.clone();
        row[column] = value;
        oracle.read(0, 2, 7, &row).unwrap_err().to_string()
    };
    assert!(says(0, 1).contains("read 1 clocks of worker 0 in row 7; expected 2 to 2"), "own writes");
    assert!(says(1, 1).contains("expected 2 to 2"), "staleness");
    assert!(says(1, 3).contains("expected 2 to 2"), "more than attempted");
    assert!(says(1, -1).contains("read -1 clocks"));
    assert!(says(3, 0).contains("with marks 0"), "another attempt");
}

#[test]
fn a_row_never_goes_back() {
    let (mut oracle, mut row) = oracle(9);
    oracle.read(0, 2, 7, &row).unwrap();
    row[1] = 1;
    assert!(oracle.read(0, 2, 7, &row).unwrap_err().to_string().contains("seen before 2"));
    // Another row may lag, and so may what a new session sees.
    row[3] = oracle.workers[1].after(1).1;
    oracle.read(0, 2, 8, &row).unwrap();
    oracle.registered(0, Registered::new(2, 2)).unwrap();
    oracle.read(0, 2, 7, &row).unwrap();
}

#[test]
fn a_session_begins_between_what_is_acknowledged_and_what_was_attempted() {
    let (oracle, _) = oracle(0);
    assert!(
        oracle
            .clone()
            .registered(0, Registered::new(2, 0))
            .unwrap_err()
            .to_string()
            .contains("1 clocks were acknowledged")
    );
    assert!(oracle.clone().registered(0, Registered::new(2, 3)).unwrap_err().to_string().contains("2 attempted"));
    let mut resumed = oracle.clone();
    resumed.registered(0, Registered::new(2, 1)).unwrap();
    assert_eq!(resumed.attempted(0), 1);
}

#[test]
fn the_end_is_exact() {
    let (oracle, mut row) = oracle(0);
    assert!(oracle.final_row(7, &row, 1).is_err());
    row[2] += 1;
    assert!(oracle.final_row(7, &row, 2).unwrap_err().to_string().contains("marks"));
    assert!(oracle.final_row(7, &row[1..], 2).unwrap_err().to_string().contains("3 columns"));
}

#[test]
fn clocks_lost_in_a_removal_count_nowhere_and_those_kept_do() {
    let (mut oracle, row) = oracle(0);
    let rejoined = Registered { incarnation: 3, start: 5, rejoined_from: Some(1) };
    oracle.registered(0, rejoined).unwrap();
    let marks = oracle.workers[0].after(5).1;
    let mut now = row.clone();
    (now[0], now[2]) = (1, marks);
    oracle.read(1, 2, 7, &now).unwrap();
    assert!(oracle.read(1, 2, 7, &row).is_err(), "a lost clock is there");
    now[0] += 1;
    now[2] += oracle.attempt(0, 5);
    oracle.read(1, 2, 7, &now).unwrap();
    let mut told = oracle.clone();
    told.removed(0, 4, 5).unwrap();
    assert!(!told.is_latest(0, 3) && told.acknowledged(0, 3, 6).is_err(), "its last clock does not count");
    // Joined at 9 and removed there, before anybody heard of it.
    told.removed(0, 6, 9).unwrap();
    told.registered(0, Registered { incarnation: 7, start: 11, rejoined_from: Some(9) }).unwrap();
    assert!(told.is_latest(0, 7) && told.attempted(0) == 11);
    assert!(oracle.clone().removed(0, 4, 4).is_err(), "the clock at which it began is known to count");
    let early = Registered { incarnation: 4, start: 6, rejoined_from: Some(4) };
    assert!(oracle.registered(0, early).is_err(), "the clock at which it began is known to count");
}

#[test]
fn what_a_replaced_session_has_acknowledged_must_count() {
    let (mut oracle, _) = oracle(0);
    oracle.registered(0, Registered::new(2, 1)).unwrap();
    assert!(oracle.is_latest(0, 2) && !oracle.is_latest(0, 1));
    oracle.acknowledged(0, 1, 1).unwrap();
    assert!(oracle.acknowledged(0, 1, 2).unwrap_err().to_string().contains("its successor 2 found 1"));
    // Its registration heard late changes nothing.
    oracle.registered(0, Registered::new(1, 0)).unwrap();
    assert!(oracle.is_latest(0, 2));
}

#[test]
fn a_latest_read_shows_what_was_ticked_everywhere_before_it_was_asked() {
    let (mut oracle, row) = oracle(9);
    oracle.flushed(1, 1, 2);
    let floors = oracle.floors();
    oracle.read_latest(7, &row, &floors).unwrap();
    let mut older = row.clone();
    (older[0], older[2]) = (0, 0);
    oracle.read_latest(7, &older, &floors).unwrap();
    (older[1], older[3]) = (0, 0);
    let error = oracle.read_latest(7, &older, &floors).unwrap_err();
    assert!(error.to_string().contains("expected 2 to 2"), "{error}");
    let mut mixed = row.clone();
    mixed[2] += 1;
    assert!(oracle.read_latest(7, &mixed, &floors).unwrap_err().to_string().contains("marks"));
}

#[test]
fn what_was_given_up_may_not_be_seen() {
    let (mut oracle, row) = oracle(9);
    oracle.read(0, 2, 7, &row).unwrap();
    assert!(oracle.clone().gave_up(0, 1, 0).is_err(), "one clock was acknowledged");
    oracle.gave_up(0, 1, 1).unwrap();
    assert!(oracle.read(0, 1, 7, &row).unwrap_err().to_string().contains("expected 1 to 1"));
    let mut again = row.clone();
    again[2] += oracle.attempt(0, 1);
    assert!(oracle.read(0, 2, 7, &again).is_err(), "marks of both attempts");
    again[2] -= row[2];
    let first = oracle.clone().read(0, 2, 7, &again);
    assert!(first.is_err(), "the first clock's mark is missing");
}
