//! Batches, their answers, and the end of the node when a gatherer breaks.

use super::*;
use crate::ending::Stopped;
use petuum_consensus::{Consensus, Machine, MachineError, Parts, SnapshotView};
use petuum_net::transport::Tcp;
use petuum_storage::{Store, StoreOptions};
use petuum_types::{ClusterId, ErrorKind, GroupId, LogIndex, NodeId};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Semaphore;

fn pending(sequence: u64, bytes: usize) -> Pending {
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let (replies, _) = mpsc::unbounded_channel();
    Pending { bytes: vec![0; bytes].into(), job: JobId(1), sequence: Sequence(sequence), replies, permit }
}

fn waiting(messages: impl IntoIterator<Item = Pending>) -> Waiting {
    let mut waiting = Waiting::default();
    messages.into_iter().for_each(|message| waiting.push(message));
    waiting
}

fn sequences(batch: &[Pending]) -> Vec<u64> {
    batch.iter().map(|p| p.sequence.0).collect()
}

#[test]
fn p8_messages_that_wait_together_share_an_entry_in_order_up_to_its_cap() {
    let mut waiting = waiting((0..=4).map(|n| pending(n, 100)));
    // Room for the header and three messages.
    assert_eq!(sequences(&waiting.next_entry(8 + 3 * 104)), [0, 1, 2]);
    assert_eq!(sequences(&waiting.next_entry(8 + 3 * 104)), [3, 4]);
    assert_eq!((waiting.messages.len(), waiting.bytes), (0, 0));
}

#[test]
fn p8_one_message_larger_than_the_cap_still_goes() {
    assert_eq!(waiting([pending(0, 500), pending(1, 500)]).next_entry(100).len(), 1);
}

#[test]
fn p8_a_lone_message_goes_at_once_a_small_queue_waits_for_the_entry_before_and_a_large_one_does_not() {
    let (small, large) = (waiting([pending(0, 100)]), waiting([pending(0, limits::RAFT_FRAME_BYTES)]));
    assert!(small.may_go(0, 8) && !small.may_go(1, 8));
    assert!(large.may_go(7, 8) && !large.may_go(8, 8));
    assert!(!Waiting::default().may_go(0, 8));
}

#[test]
fn a_proposal_that_was_not_appended_is_retryable_and_one_of_unknown_outcome_says_so() {
    let not_leader = ProposeError::NotLeader { leader: None };
    assert_eq!(outcomes(1, Err(not_leader)), Err(Retry::NotLeader { leader: None }));
    let unknown = outcomes(1, Err(ProposeError::Unknown { reason: "stopped".into() }));
    assert!(matches!(unknown, Err(Retry::Unknown(_))), "{unknown:?}");
}

/// Answers no message of an entry, which breaks what a gatherer relies on.
struct Mute;

impl Machine for Mute {
    fn apply(&mut self, _: LogIndex, _: Bytes) -> Result<Bytes, MachineError> {
        Ok(codec::encode(&Vec::<Outcome>::new()).into())
    }

    fn skip(&mut self, _: LogIndex) {}

    fn view(&self) -> Box<dyn SnapshotView> {
        Box::new(Self)
    }

    fn install(&mut self, _: &mut dyn Iterator<Item = Result<Bytes, MachineError>>) -> Result<(), MachineError> {
        Ok(())
    }
}

impl SnapshotView for Mute {
    fn next_piece(&mut self, _: usize) -> Option<Bytes> {
        None
    }
}

#[tokio::test]
async fn a_panic_while_gathering_ends_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    let syncing = store.spawn_sync_thread();
    let members = BTreeMap::from([(NodeId(1), "127.0.0.1:1".to_owned())]);
    let consensus = Consensus::new(Parts {
        cluster: ClusterId(1),
        node: NodeId(1),
        store: store.clone(),
        connector: Arc::new(Tcp),
        addresses: members.clone(),
        settings: petuum_consensus::Settings::default(),
        seed: 1,
    });
    let consensus = consensus.unwrap();
    let id = GroupId::of_shard(ShardId(0));
    let group = consensus.start_group(id, members, Arc::new(|| Box::new(Mute))).await.unwrap();
    group.initialize().await.unwrap();
    while !group.status().is_leader() {
        group.changed().await;
    }
    let ending = Ending::new();
    let cell = ShardCell::new(ShardId(0), petuum_shard::Settings::default());
    let (watermark, _watching) = Watermark::watch(store.clone(), 0, Duration::from_secs(1));
    let gatherer = Gatherer::start(cell, group, watermark, &NodeSettings::default(), &ending);
    assert!(gatherer.queue.send(pending(0, 100)).is_ok());
    let why = tokio::time::timeout(Duration::from_secs(10), ending.wait()).await.unwrap();
    assert!(matches!(&why, Stopped::Failed(error) if error.kind() == ErrorKind::Internal), "{why:?}");
    consensus.shutdown().await;
    store.close();
    // A process that ends while RocksDB is being closed can crash in the destructors of both.
    while !syncing.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
