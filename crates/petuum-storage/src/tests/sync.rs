//! The syncer: batching, order, failure, the end of a store.

use super::{Opened, append, ignore, small, watched};
use crate::{Error, GroupStore, Record, Store};
use petuum_types::GroupId;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Puts a device in the place of the store's newest WAL, under RocksDB's own file descriptor: `/dev/null` takes every
/// write and refuses every fsync, `/dev/full` refuses every write.
#[expect(unsafe_code, reason = "an open file descriptor of RocksDB has no other handle")]
fn replace_wal(dir: &Path, device: &str) {
    let device = std::fs::OpenOptions::new().write(true).open(device).unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let target = std::fs::read_link(entry.path()).ok()?;
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        (target.parent() == Some(dir) && target.extension().is_some_and(|ext| ext == "log")).then_some((target, number))
    });
    let (_, number) = open.max().expect("the WAL is open");
    // SAFETY: the descriptor is open, as the store is; it is not closed here, because ownership is given up again.
    let mut wal = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::dup2(&device, &mut wal).unwrap();
    std::mem::forget(wal);
}

fn is_poisoned<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Poisoned { .. }))
}

/// Everything a store can be asked.
fn assert_refuses_everything(store: &Store, group: &GroupStore) {
    assert!(store.poisoned().is_some());
    assert!(is_poisoned(group.read(0, 1, 1)));
    assert!(is_poisoned(group.last()));
    assert!(is_poisoned(group.get_record(Record::Vote)));
    assert!(is_poisoned(group.snapshot()));
    assert!(is_poisoned(group.begin_snapshot()));
    assert!(is_poisoned(group.purge(0, b"")));
    assert!(is_poisoned(group.truncate_after(None)));
    assert!(is_poisoned(group.destroy()));
    assert!(is_poisoned(store.identity()));
    assert!(is_poisoned(store.next_boot(1)));
    let (done, outcome) = watched();
    assert!(is_poisoned(group.put_record(Record::Vote, b"", Some(done))));
    assert!(is_poisoned(outcome.recv().unwrap()));
    let (done, outcome) = watched();
    assert!(is_poisoned(group.append([(1, b"x")], done)));
    assert!(is_poisoned(outcome.recv().unwrap()));
}

#[test]
fn one_sync_serves_all_who_wait_and_none_who_comes_later() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    assert_eq!(opened.sync(), 0);
    let order: Arc<Mutex<Vec<u64>>> = Arc::default();
    let late = opened.group(9);
    for number in 0..3u64 {
        let (order, late) = (order.clone(), late.clone());
        let done = move |outcome: Result<(), Error>| {
            outcome.unwrap();
            order.lock().unwrap().push(number);
            // Written while the sync that calls is under way.
            let order = order.clone();
            late.append([(number, b"late")], Box::new(move |_| order.lock().unwrap().push(number + 10))).unwrap();
        };
        opened.group(u32::try_from(number).unwrap()).append([(0, b"entry")], Box::new(done)).unwrap();
    }
    assert_eq!(opened.sync(), 3);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    assert_eq!(opened.sync(), 3);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 10, 11, 12]);
    assert_eq!(opened.sync(), 0);
}

#[test]
fn an_append_of_nothing_waits_for_what_was_written_before() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let (done, outcome) = watched();
    opened.group(1).append([(0, b""); 0], done).unwrap();
    assert!(outcome.try_recv().is_err());
    assert_eq!(opened.sync(), 1);
    outcome.recv().unwrap().unwrap();
}

#[test]
fn the_waker_is_called_when_work_begins_and_when_it_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let woken = Arc::new(AtomicUsize::new(0));
    append(&opened.group(1), 0..=0);
    let count = woken.clone();
    opened.syncer.on_work(Box::new(move || _ = count.fetch_add(1, Ordering::SeqCst)));
    let woken = || woken.load(Ordering::SeqCst);
    assert_eq!(woken(), 1, "somebody waited already");
    append(&opened.group(1), 1..=1);
    assert_eq!(woken(), 1, "the syncer knows");
    opened.sync();
    append(&opened.group(1), 2..=2);
    assert_eq!(woken(), 2);
    assert!(!opened.syncer.is_finished());
    opened.store.close();
    assert_eq!(woken(), 3);
    assert!(opened.syncer.is_finished());
    assert_eq!(opened.sync(), 1, "what was written before the close is synced");
}

#[test]
#[should_panic(expected = "has a syncer already")]
fn there_is_one_syncer() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let _second = opened.store.syncer();
}

#[test]
fn a_failed_sync_ends_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    append(&group, 0..=4);
    opened.sync();
    replace_wal(dir.path(), "/dev/null");
    let waiting: Vec<_> = (5..8u64)
        .map(|index| {
            let (done, outcome) = watched();
            group.append([(index, b"unsynced")], done).unwrap();
            outcome
        })
        .collect();
    let told = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let told = told.clone();
        opened.store.on_poison(Box::new(move |error| {
            assert!(matches!(error, Error::Poisoned { .. }));
            told.fetch_add(1, Ordering::SeqCst);
        }));
    }
    assert!(opened.store.poisoned().is_none());
    let error = opened.syncer.run_once().unwrap_err();
    assert!(matches!(&error, Error::RocksDb { doing: "sync its log", .. }), "{error}");
    for outcome in waiting {
        let told = outcome.recv().unwrap().unwrap_err().to_string();
        assert!(told.contains("sync its log") && told.contains(&dir.path().display().to_string()), "{told}");
    }
    assert_eq!(told.load(Ordering::SeqCst), 2);
    let again = told.clone();
    opened.store.on_poison(Box::new(move |_| _ = again.fetch_add(1, Ordering::SeqCst)));
    assert_eq!(told.load(Ordering::SeqCst), 3, "who asks later is told at once");
    assert!(is_poisoned(opened.syncer.run_once()), "a sync is never tried again");
    assert_refuses_everything(&opened.store, &group);
    assert_eq!(told.load(Ordering::SeqCst), 3, "nobody is told twice");
    drop((opened, group));

    let reopened = Opened::at(dir.path());
    assert_eq!(super::indices(&reopened.group(1), 0, 100), [0, 1, 2, 3, 4]);
}

#[test]
fn a_failed_write_ends_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    append(&group, 0..=4);
    opened.sync();
    let (done, waiting) = watched();
    group.append([(5, b"written, not synced")], done).unwrap();
    replace_wal(dir.path(), "/dev/full");
    let (done, outcome) = watched();
    let error = opened.group(2).append([(0, b"refused")], done).unwrap_err();
    assert!(matches!(&error, Error::RocksDb { doing: "write", .. }), "{error}");
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(matches!(outcome.recv().unwrap(), Err(Error::RocksDb { .. })));
    assert!(is_poisoned(waiting.recv().unwrap()), "who waited in another group is told without a sync");
    assert_refuses_everything(&opened.store, &group);
    assert!(is_poisoned(opened.syncer.run_once()));
    drop((opened, group));
    assert!(Opened::at(dir.path()).group(1).last().unwrap().unwrap().0 >= 4);
}

#[test]
fn a_sync_without_a_write_of_its_own_waits_for_those_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    let (done, first) = watched();
    group.append([(0, b"written")], done).unwrap();
    let (done, outcome) = watched();
    opened.store.sync(done).unwrap();
    assert!(outcome.try_recv().is_err(), "nothing was synced yet");
    assert_eq!(opened.syncer.run_once().unwrap(), 2);
    first.recv().unwrap().unwrap();
    outcome.recv().unwrap().unwrap();
    opened.store.close();
    let (done, outcome) = watched();
    assert!(matches!(opened.store.sync(done), Err(Error::Closed { .. })));
    assert!(matches!(outcome.recv().unwrap(), Err(Error::Closed { .. })));
}

#[test]
fn a_sync_thread_ends_with_a_failure_and_tells_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), small()).unwrap();
    let thread = store.spawn_sync_thread();
    let group = store.group(GroupId(1));
    let (done, outcome) = watched();
    group.append([(0, b"synced")], done).unwrap();
    outcome.recv().unwrap().unwrap();
    replace_wal(dir.path(), "/dev/null");
    let (done, outcome) = watched();
    group.append([(1, b"unsynced")], done).unwrap();
    assert!(is_poisoned(outcome.recv().unwrap()));
    thread.join().unwrap();
    assert_refuses_everything(&store, &group);
    store.close();
    assert_eq!(Opened::at(dir.path()).group(1).last().unwrap().unwrap().0, 0, "closed, though handles remain");
}

#[test]
fn a_callback_that_panics_ends_the_store_and_leaves_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), small()).unwrap();
    let group = store.group(GroupId(1));
    group.append([(0, b"x")], Box::new(|_| panic!("a defect of the caller"))).unwrap();
    let (done, outcome) = watched();
    group.append([(1, b"x")], done).unwrap();
    assert!(store.spawn_sync_thread().join().is_err());
    assert!(outcome.recv().unwrap().is_err());
    assert_refuses_everything(&store, &group);
}

#[test]
fn closing_completes_what_is_queued() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), small()).unwrap();
    let group = store.group(GroupId(1));
    let (done, outcome) = watched();
    group.append([(0, b"x")], done).unwrap();
    store.close();
    assert!(matches!(outcome.recv().unwrap(), Err(Error::Closed { .. })), "without a syncer nobody knows");
    assert!(matches!(group.last(), Err(Error::Closed { .. })));
    let (done, outcome) = watched();
    assert!(matches!(group.append([(1, b"x")], done), Err(Error::Closed { .. })));
    assert!(matches!(outcome.recv().unwrap(), Err(Error::Closed { .. })));

    let store = Store::open(dir.path(), small()).expect("closed, though handles remain");
    let group = store.group(GroupId(1));
    let thread = store.spawn_sync_thread();
    let (done, outcome) = watched();
    group.append([(1, b"x")], done).unwrap();
    store.close();
    thread.join().unwrap();
    outcome.recv().unwrap().expect("the thread syncs what was queued before it ends");
    drop(Opened::at(dir.path()));
}

#[test]
fn dropping_the_last_handle_ends_the_sync_thread() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), small()).unwrap();
    let thread = store.spawn_sync_thread();
    let group = store.group(GroupId(1));
    drop(store);
    // A callback that holds a handle must not keep the store alive for ever.
    let held = group.clone();
    let (sender, outcome) = std::sync::mpsc::channel();
    let done = move |result| {
        let _held = held;
        sender.send(result).unwrap();
    };
    group.append([(0, b"x")], Box::new(done)).unwrap();
    drop(group);
    thread.join().unwrap();
    outcome.recv().unwrap().unwrap();
    assert_eq!(Opened::at(dir.path()).group(1).last().unwrap().unwrap().1, "x");
}

#[test]
fn many_groups_from_many_threads() {
    const GROUPS: u32 = 4;
    const ENTRIES: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), small()).unwrap();
    let syncer = store.spawn_sync_thread();
    let synced = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..GROUPS {
            let (group, synced) = (store.group(GroupId(number)), synced.clone());
            scope.spawn(move || {
                for index in 0..ENTRIES {
                    let synced = synced.clone();
                    let done = move |outcome: Result<(), Error>| {
                        outcome.unwrap();
                        synced.fetch_add(1, Ordering::SeqCst);
                    };
                    group.append([(index, vec![index.to_le_bytes()[0]; 500])], Box::new(done)).unwrap();
                    assert_eq!(group.last().unwrap().unwrap().0, index);
                    if index % 50 == 49 {
                        group.purge(index - 20, &index.to_be_bytes()).unwrap();
                        let mut writer = group.begin_snapshot().unwrap();
                        writer.push(&index.to_be_bytes()).unwrap();
                        writer.publish(&index.to_be_bytes(), ignore()).unwrap();
                    }
                }
            });
            let group = store.group(GroupId(number));
            scope.spawn(move || {
                // A reader beside the writer: always one whole snapshot, never a mix.
                while group.last().unwrap().is_none_or(|(last, _)| last + 1 < ENTRIES) {
                    if let Some(snapshot) = group.snapshot().unwrap() {
                        let pieces: Vec<_> = snapshot.pieces().map(Result::unwrap).collect();
                        assert_eq!(pieces, [snapshot.manifest().to_vec()]);
                    }
                }
            });
        }
    });
    drop(store);
    syncer.join().unwrap();
    assert_eq!(synced.load(Ordering::SeqCst), GROUPS as usize * usize::try_from(ENTRIES).unwrap());
    let opened = Opened::at(dir.path());
    for number in 0..GROUPS {
        let group = opened.group(number);
        assert_eq!(group.purged().unwrap().unwrap().0, ENTRIES - 21);
        assert_eq!(super::indices(&group, ENTRIES - 20, ENTRIES).len(), 20);
    }
}
