//! Keeps one replica running: builds it from what is stored, notices when openraft gives it up, and builds it again
//! with a fresh machine, at a bounded rate. If the store itself has failed there is nothing to build from: the replica
//! stays down and says why, and the node must end (P22).
//!
//! openraft ends a group for good on any storage or machine error, or a panic of its own; such a replica would linger,
//! neither serving nor failing.

use crate::compaction::Compaction;
use crate::compactor;
use crate::error::Error;
use crate::log::LogStore;
use crate::machine::MachineFactory;
use crate::network::Networks;
use crate::node::Node;
use crate::runtime::{Rt, mix};
use crate::snapshot::Shelf;
use crate::state::Raft;
use crate::state::{Parts, Reason, StateMachine};
use crate::status::{GroupStatus, Leadership};
use openraft::async_runtime::{AsyncRuntime, WatchReceiver};
use petuum_storage::{GroupStore, SnapshotWriter};
use petuum_types::{GroupId, LogIndex, NodeId};
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long openraft may take to notice that the machine is gone before its core is ended too.
const MACHINE_GONE: Duration = Duration::from_secs(1);
/// The pause between two builds is doubled at most this often.
const DOUBLINGS: u32 = 6;
/// A replica that ran this long failed for a new reason.
const RAN_WELL: Duration = Duration::from_secs(60);

/// The running part of a replica.
#[derive(Default)]
struct Running {
    raft: Option<Raft>,
    failure: Option<String>,
    /// As of when it last ran.
    last: GroupStatus,
}

/// One replica of a group.
pub(crate) struct Replica {
    pub(crate) node: Arc<Node>,
    pub(crate) group: GroupId,
    pub(crate) members: BTreeMap<NodeId, String>,
    factory: MachineFactory,
    store: GroupStore,
    pub(crate) compaction: Arc<Compaction>,
    reason: Arc<Reason>,
    running: Mutex<Running>,
    /// Held by whoever hands openraft a proposal: see [`crate::Group::submit`].
    pub(crate) proposing: Arc<tokio::sync::Mutex<()>>,
    leadership: watch::Sender<Leadership>,
    stop: watch::Sender<bool>,
    stopped: watch::Sender<bool>,
}

/// What a build leaves for its supervisor.
struct Built {
    raft: Raft,
    machine_gone: oneshot::Receiver<()>,
}

enum End {
    Asked,
    Failed(String),
}

impl Replica {
    /// Builds the replica and keeps it running. Must be called within `Rt::scope`.
    pub(crate) async fn start(
        node: Arc<Node>,
        group: GroupId,
        members: BTreeMap<NodeId, String>,
        factory: MachineFactory,
    ) -> Result<Arc<Self>, Error> {
        let store = node.store.group(group);
        let draw = mix(u64::from(group.0) ^ mix(node.id.0));
        let compaction = Arc::new(Compaction::new(&node.settings, draw));
        let replica = Arc::new(Self {
            node,
            group,
            members,
            factory,
            store,
            compaction,
            reason: Arc::default(),
            running: Mutex::default(),
            proposing: Arc::default(),
            leadership: watch::Sender::default(),
            stop: watch::Sender::new(false),
            stopped: watch::Sender::new(false),
        });
        let built = replica.build().await.map_err(|reason| Error::Recovery { group, reason })?;
        drop(Rt::spawn(replica.clone().supervise(built)));
        Ok(replica)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().expect("nothing panics while it is held")
    }

    /// The group's openraft, or why there is none.
    pub(crate) fn raft(&self) -> Result<Raft, String> {
        let running = self.running();
        match &running.raft {
            Some(raft) => Ok(raft.clone()),
            None => Err(running.failure.clone().unwrap_or_else(|| format!("{} was stopped", self.group))),
        }
    }

    pub(crate) fn begin_snapshot(&self) -> Result<SnapshotWriter, petuum_storage::Error> {
        self.store.begin_snapshot()
    }

    pub(crate) fn status(&self) -> GroupStatus {
        let running = self.running();
        match &running.raft {
            Some(raft) => {
                let mut status = GroupStatus::of(&raft.metrics().borrow_watched());
                // openraft's figure comes a little later.
                status.applied = status.applied.max(self.compaction.last().map(LogIndex));
                status
            }
            None => GroupStatus {
                role: crate::status::Role::Down,
                leader: None,
                failure: running.failure.clone(),
                ..running.last.clone()
            },
        }
    }

    pub(crate) fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    /// Ends the replica; answered when its core has ended.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        let mut stopped = self.stopped.subscribe();
        stopped.wait_for(|stopped| *stopped).await.expect("the sender is in `self`");
    }

    async fn asked_to_stop(&self) {
        let mut stop = self.stop.subscribe();
        drop(stop.wait_for(|stop| *stop).await.expect("the sender is in `self`"));
    }

    async fn build(&self) -> Result<Built, String> {
        let text = |error: io::Error| error.to_string();
        // Whatever an earlier life left behind is not this one's.
        drop(self.reason.take());
        self.compaction.restart();
        let settings = &self.node.settings;
        let parts = Parts {
            shelf: Arc::new(Shelf::new(self.store.clone()).map_err(text)?),
            compaction: self.compaction.clone(),
            reason: self.reason.clone(),
            piece_bytes: settings.snapshot_piece_bytes,
        };
        let (machine, machine_gone) = StateMachine::new(self.group, (self.factory)(), parts);
        let log = LogStore::new(self.store.clone(), settings.frame_bytes, self.node.recent.clone());
        let networks = Networks { node: self.node.clone(), group: self.group, compaction: self.compaction.clone() };
        let name = format!("{}, {}", self.node.cluster, self.group);
        let config = Arc::new(settings.config(name).map_err(|error| error.to_string())?);
        let raft = Box::pin(Raft::new(self.node.id.0, config, networks, log, machine)).await;
        let raft = raft.map_err(|fatal| self.reason.take().unwrap_or_else(|| fatal.to_string()))?;
        let mut running = self.running();
        running.raft = Some(raft.clone());
        running.failure = None;
        drop(running);
        Ok(Built { raft, machine_gone })
    }

    async fn supervise(self: Arc<Self>, mut built: Built) {
        let mut failures = 0;
        loop {
            let started = tokio::time::Instant::now();
            let raft = built.raft.clone();
            let driver = Rt::spawn(compactor::drive(raft.clone(), self.compaction.clone(), self.node.builds.clone()));
            let end = self.watch(built).await;
            driver.abort();
            // Joins the core, so that two never write to one group.
            if let Err(error) = raft.shutdown().await {
                tracing::error!(group = %self.group, %error, "a core did not end in order");
            }
            let reason = match end {
                End::Asked => format!("{} was stopped", self.group),
                End::Failed(reason) => {
                    tracing::error!(group = %self.group, %reason, "a group failed");
                    reason
                }
            };
            self.note_down(&raft, reason);
            failures = if started.elapsed() > RAN_WELL { 0 } else { failures };
            match self.rebuild(&mut failures).await {
                Some(next) => built = next,
                None => break,
            }
        }
        self.stopped.send_replace(true);
    }

    /// Builds until it works, or nobody wants it any more.
    async fn rebuild(&self, failures: &mut u32) -> Option<Built> {
        loop {
            if let Some(poisoned) = self.node.store.poisoned() {
                self.running().failure = Some(poisoned.to_string());
                self.asked_to_stop().await;
            }
            let pause = self.node.settings.rebuild_pause * 2u32.pow((*failures).min(DOUBLINGS));
            *failures += 1;
            if tokio::time::timeout(pause, self.asked_to_stop()).await.is_ok() {
                return None;
            }
            tracing::warn!(group = %self.group, attempt = *failures, "rebuilding a group from what is stored");
            match self.build().await {
                Ok(built) => return Some(built),
                Err(reason) => {
                    tracing::error!(group = %self.group, %reason, "a group could not be rebuilt");
                    self.running().failure = Some(reason);
                }
            }
        }
    }

    fn note_down(&self, raft: &Raft, reason: String) {
        let mut running = self.running();
        running.last = GroupStatus::of(&raft.metrics().borrow_watched());
        running.raft = None;
        running.failure = Some(reason);
        drop(running);
        self.leadership.send_replace(Leadership::default());
    }

    /// Passes on who leads, until the replica ends.
    async fn watch(&self, built: Built) -> End {
        let Built { raft, mut machine_gone } = built;
        let mut asked = pin!(self.asked_to_stop());
        let mut server = raft.server_metrics();
        loop {
            let now = server.borrow_and_update().clone();
            let leadership =
                Leadership { role: now.state.into(), leader: now.current_leader, term: now.vote.leader_id.term };
            self.leadership.send_if_modified(|known| std::mem::replace(known, leadership) != leadership);
            tokio::select! {
                biased;
                () = &mut asked => return End::Asked,
                changed = server.changed() => if changed.is_err() { break },
                _ = &mut machine_gone => {
                    // openraft ends by itself if the machine told it; if it panicked, only with the next entry.
                    drop(raft.wait(Some(MACHINE_GONE)).metrics(|m| m.running_state.is_err(), "the core ends").await);
                    break;
                }
            }
        }
        let fatal = raft.metrics().borrow_watched().running_state.clone().err();
        let reason = self.reason.take().or_else(|| fatal.map(|fatal| fatal.to_string()));
        End::Failed(reason.unwrap_or_else(|| format!("{} panicked; see the log", self.group)))
    }
}
