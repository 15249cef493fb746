//! The node's store on the simulated disk: what is acknowledged survives, and what is left is the state after some
//! number of writes, over all groups at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use petuum_sim::disk::{self, Counters, Disk, Fault, Op, Rule};
use petuum_storage::testing::{Disk as _, Report, crashes_keep_what_was_acknowledged};
use petuum_storage::{Store, StoreOptions, SyncDone, testing};
use petuum_types::GroupId;

/// Small enough that some logs are begun between two crashes.
const WRITE_BUFFER: usize = 64 << 10;

struct Machine {
    disk: Disk,
    random: fastrand::Rng,
}

impl Machine {
    fn new(seed: u64, one_in: Option<u32>) -> Self {
        let disk = Disk::new();
        if let Some(one_in) = one_in {
            disk.hold_background_jobs(seed, one_in);
        }
        Self { disk, random: fastrand::Rng::with_seed(seed) }
    }
}

impl testing::Disk for Machine {
    fn dir(&self) -> PathBuf {
        Disk::ROOT.into()
    }

    fn options(&self) -> StoreOptions {
        StoreOptions { write_buffer_bytes: WRITE_BUFFER, ..self.disk.store_options() }
    }

    fn stepped(&mut self) {
        disk::seed_thread(self.random.u64(..));
        self.disk.step();
    }

    fn power_off(&mut self) {
        self.disk.power_off();
    }

    fn power_on(&mut self) {
        self.disk.power_on(self.random.u64(..));
    }
}

fn run(seeds: std::ops::Range<u64>, one_in: Option<u32>) -> (Report, Counters) {
    let mut sum = (Report::default(), Counters::default());
    for seed in seeds {
        let mut machine = Machine::new(seed, one_in);
        let report = crashes_keep_what_was_acknowledged(&mut machine, seed, 8)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let counters = machine.disk.counters();
        sum.0.writes += report.writes;
        sum.0.acknowledged += report.acknowledged;
        sum.0.lost += report.lost;
        sum.1.bytes_lost += counters.bytes_lost;
        sum.1.torn_tails += counters.torn_tails;
        sum.1.deletions_undone += counters.deletions_undone;
        sum.1.jobs_held += counters.jobs_held;
    }
    sum
}

#[test]
fn a_power_failure_leaves_the_state_after_some_write() {
    let (report, counters) = run(0..60, None);
    assert!(report.acknowledged > 1000 && report.lost > 1000, "{report:?}");
    assert!(counters.torn_tails > 100, "{counters:?}");
}

#[test]
fn so_does_one_that_finds_flushes_pending() {
    let (report, counters) = run(100..160, Some(20));
    assert!(report.acknowledged > 1000 && report.lost > 1000, "{report:?}");
    assert!(counters.torn_tails > 100 && counters.jobs_held > 50, "{counters:?}");
}

#[test]
fn the_seed_decides_what_is_lost_whatever_rocksdbs_threads_did() {
    let lost = |seed| {
        let (report, counters) = run(seed..seed + 1, Some(10));
        (report, counters.bytes_lost)
    };
    for seed in 200..206 {
        assert_eq!(lost(seed), lost(seed), "seed {seed}");
    }
}

fn entries(term: u64, indices: RangeInclusive<u64>, bytes: usize) -> Vec<(u64, Vec<u8>)> {
    indices.map(|index| (index, [&term.to_be_bytes()[..], &vec![7; bytes]].concat())).collect()
}

/// A log that is cut and goes on with another leader's entries, nothing of which is synced, while flushes are pending and
/// logs are switched. The terms of entries 0 to 9 after a power failure.
fn cut_and_gone_on(seed: u64) -> Vec<u64> {
    let mut machine = Machine::new(seed, None);
    drop(Store::open(&machine.dir(), machine.options()).unwrap());
    machine.disk.hold_background_jobs(seed, 1000);
    let store = Store::open(&machine.dir(), machine.options()).unwrap();
    let (syncer, group, other) = (store.syncer(), store.group(GroupId(1)), store.group(GroupId(2)));
    let ignore = || -> SyncDone { Box::new(|_| ()) };
    group.append(entries(1, 0..=9, 10), ignore()).unwrap();
    syncer.run_once().unwrap();
    group.truncate_after(Some(4)).unwrap();
    // A full buffer: what comes next goes into another log.
    other.append(entries(1, 0..=70, 1000), ignore()).unwrap();
    group.append(entries(2, 5..=6, 10), ignore()).unwrap();
    machine.power_off();
    drop((group, other, syncer, store));
    machine.power_on();
    let store = Store::open(&machine.dir(), machine.options()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let read = store.group(GroupId(1)).read(0, 10, usize::MAX).unwrap();
    read.into_iter().map(|(_, entry)| u64::from_be_bytes(*entry.first_chunk().unwrap())).collect()
}

/// Log matching: of a truncation and the append behind it, the append never survives alone. A leader would hold entries of
/// an old term behind those of a new one, and take them for its own.
#[test]
fn a_lost_truncation_takes_the_append_behind_it_along() {
    let seen: BTreeSet<Vec<u64>> = (0..300).map(cut_and_gone_on).collect();
    let (whole, cut) = (vec![1; 10], vec![1; 5]);
    let gone_on = |entries: usize| [&cut[..], &vec![2; entries]].concat();
    assert_eq!(seen, BTreeSet::from([whole, cut.clone(), gone_on(2)]));
}

/// Lets the power fail at one operation of the disk, in the middle of opening, writing, syncing or a background job, and
/// opens the store again. False if the operation never came.
fn survives_a_power_cut(op: Op, skip: u64, jobs: Option<u32>) -> bool {
    let mut machine = Machine::new(skip, jobs);
    machine.disk.inject(Rule { op, kind: None, skip, times: Some(1), fault: Fault::PowerCut });
    let acked = Arc::new(AtomicU64::new(0));
    let work = |machine: &mut Machine| -> Result<(), petuum_storage::Error> {
        let store = Store::open(&machine.dir(), machine.options())?;
        let (syncer, group) = (store.syncer(), store.group(GroupId(1)));
        for index in 0..40 {
            let acked = Arc::clone(&acked);
            let done: SyncDone =
                Box::new(move |outcome| drop(outcome.map(|()| acked.store(index + 1, Ordering::SeqCst))));
            group.append(entries(1, index..=index, 8000), done)?;
            if index % 3 == 0 {
                syncer.run_once()?;
            }
            machine.stepped();
        }
        Ok(())
    };
    let _ended = work(&mut machine);
    if machine.disk.is_powered() {
        return false;
    }
    machine.disk.clear_rules();
    machine.power_off();
    machine.power_on();
    let what = format!("{op:?} number {skip}");
    let store = Store::open(&machine.dir(), machine.options()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let next = store.group(GroupId(1)).last().unwrap().map_or(0, |(last, _)| last + 1);
    assert!(next >= acked.load(Ordering::SeqCst), "{what}: {next} of {acked:?}");
    true
}

#[test]
fn power_may_fail_at_any_operation_of_the_disk() {
    for op in [Op::Open, Op::Append, Op::Sync, Op::Read, Op::Rename, Op::Delete, Op::SyncDirectory] {
        for jobs in [None, Some(5)] {
            // Each of the first, which open the store, and some of the many that follow.
            let skips = (0..12).chain((12..1000).step_by(17));
            let cuts = skips.take_while(|skip| survives_a_power_cut(op, *skip, jobs)).count();
            assert!((1..60).contains(&cuts), "{op:?}: {cuts} operations");
        }
    }
}

/// What a start comes to one of whose reads is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// The read never came.
    NoSuchRead,
    /// It has everything.
    Whole,
    /// It is refused, and the next has everything.
    Refused,
    /// It is refused for good.
    RefusedForGood,
}

/// What may be wrong about a read.
const WRONG_READS: [Fault; 5] =
    [Fault::Eio, Fault::ShortRead, Fault::FlippedBit(5), Fault::FlippedBit(77_777), Fault::FlippedBit(u64::MAX / 3)];

/// Entries of a store whose start goes wrong, all of them acknowledged.
const ENTRIES: u64 = 60;

/// A store whose power failed.
fn failed(skip: u64) -> Machine {
    let mut machine = Machine::new(skip, None);
    {
        let store = Store::open(&machine.dir(), machine.options()).unwrap();
        let (syncer, group) = (store.syncer(), store.group(GroupId(1)));
        for index in 0..ENTRIES {
            group.append(entries(1, index..=index, 2500), Box::new(|_| ())).unwrap();
            syncer.run_once().unwrap();
        }
        machine.power_off();
    }
    machine.power_on();
    machine
}

/// Its last entry.
fn last(machine: &Machine) -> Result<Option<u64>, String> {
    let store = Store::open(&machine.dir(), machine.options()).map_err(|error| error.to_string())?;
    let last = store.group(GroupId(1)).last().map_err(|error| error.to_string())?;
    Ok(last.map(|(last, _)| last))
}

/// Starts a store whose power failed, and one read of which is wrong.
fn start_with_a_wrong_read(fault: Fault, skip: u64) -> Start {
    let machine = failed(skip);
    machine.disk.inject(Rule { op: Op::Read, kind: None, skip, times: Some(1), fault });
    let what = format!("{fault:?} at read {skip}");
    let first = last(&machine);
    let hit = machine.disk.counters().injected > 0;
    machine.disk.clear_rules();
    match first {
        Ok(found) => {
            assert_eq!(found, Some(ENTRIES - 1), "{what}: lost without a word");
            if hit { Start::Whole } else { Start::NoSuchRead }
        }
        Err(_) => match last(&machine) {
            Ok(found) => {
                assert_eq!(found, Some(ENTRIES - 1), "{what}: refused, then lost without a word");
                Start::Refused
            }
            Err(refused) => {
                assert_eq!(last(&machine), Err(refused), "{what}: a store that is refused stays refused");
                Start::RefusedForGood
            }
        },
    }
}

/// G9: whatever read of a start is wrong, nothing acknowledged is lost without a word.
#[test]
fn any_read_of_a_start_may_be_wrong() {
    let mut seen = BTreeMap::<Start, u64>::new();
    for fault in WRONG_READS {
        for skip in 0.. {
            let start = start_with_a_wrong_read(fault, skip);
            match start {
                Start::NoSuchRead => break,
                start => *seen.entry(start).or_default() += 1,
            }
        }
    }
    let count = |start| seen.get(&start).copied().unwrap_or(0);
    assert!(count(Start::Whole) > 20 && count(Start::Refused) > 20, "{seen:?}");
    // RocksDB itself has read the end of the last log wrongly, and let the log go.
    assert!(count(Start::RefusedForGood) > 0, "{seen:?}");
}

/// Starts a store one read of which is wrong, and lets the power fail as well, at one operation of that start. Whether it
/// came, and whether the next start is refused for what the first had read wrongly.
fn wrong_read_and_power_cut(fault: Fault, read: u64, op: Op, skip: u64) -> (bool, bool) {
    let mut machine = failed(read);
    machine.disk.inject(Rule { op: Op::Read, kind: None, skip: read, times: Some(1), fault });
    machine.disk.inject(Rule { op, kind: None, skip, times: Some(1), fault: Fault::PowerCut });
    let _ended = last(&machine);
    let cut = !machine.disk.is_powered();
    machine.disk.clear_rules();
    machine.power_off();
    machine.power_on();
    let next = last(&machine);
    let whole = next == Ok(Some(ENTRIES - 1));
    assert!(whole || next.is_err(), "{fault:?} at read {read}, {op:?} number {skip}: lost without a word: {next:?}");
    (cut, next.is_err())
}

/// G9: a start that has read its logs wrongly and let them go may itself be cut off before it can say so.
#[test]
fn a_start_that_read_wrongly_may_lose_its_power_before_it_says_so() {
    let mut reads = Vec::new();
    for fault in WRONG_READS {
        let starts = (0..).map(|read| (read, start_with_a_wrong_read(fault, read)));
        let starts = starts.take_while(|(_, start)| *start != Start::NoSuchRead);
        reads.extend(starts.filter(|(_, start)| *start == Start::RefusedForGood).map(|(read, _)| (fault, read)));
    }
    let mut refused = 0;
    for (fault, read) in reads {
        for op in [Op::Open, Op::Append, Op::Sync, Op::Rename, Op::Delete, Op::SyncDirectory] {
            for skip in 0.. {
                let (cut, next_refused) = wrong_read_and_power_cut(fault, read, op, skip);
                if !cut {
                    break;
                }
                refused += u64::from(next_refused);
            }
        }
    }
    assert!(refused > 0, "in some of them the logs were gone already");
}
