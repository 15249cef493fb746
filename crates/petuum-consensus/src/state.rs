//! The machine of one replica, as openraft wants it: applies, saves, installs. It holds the rule that a machine's
//! state is only ever what the log says up to `applied`.

use crate::compaction::Compaction;
use crate::error::MachineError;
use crate::log::io_error;
use crate::machine::Machine;
use crate::runtime::keeping_the_thread;
use crate::snapshot::{Builder, Shelf, Snapshot, SnapshotData};
use crate::types::{Answer, AnyPayload, LogId, SnapshotMeta, StoredMembership, Types};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use petuum_chaos::{Failpoint, reached};
use petuum_types::{GroupId, LogIndex};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// What a replica's failure leaves behind for its supervisor: the first reason given.
#[derive(Default)]
pub(crate) struct Reason(Mutex<Option<String>>);

impl Reason {
    pub(crate) fn give(&self, reason: &str) {
        let mut first = self.0.lock().expect("nothing panics while it is held");
        first.get_or_insert_with(|| reason.to_owned());
    }

    pub(crate) fn take(&self) -> Option<String> {
        self.0.lock().expect("nothing panics while it is held").take()
    }
}

/// A group's core.
pub(crate) type Raft = openraft::Raft<Types, StateMachine>;

/// A machine and what openraft wants to know of it.
pub(crate) struct StateMachine {
    group: GroupId,
    /// Never contended; only so that a machine need not be `Sync`.
    machine: Mutex<Box<dyn Machine>>,
    applied: Option<LogId>,
    membership: StoredMembership,
    parts: Parts,
    /// Whether entries must come without a gap. Always, but in openraft's suite, which applies entries of no log.
    pub(crate) gapless: bool,
    /// Dropped with this: the supervisor sees that the machine is gone, even if it was a panic.
    _gone: oneshot::Sender<()>,
}

/// What a machine's replica shares with others.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) compaction: Arc<Compaction>,
    pub(crate) reason: Arc<Reason>,
    pub(crate) piece_bytes: usize,
}

impl StateMachine {
    /// Also returns what ends when the machine is gone.
    pub(crate) fn new(group: GroupId, machine: Box<dyn Machine>, parts: Parts) -> (Self, oneshot::Receiver<()>) {
        let (gone, is_gone) = oneshot::channel();
        let machine = Mutex::new(machine);
        let (applied, membership) = (None, StoredMembership::default());
        (Self { group, machine, applied, membership, parts, gapless: true, _gone: gone }, is_gone)
    }

    fn machine(&mut self) -> &mut dyn Machine {
        self.machine.get_mut().expect("a machine that panicked takes its task with it").as_mut()
    }

    fn failed(&self, doing: &str, error: &MachineError) -> io::Error {
        let reason = format!("{} could not {doing}: {error}", self.group);
        tracing::error!("{reason}");
        self.parts.reason.give(&reason);
        io_error(reason)
    }

    fn apply_one(&mut self, id: LogId, payload: AnyPayload) -> io::Result<Bytes> {
        let follows = self.applied.is_none_or(|applied| id.index == applied.index + 1);
        assert!(follows || !self.gapless, "{}: entry {id} does not follow {:?}", self.group, self.applied);
        let index = LogIndex(id.index);
        let (answer, bytes) = match payload {
            EntryPayload::Normal(payload) => {
                let bytes = payload.bytes.len();
                let answer = self.machine().apply(index, payload.bytes);
                (answer.map_err(|error| self.failed(&format!("apply entry {}", id.index), &error))?, bytes)
            }
            EntryPayload::Blank => {
                self.machine().skip(index);
                (Bytes::new(), 0)
            }
            EntryPayload::Membership(membership) => {
                self.machine().skip(index);
                self.membership = StoredMembership::new(Some(id), membership);
                (Bytes::new(), 0)
            }
        };
        self.applied = Some(id);
        self.parts.compaction.applied(id.index, bytes);
        Ok(answer)
    }

    fn install_from(&mut self, meta: &SnapshotMeta, stored: &petuum_storage::Snapshot) -> io::Result<()> {
        let mut pieces = stored.pieces().map(|piece| piece.map_err(|error| MachineError::new(error.to_string())));
        reached(Failpoint::InstallBefore);
        let installed = keeping_the_thread(|| self.machine().install(&mut pieces));
        installed.map_err(|error| self.failed("install a snapshot", &error))?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.parts.compaction.installed(meta);
        reached(Failpoint::InstallAfter);
        Ok(())
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> io::Result<()>
    where
        Strm: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let answer = self.apply_one(entry.log_id, entry.payload)?;
            if let Some(responder) = responder {
                responder.send(Answer(answer));
            }
            // A long backlog must not keep the others of this thread waiting.
            tokio::task::coop::consume_budget().await;
        }
        Ok(())
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Self::SnapshotBuilder> {
        if self.applied.is_none() && !force {
            return None;
        }
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        Some(Builder {
            view: Mutex::new(self.machine().view()),
            meta,
            shelf: self.parts.shelf.clone(),
            compaction: self.parts.compaction.clone(),
            piece_bytes: self.parts.piece_bytes,
            _ended: self.parts.compaction.begin_build(),
        })
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        self.try_create_snapshot_builder(true).await.expect("forced")
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: Self::SnapshotData) -> io::Result<()> {
        // Durable before it is used: what is purged next must not be needed any more.
        let shelf = self.parts.shelf.clone();
        match snapshot {
            SnapshotData::Received(writer) => shelf.publish(meta, writer).await?,
            // This group's own, at its start.
            SnapshotData::Stored(_) if shelf.has(meta) => {}
            SnapshotData::Stored(elsewhere) => shelf.publish(meta, shelf.copy(&elsewhere)?).await?,
        }
        // openraft installs nothing that is behind what was applied here, and builds are.
        assert!(shelf.has(meta), "{}: a build overtook an installed snapshot", self.group);
        let stored = shelf.stored()?.expect("one was just published");
        self.install_from(meta, &stored)
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        self.parts.shelf.current()
    }
}
