//! A group's saved state: built from a view, or received from a leader, then published in the store.
//!
//! Invariants: what a snapshot says it contains is durable before anybody is told of it; an older one never replaces
//! a newer one, whoever finishes last; a build yields between pieces.

use crate::compaction::Compaction;
use crate::log::{durably, io_error};
use crate::machine::SnapshotView;
use crate::record::{Manifest, Position, encode_position};
use crate::types::{SnapshotMeta, Types};
use openraft::RaftSnapshotBuilder;
use petuum_chaos::{Buggify, Failpoint, Mutant, clumsy, mutated, reached};
use petuum_storage::{GroupStore, SnapshotWriter};
use petuum_types::codec;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// What travels with a snapshot's meta inside openraft.
pub(crate) enum SnapshotData {
    /// Published in a store.
    Stored(petuum_storage::Snapshot),
    /// Received from a leader, whole and checked, not yet published.
    Received(SnapshotWriter),
}

/// A snapshot as openraft passes it on.
pub(crate) type Snapshot = openraft::alias::SnapshotOf<Types, SnapshotData>;

/// Where a group's snapshots are published.
pub(crate) struct Shelf {
    store: GroupStore,
    /// Up to where the published one goes. Held while publishing, so that two writers have an order.
    published: Mutex<Option<Position>>,
}

impl Shelf {
    pub(crate) fn new(store: GroupStore) -> io::Result<Self> {
        let shelf = Self { store, published: Mutex::new(None) };
        let found = shelf.current()?.and_then(|snapshot| last_position(&snapshot.meta));
        *shelf.published.lock().expect("nothing panics while it is held") = found;
        Ok(shelf)
    }

    pub(crate) fn begin(&self) -> Result<SnapshotWriter, petuum_storage::Error> {
        self.store.begin_snapshot()
    }

    /// A snapshot of another store, not yet published here.
    pub(crate) fn copy(&self, elsewhere: &petuum_storage::Snapshot) -> io::Result<SnapshotWriter> {
        let mut writer = self.begin().map_err(io_error)?;
        for piece in elsewhere.pieces() {
            writer.push(&piece.map_err(io_error)?).map_err(io_error)?;
        }
        Ok(writer)
    }

    /// The published snapshot as the store knows it.
    pub(crate) fn stored(&self) -> io::Result<Option<petuum_storage::Snapshot>> {
        self.store.snapshot().map_err(io_error)
    }

    /// The published snapshot.
    pub(crate) fn current(&self) -> io::Result<Option<Snapshot>> {
        let Some(stored) = self.stored()? else { return Ok(None) };
        let damaged = |reason: String| {
            let (dir, group) = (self.store.store().dir().display(), self.store.id());
            io_error(format!("{dir}: the manifest of the snapshot of {group} is damaged: {reason}"))
        };
        let manifest: Manifest = codec::decode(stored.manifest()).map_err(|error| damaged(error.to_string()))?;
        let meta = manifest.into_meta().map_err(damaged)?;
        Ok(Some(Snapshot { meta, snapshot: SnapshotData::Stored(stored) }))
    }

    /// Purges what a snapshot will hold before it is written; only a defect calls this.
    fn purge_early(&self, meta: &SnapshotMeta) -> io::Result<()> {
        let Some(last) = &meta.last_log_id else { return Ok(()) };
        self.store.purge(last.index, &encode_position(Some(last))).map_err(io_error)
    }

    /// Whether exactly this is published.
    pub(crate) fn has(&self, meta: &SnapshotMeta) -> bool {
        *self.published.lock().expect("nothing panics while it is held") == last_position(meta)
    }

    /// Publishes, and waits until that is durable. Does nothing if a newer one is published already.
    pub(crate) async fn publish(&self, meta: &SnapshotMeta, writer: SnapshotWriter) -> io::Result<()> {
        let manifest = codec::encode(&Manifest::from(meta));
        let last = last_position(meta);
        let mut older = false;
        let durable = durably(|done| {
            let mut published = self.published.lock().expect("nothing panics while it is held");
            if published.is_some_and(|there| last.is_none_or(|new| (new.term, new.index) < (there.term, there.index))) {
                older = true;
                drop(published);
                done(Ok(()));
                return Ok(());
            }
            writer.publish(&manifest, done)?;
            *published = last;
            Ok(())
        });
        reached(Failpoint::SnapshotBeforePublish);
        durable.await?;
        reached(Failpoint::SnapshotAfterPublish);
        if older {
            tracing::info!(group = %self.store.id(), ?last, "a newer snapshot was published meanwhile");
        }
        Ok(())
    }
}

fn last_position(meta: &SnapshotMeta) -> Option<Position> {
    meta.last_log_id.as_ref().map(Position::from)
}

/// Builds one snapshot, in a task of its own.
pub(crate) struct Builder {
    /// Never contended; only so that a view need not be `Sync`.
    pub(crate) view: Mutex<Box<dyn SnapshotView>>,
    pub(crate) meta: SnapshotMeta,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) compaction: Arc<Compaction>,
    pub(crate) piece_bytes: usize,
    /// Dropped when this is, on whatever path: whoever waits for the build then goes on.
    pub(crate) _ended: Option<oneshot::Sender<()>>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        reached(Failpoint::SnapshotBeforeBuild);
        let mut writer = self.shelf.begin().map_err(io_error)?;
        if clumsy(Buggify::PieceSmall) {
            self.piece_bytes = self.piece_bytes.min(512);
        }
        if mutated(Mutant::PurgeBeforeSnapshot) {
            self.shelf.purge_early(&self.meta)?;
        }
        loop {
            let view = self.view.get_mut().expect("nothing panics while it is held");
            let Some(piece) = view.next_piece(self.piece_bytes) else { break };
            if clumsy(Buggify::PieceLate) {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            writer.push(&piece).map_err(io_error)?;
            reached(Failpoint::SnapshotAfterPiece);
            tokio::task::yield_now().await;
        }
        self.shelf.publish(&self.meta, writer).await?;
        self.compaction.saved(&self.meta);
        let stored = self.shelf.stored()?.expect("one was just published");
        Ok(Snapshot { meta: self.meta.clone(), snapshot: SnapshotData::Stored(stored) })
    }
}
