//! Has a group's state saved, and its log purged behind it, whenever the bookkeeping in `compaction` says so.

use crate::compaction::Compaction;
use crate::state::Raft;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a build that was asked for may take to begin: the machine is applying.
const BUILD_BEGINS: Duration = Duration::from_secs(30);
/// How long openraft may take to hear that a build is done.
const BUILD_NOTED: Duration = Duration::from_secs(30);

/// Saves and purges whenever it is due, one build at a time per permit. Ends when the group's core has ended.
pub(crate) async fn drive(raft: Raft, compaction: Arc<Compaction>, builds: Arc<Semaphore>) {
    loop {
        compaction.due.notified().await;
        if !compaction.is_due() {
            continue;
        }
        let _permit = builds.acquire().await.expect("never closed");
        let ended = compaction.wait_for_build();
        if raft.trigger().snapshot().await.is_err() {
            return;
        }
        if tokio::time::timeout(BUILD_BEGINS, compaction.begun.notified()).await.is_err() {
            // Nothing applied yet, or the machine is busy: looked at again with the next entry.
            continue;
        }
        // An error only means that the sender is gone: the build ended.
        drop(ended.await);
        let saved = compaction.saved_index();
        let wait = raft.wait(Some(BUILD_NOTED));
        if wait.metrics(|m| m.snapshot.map(|id| id.index) >= saved, "the snapshot is noted").await.is_err() {
            continue;
        }
        if let Some(upto) = compaction.purge_upto()
            && raft.trigger().purge_log(upto).await.is_err()
        {
            return;
        }
    }
}
