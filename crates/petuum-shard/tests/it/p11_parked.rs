//! P11: parked reads are looked at whenever applied state changes, in any way, and are bounded (G10).

use crate::support::*;
use petuum_shard::{ParkLimit, ParkedReads, ReadOutcome};
use petuum_types::outcome::Fence;
use petuum_types::read::{Read, ReadRefusal};
use petuum_types::{Clock, Incarnation, LogIndex, WorkerId};

fn needs(min_clock: u64) -> Read {
    Read { min_clock: Clock(min_clock), ..read(FLOATS, &[5]) }
}

fn by_worker_0(incarnation: u64, min_clock: u64, own_clock: u64) -> Read {
    let reader = Some((WorkerId(0), Incarnation(incarnation)));
    Read { reader, own_clock: Clock(own_clock), ..needs(min_clock) }
}

fn tokens(woken: Vec<(u32, ReadOutcome)>) -> Vec<u32> {
    woken.into_iter().map(|(token, _)| token).collect()
}

#[test]
fn reads_wake_when_their_clock_comes_in_the_order_they_were_parked() {
    let mut rig = Rig::new();
    let mut client = rig.join(0, 1);
    let mut parked = ParkedReads::default();
    for (token, clock) in [(0, 2), (1, 1), (2, 2), (3, 9)] {
        assert_eq!(rig.shard.read(&needs(clock)), ReadOutcome::Wait);
        parked.park(needs(clock), token).unwrap();
    }
    parked.park(by_worker_0(1, 0, 2), 4).unwrap();
    parked.park(Read { min_index: LogIndex(rig.index + 1), ..needs(0) }, 5).unwrap();
    assert_eq!(tokens(parked.wake(&rig.shard)), [0u32; 0]);
    rig.tick_empty(&mut client, 0..1);
    assert_eq!(tokens(parked.wake(&rig.shard)), [1, 5]);
    rig.tick_empty(&mut client, 1..2);
    let woken = parked.wake(&rig.shard);
    assert!(woken.iter().all(|(_, outcome)| matches!(outcome, ReadOutcome::Answer(a) if a.min_clock == Clock(2))));
    assert_eq!(tokens(woken), [0, 2, 4]);
    assert_eq!(parked.len(), 1);
}

#[test]
fn an_eviction_a_takeover_and_an_unmet_second_need_are_noticed() {
    let mut rig = Rig::new();
    let (_lost, mut other) = (rig.join(0, 1), rig.join(1, 2));
    let mut parked = ParkedReads::default();
    parked.park(needs(3), 0).unwrap();
    parked.park(by_worker_0(1, 3, 0), 1).unwrap();
    parked.park(Read { min_clock: Clock(1), own_clock: Clock(9), ..by_worker_0(1, 0, 0) }, 2).unwrap();
    rig.tick_empty(&mut other, 0..3);
    assert!(parked.wake(&rig.shard).is_empty());
    rig.command(&fence(0, 3, false));
    assert!(parked.wake(&rig.shard).is_empty());
    rig.command(&settle(0, 3, 0, false));
    let woken = parked.wake(&rig.shard);
    let removed = ReadOutcome::Refused(ReadRefusal::Fenced(Fence::Removed { at: Clock(0) }));
    assert!(matches!(woken[0], (0, ReadOutcome::Answer(_))), "the straggler left: the min clock moved");
    assert_eq!(woken[1..], [(1, removed.clone()), (2, removed)]);
    assert!(parked.is_empty());
}

#[test]
fn a_snapshot_installed_over_the_wait_wakes_it() {
    let mut rig = Rig::new();
    let mut lagging = rig.clone();
    let mut client = rig.join(0, 1);
    rig.tick_empty(&mut client, 0..2);
    let mut parked = ParkedReads::default();
    parked.park(by_worker_0(1, 2, 2), 0).unwrap();
    assert!(parked.wake(&lagging.shard).is_empty());
    lagging.shard = rig.shard.clone();
    assert_eq!(tokens(parked.wake(&lagging.shard)), [0]);
}

#[test]
fn both_limits_hold_and_give_the_token_back() {
    let mut parked = ParkedReads::new(2, 1 << 20);
    parked.park(needs(1), 0).unwrap();
    parked.park(needs(1), 1).unwrap();
    let full = parked.park(needs(1), 2).unwrap_err();
    assert_eq!((full.token, full.limit), (2, ParkLimit::Count { max: 2 }));
    let mut parked = ParkedReads::new(10, 1000);
    let large = Read { rows: vec![petuum_types::RowId(0); 200], ..needs(1) };
    assert!(matches!(parked.park(large, 7).unwrap_err().limit, ParkLimit::Bytes { max: 1000, .. }));
    parked.park(needs(1), 8).unwrap();
    assert_eq!(parked.drain("stopping"), [(8, "stopping")]);
    assert!(parked.is_empty());
}

#[test]
fn removed_reads_make_room() {
    let mut parked = ParkedReads::new(3, 1 << 20);
    for token in 0..3 {
        parked.park(needs(1), token).unwrap();
    }
    assert_eq!(parked.remove(|token| *token != 1), [0, 2]);
    parked.park(needs(1), 3).unwrap();
    parked.park(needs(1), 4).unwrap();
    assert_eq!(parked.drain(()).into_iter().map(|(token, ())| token).collect::<Vec<_>>(), [1, 3, 4]);
}
