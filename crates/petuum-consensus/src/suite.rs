//! openraft's conformance suite for log and machine, on the real store: with the sync thread, and with callbacks that
//! come late and in reversed order.

use crate::compaction::Compaction;
use crate::log::LogStore;
use crate::machine::{Machine, SnapshotView};
use crate::recent::Room;
use crate::runtime::Rt;
use crate::settings::Settings;
use crate::snapshot::Shelf;
use crate::state::{Parts, Reason, StateMachine};
use crate::types::{Entry, LogId, Types, Vote};
use crate::{MachineError, record};
use bytes::Bytes;
use openraft::async_runtime::AsyncRuntime;
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::TypeConfigExt;
use openraft::{EntryPayload, LogState, OptionalSend, StorageError};
use petuum_storage::{Store, StoreOptions};
use petuum_types::{GroupId, LogIndex, limits};
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A machine whose state is its last index.
struct Last(u64);

impl Machine for Last {
    fn apply(&mut self, index: LogIndex, _entry: Bytes) -> Result<Bytes, MachineError> {
        self.0 = index.0;
        Ok(Bytes::new())
    }

    fn skip(&mut self, index: LogIndex) {
        self.0 = index.0;
    }

    fn view(&self) -> Box<dyn SnapshotView> {
        Box::new(LastView(Some(self.0)))
    }

    fn install(&mut self, pieces: &mut dyn Iterator<Item = Result<Bytes, MachineError>>) -> Result<(), MachineError> {
        for piece in pieces {
            self.0 = u64::from_be_bytes(piece?[..].try_into().expect("one number"));
        }
        Ok(())
    }
}

struct LastView(Option<u64>);

impl SnapshotView for LastView {
    fn next_piece(&mut self, _max_bytes: usize) -> Option<Bytes> {
        self.0.take().map(|last| Bytes::copy_from_slice(&last.to_be_bytes()))
    }
}

fn log_of(store: &Store, group: GroupId, frame_bytes: usize) -> LogStore {
    LogStore::new(store.group(group), frame_bytes, Arc::new(Room::new(limits::RECENT_NODE_BYTES_MAX)))
}

struct Stores {
    store: Store,
    next: AtomicU32,
}

impl Stores {
    fn parts(&self) -> (LogStore, StateMachine) {
        let group = GroupId(self.next.fetch_add(1, Ordering::Relaxed));
        let settings = Settings::default();
        let parts = Parts {
            shelf: Arc::new(Shelf::new(self.store.group(group)).unwrap()),
            compaction: Arc::new(Compaction::new(&settings, 0)),
            reason: Arc::new(Reason::default()),
            piece_bytes: settings.snapshot_piece_bytes,
        };
        let (mut machine, _) = StateMachine::new(group, Box::new(Last(0)), parts);
        machine.gapless = false;
        (log_of(&self.store, group, settings.frame_bytes), machine)
    }
}

impl StoreBuilder<Types, LogStore, StateMachine, ()> for Stores {
    async fn build(&self) -> Result<((), LogStore, StateMachine), StorageError<Types>> {
        let (log, machine) = self.parts();
        Ok(((), log, machine))
    }
}

fn run<F: Future>(future: F) -> F::Output {
    let mut runtime = Rt::new(2);
    runtime.set_seed(1);
    runtime.block_on(future)
}

fn opened() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    (dir, store)
}

#[test]
fn openrafts_suite_passes_with_the_sync_thread() {
    let (_dir, store) = opened();
    let sync = store.spawn_sync_thread();
    let stores = Stores { store: store.clone(), next: AtomicU32::new(1) };
    run(Suite::<Types, LogStore, StateMachine, _, ()>::test_all(stores)).unwrap();
    store.close();
    drop(store);
    sync.join().unwrap();
}

/// Runs every callback of a store late.
fn sync_late(store: &Store) -> tokio::task::JoinHandle<()> {
    let syncer = store.syncer();
    tokio::spawn(async move {
        while !syncer.is_finished() {
            tokio::time::sleep(Duration::from_millis(2)).await;
            // The store's own suite covers errors; here none is expected.
            drop(syncer.run_once());
        }
    })
}

/// Holds callbacks back until three wait or 5 ms are over, then calls them newest first.
#[derive(Clone)]
struct Reversed {
    inner: LogStore,
    held: tokio::sync::mpsc::UnboundedSender<(IOFlushed<Types>, io::Result<()>)>,
}

fn reversing(inner: LogStore) -> Reversed {
    let (held, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(first) = waiting.recv().await {
            let mut batch: Vec<(IOFlushed<Types>, io::Result<()>)> = vec![first];
            let more = async {
                while batch.len() < 3 {
                    let Some(next) = waiting.recv().await else { break };
                    batch.push(next);
                }
            };
            drop(tokio::time::timeout(Duration::from_millis(5), more).await);
            for (callback, outcome) in batch.into_iter().rev() {
                callback.io_completed(outcome);
            }
        }
    });
    Reversed { inner, held }
}

impl RaftLogReader<Types> for Reversed {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> io::Result<Vec<Entry>>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.inner.try_get_log_entries(range).await
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.inner.read_vote().await
    }
}

impl RaftLogStorage<Types> for Reversed {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        self.inner.get_log_state().await
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.inner.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        self.inner.save_vote(vote).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        self.inner.save_committed(committed).await
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        self.inner.read_committed().await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (sender, durable) = Types::oneshot();
        self.inner.append(entries, IOFlushed::signal(sender)).await?;
        let held = self.held.clone();
        tokio::spawn(async move { held.send((callback, durable.await.unwrap())) });
        Ok(())
    }

    async fn truncate_after(&mut self, last_kept: Option<LogId>) -> io::Result<()> {
        self.inner.truncate_after(last_kept).await
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        self.inner.purge(upto).await
    }
}

struct ReversedStores(Stores);

impl StoreBuilder<Types, Reversed, StateMachine, ()> for ReversedStores {
    async fn build(&self) -> Result<((), Reversed, StateMachine), StorageError<Types>> {
        let (log, machine) = self.0.parts();
        Ok(((), reversing(log), machine))
    }
}

#[test]
fn openrafts_suite_passes_with_callbacks_late_and_in_reversed_order() {
    let (_dir, store) = opened();
    run(async {
        let syncing = sync_late(&store);
        let stores = ReversedStores(Stores { store: store.clone(), next: AtomicU32::new(1) });
        Suite::<Types, Reversed, StateMachine, _, ()>::test_all(stores).await.unwrap();
        store.close();
        syncing.await.unwrap();
    });
}

fn entries(indices: std::ops::Range<u64>, bytes: usize) -> Vec<Entry> {
    indices
        .map(|index| Entry {
            log_id: record::Position { term: 1, index }.into(),
            payload: EntryPayload::Normal(crate::types::Payload::new(vec![7; bytes].into())),
        })
        .collect()
}

async fn append(log: &mut LogStore, entries: Vec<Entry>) {
    let (sender, durable) = Types::oneshot();
    log.append(entries, IOFlushed::signal(sender)).await.unwrap();
    durable.await.unwrap().unwrap();
}

fn with_log(frame_bytes: usize, test: impl AsyncFnOnce(LogStore)) {
    let (_dir, store) = opened();
    let sync = store.spawn_sync_thread();
    run(test(log_of(&store, GroupId(1), frame_bytes)));
    store.close();
    drop(store);
    sync.join().unwrap();
}

/// A reader that silently skips a hole would let a leader send a log with a gap.
#[test]
fn a_purged_beginning_is_an_error_for_replication() {
    with_log(1 << 20, async |mut log| {
        append(&mut log, entries(0..10, 10)).await;
        log.purge(record::Position { term: 1, index: 4 }.into()).await.unwrap();
        let error = log.limited_get_log_entries(3, 8).await.unwrap_err();
        assert!(error.to_string().contains("no entry 3"), "{error}");
        let read = log.limited_get_log_entries(5, 8).await.unwrap();
        assert_eq!(read.iter().map(|entry| entry.log_id.index).collect::<Vec<_>>(), [5, 6, 7]);
        assert!(log.limited_get_log_entries(10, 12).await.is_err(), "nothing is never an answer");
        // What is left of a range is for others to ask.
        assert_eq!(log.try_get_log_entries(0..100).await.unwrap().len(), 5);
    });
}

/// An empty batch would panic replication; an entry larger than the cap must still be returned.
#[test]
fn one_entry_is_returned_however_large_it_is_and_else_a_frame() {
    with_log(4096, async |mut log| {
        append(&mut log, entries(0..2, 100_000)).await;
        append(&mut log, entries(2..102, 1000)).await;
        assert_eq!(log.limited_get_log_entries(0, 102).await.unwrap().len(), 1);
        assert_eq!(log.limited_get_log_entries(1, 102).await.unwrap().len(), 1);
        assert_eq!(log.limited_get_log_entries(2, 102).await.unwrap().len(), 4);
    });
}

/// What is in memory is no more answered than what is on the disk.
#[test]
fn p22_a_closed_store_answers_nothing_from_memory() {
    let (_dir, store) = opened();
    let sync = store.spawn_sync_thread();
    let mut log = log_of(&store, GroupId(1), 4096);
    run(append(&mut log, entries(0..3, 10)));
    assert_eq!(run(log.limited_get_log_entries(0, 3)).unwrap().len(), 3);
    store.close();
    let error = run(log.limited_get_log_entries(0, 3)).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    drop((log, store));
    sync.join().unwrap();
}

#[test]
fn entries_to_apply_come_in_steps_and_without_a_hole() {
    use futures::StreamExt;
    with_log(4096, async |mut log| {
        append(&mut log, entries(0..30, 500_000)).await;
        let read: Vec<_> = log.entries_stream(3..30).await.collect().await;
        let indices: Vec<u64> = read.into_iter().map(|entry| entry.unwrap().log_id.index).collect();
        assert_eq!(indices, (3..30).collect::<Vec<_>>());
        log.purge(record::Position { term: 1, index: 9 }.into()).await.unwrap();
        let rest: Vec<_> = log.entries_stream(0..40).await.collect().await;
        assert_eq!(rest.len(), 20, "what is there of a range that is not there as a whole");
    });
}

/// What is purged survives, and so does where the log goes on.
#[test]
fn purged_and_vote_and_committed_survive_a_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let at = |index| LogId::from(record::Position { term: 1, index });
    let vote = Vote::from(record::Ballot { term: 9, node: 2, committed: true });
    for life in 0..3u64 {
        let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
        let sync = store.spawn_sync_thread();
        let mut log = log_of(&store, GroupId(1), 4096);
        run(async {
            if life > 0 {
                let state = log.get_log_state().await.unwrap();
                assert_eq!(state.last_purged_log_id, Some(at(life * 10 - 1)));
                assert_eq!(state.last_log_id, Some(at(life * 10 - 1)));
                assert_eq!(log.read_vote().await.unwrap(), Some(vote));
                assert_eq!(log.read_committed().await.unwrap(), Some(at(life * 10 - 1)));
            }
            append(&mut log, entries(life * 10..life * 10 + 10, 10)).await;
            log.save_committed(Some(at(life * 10 + 9))).await.unwrap();
            log.purge(at(life * 10 + 9)).await.unwrap();
            log.save_vote(&vote).await.unwrap();
        });
        drop(log);
        store.close();
        drop(store);
        sync.join().unwrap();
    }
}
