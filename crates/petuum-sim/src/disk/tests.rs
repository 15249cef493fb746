//! RocksDB itself on the simulated disk: what it recovers after power failures and how it takes errors.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use petuum_storage::LogFiles;
use rocksdb::{DB, Options, WriteBatch};

use super::*;

const WRITE_BUFFER_SMALL: usize = 64 << 10;
const WRITE_BUFFER_LARGE: usize = 64 << 20;
const VALUE_BYTES: usize = 512;

fn open(disk: &Disk, write_buffer: usize) -> Result<DB, rocksdb::Error> {
    let mut options = Options::default();
    disk.configure(&mut options);
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_write_buffer_size(write_buffer);
    options.set_max_background_jobs(2);
    DB::open_cf_with_opts(&options, Disk::ROOT, [("log", options.clone()), ("state", options.clone())])
}

/// Writes rows `from..to` to both families, one batch per row.
fn put(db: &DB, from: u64, to: u64) -> Result<(), rocksdb::Error> {
    let families = ["log", "state"].map(|name| db.cf_handle(name).unwrap());
    for row in from..to {
        let mut batch = WriteBatch::default();
        for family in families {
            batch.put_cf(family, row.to_be_bytes(), [row.to_le_bytes()[0]; VALUE_BYTES]);
        }
        db.write(batch)?;
    }
    Ok(())
}

/// The number of rows, after checking that both families hold exactly the rows `0..n` with their values.
fn rows(db: &DB) -> u64 {
    let [log, state] = ["log", "state"].map(|name| {
        let mut next = 0;
        for entry in db.iterator_cf(db.cf_handle(name).unwrap(), rocksdb::IteratorMode::Start) {
            let (key, value) = entry.unwrap();
            assert_eq!(*key, u64::to_be_bytes(next), "a hole in {name}");
            assert_eq!(*value, [next.to_le_bytes()[0]; VALUE_BYTES]);
            next += 1;
        }
        next
    });
    assert_eq!(log, state, "the families differ");
    log
}

/// The three steps of a power failure.
fn fail_power(disk: &Disk, db: DB, seed: u64) -> Lost {
    disk.power_off();
    drop(db);
    disk.power_on(seed)
}

/// What is left after a power failure with each of some seeds, each number of rows once. Each try is a fresh disk.
fn survivors(scenario: impl Fn(&DB)) -> BTreeSet<u64> {
    let survivors = |seed| {
        let disk = Disk::new();
        // A database whose first log is durable.
        drop(open(&disk, WRITE_BUFFER_LARGE).unwrap());
        let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
        scenario(&db);
        fail_power(&disk, db, seed);
        rows(&open(&disk, WRITE_BUFFER_LARGE).unwrap())
    };
    (0..64).map(survivors).collect()
}

#[test]
fn of_unsynced_writes_any_number_may_survive() {
    let survived = survivors(|db| put(db, 0, 10).unwrap());
    assert!(survived.contains(&0) && survived.contains(&10) && survived.len() > 4, "{survived:?}");
}

#[test]
fn synced_writes_survive_whatever_others_do() {
    let survived = survivors(|db| {
        put(db, 0, 10).unwrap();
        db.flush_wal(true).unwrap();
        put(db, 10, 20).unwrap();
    });
    assert!(survived.first() == Some(&10) && survived.len() > 4, "{survived:?}");
}

#[test]
fn a_dead_process_loses_nothing() {
    let disk = Disk::new();
    let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    put(&db, 0, 10).unwrap();
    disk.power_off();
    assert!(put(&db, 10, 11).is_err(), "without power nothing works");
    drop(db);
    disk.power_on_intact();
    assert_eq!(rows(&open(&disk, WRITE_BUFFER_LARGE).unwrap()), 10);
}

#[test]
fn flushes_log_switches_and_compactions_are_survived() {
    let disk = Disk::new();
    let mut written = 0;
    for seed in 0..4 {
        let db = open(&disk, WRITE_BUFFER_SMALL).unwrap();
        written = rows(&db).max(written);
        put(&db, written, written + 200).unwrap();
        for family in ["log", "state"] {
            db.flush_cf(db.cf_handle(family).unwrap()).unwrap();
        }
        put(&db, written + 200, written + 400).unwrap();
        for family in ["log", "state"] {
            db.compact_range_cf(db.cf_handle(family).unwrap(), None::<&[u8]>, None::<&[u8]>);
        }
        put(&db, written + 400, written + 410).unwrap();
        db.flush_wal(true).unwrap();
        written += 410;
        fail_power(&disk, db, seed);
        assert_eq!(rows(&open(&disk, WRITE_BUFFER_SMALL).unwrap()), written);
    }
}

/// Flushes pending over a power failure, a log switch at a time; returns what was recovered and what happened.
fn pending(seed: u64) -> (Vec<u64>, Counters) {
    let disk = Disk::new();
    disk.hold_background_jobs(seed, 6);
    let mut recovered = Vec::new();
    for life in 0..20 {
        let db = open(&disk, WRITE_BUFFER_SMALL).unwrap();
        let next = rows(&db);
        recovered.push(next);
        for step in 0..40 {
            // Reads have taken random numbers by the number of table files.
            seed_thread(seed ^ next ^ step);
            put(&db, next + 10 * step, next + 10 * step + 10).unwrap();
            disk.step();
        }
        db.flush_wal(true).unwrap();
        fail_power(&disk, db, seed ^ life);
    }
    (recovered, disk.counters())
}

#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the operating system get real time to go wrong in")]
fn queued_jobs_run_at_a_step_or_a_new_log_and_at_no_other_time() {
    let disk = Disk::new();
    disk.run_jobs_between_steps();
    let db = open(&disk, WRITE_BUFFER_SMALL).unwrap();
    let count = |what: &str| db.property_int_value_cf(db.cf_handle("log").unwrap(), what).unwrap().unwrap();
    let (pending, tables) = ("rocksdb.num-immutable-mem-table", "rocksdb.num-files-at-level0");
    let (mut written, mut most_tables) = (0, 0);
    for step in 0..20 {
        while count(pending) == 0 {
            put(&db, written, written + 1).unwrap();
            written += 1;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(count(pending), 1, "step {step}: a job ran beside the writer");
        if step % 3 == 0 {
            // Into the next log: its beginning lets the flush run, or this writer would wait for ever.
            put(&db, written, written + 500).unwrap();
            written += 500;
        }
        disk.step();
        assert_eq!(count(pending), 0, "step {step}: a job did not run");
        most_tables = most_tables.max(count(tables));
    }
    assert!(most_tables > 0);
    fail_power(&disk, db, 1);
}

#[test]
fn held_jobs_stay_pending_begin_at_a_step_and_never_stop_a_writer() {
    let (recovered, counters) = pending(1);
    assert_eq!(recovered, (0..20).map(|life| 400 * life).collect::<Vec<_>>(), "all was synced");
    assert!(counters.jobs_held > 20, "{counters:?}");
}

#[test]
fn a_lying_disk_loses_what_was_synced() {
    let disk = Disk::new();
    disk.set_sync_ignored(true);
    let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    put(&db, 0, 10).unwrap();
    db.flush_wal(true).unwrap();
    fail_power(&disk, db, 1);
    assert_eq!(rows(&open(&disk, WRITE_BUFFER_LARGE).unwrap()), 0);
}

#[test]
fn a_failed_log_sync_is_reported_and_stays() {
    let disk = Disk::new();
    let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    put(&db, 0, 10).unwrap();
    db.flush_wal(true).unwrap();
    put(&db, 10, 11).unwrap();
    disk.inject(Rule::once(Op::Sync, FileKind::Wal, Fault::Eio));
    let error = db.flush_wal(true).unwrap_err().to_string();
    assert!(error.contains("injected EIO"), "{error}");
    assert!(put(&db, 11, 12).is_err(), "the database takes no more writes");
    assert_eq!(disk.counters().injected, 1);
    fail_power(&disk, db, 3);
    assert_eq!(rows(&open(&disk, WRITE_BUFFER_LARGE).unwrap()), 10);
}

#[test]
fn a_full_disk_is_reported_and_mended_by_a_reopen() {
    let disk = Disk::new();
    let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    put(&db, 0, 10).unwrap();
    disk.inject(Rule::once(Op::Append, FileKind::Wal, Fault::Enospc));
    let error = put(&db, 10, 11).unwrap_err().to_string();
    assert!(error.contains("injected ENOSPC"), "{error}");
    drop(db);
    let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    let next = rows(&db);
    put(&db, next, next + 1).unwrap();
}

#[test]
fn a_failed_manifest_write_stops_the_open_and_the_next_one_works() {
    let disk = Disk::new();
    drop(open(&disk, WRITE_BUFFER_LARGE).unwrap());
    disk.inject(Rule::once(Op::Append, FileKind::Manifest, Fault::Enospc));
    assert!(open(&disk, WRITE_BUFFER_LARGE).is_err());
    assert_eq!(rows(&open(&disk, WRITE_BUFFER_LARGE).unwrap()), 0);
}

#[test]
fn a_power_cut_inside_a_flush_is_survived() {
    let mut cuts = 0;
    for skip in 0..6 {
        let disk = Disk::new();
        let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
        put(&db, 0, 50).unwrap();
        db.flush_wal(true).unwrap();
        disk.inject(Rule { op: Op::Sync, kind: None, skip, times: Some(1), fault: Fault::PowerCut });
        let outcome = db.flush_cf(db.cf_handle("log").unwrap());
        assert_eq!(outcome.is_err(), !disk.is_powered());
        cuts += disk.counters().injected;
        disk.clear_rules();
        fail_power(&disk, db, skip);
        assert_eq!(rows(&open(&disk, WRITE_BUFFER_LARGE).unwrap()), 50);
    }
    assert!(cuts >= 3, "a flush syncs the table, its folder and the manifest");
}

#[test]
fn one_disk_is_opened_once_at_a_time() {
    let disk = Disk::new();
    let db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    assert!(open(&disk, WRITE_BUFFER_LARGE).is_err());
    drop(db);
    open(&disk, WRITE_BUFFER_LARGE).unwrap();
}

#[test]
#[should_panic(expected = "the database must be dropped")]
fn power_does_not_come_back_under_an_open_database() {
    let disk = Disk::new();
    let _db = open(&disk, WRITE_BUFFER_LARGE).unwrap();
    disk.power_off();
    disk.power_on(1);
}

#[test]
fn folders_are_made_with_their_parents_and_logs_can_be_read() {
    let disk = Disk::new();
    // The bindings make the folder in the real file system too.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut options = Options::default();
    disk.configure(&mut options);
    options.create_if_missing(true);
    let db = DB::open(&options, &path).unwrap();
    db.put("key", "a value to be found").unwrap();
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "RocksDB's files are on the simulated disk only");
    let names = disk.list(&path).unwrap();
    let log = names.iter().find(|name| FileKind::of(name) == FileKind::Wal).unwrap();
    let content = || {
        let mut bytes = Vec::new();
        disk.open(&path, log).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let at = content().windows(19).position(|bytes| bytes == b"a value to be found").unwrap();
    disk.overwrite(&path, log, at as u64, b'A').unwrap();
    disk.cut(&path, log, at as u64 + 7).unwrap();
    assert_eq!(content()[at..], *b"A value");
    assert_eq!(disk.list(Path::new("/elsewhere")).unwrap(), Vec::<String>::new());
    assert!(disk.open(&path, "000000.log").is_err() && disk.cut(&path, "000000.log", 0).is_err());
}
