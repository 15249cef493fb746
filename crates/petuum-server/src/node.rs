//! A node's life: open, wait to belong to a cluster, show its boot, start its groups, serve, hand over, stop.

use crate::driver;
use crate::ending::{Ending, Stopped};
use crate::formation::introduce;
use crate::groups::{Around, Running};
use crate::identity::Identity;
use crate::peers::Peers;
use crate::services;
use crate::settings::NodeSettings;
use crate::shared::Inner;
use crate::watermark::Watermark;
use petuum_chaos::{Failpoint, reached};
use petuum_consensus::Consensus;
use petuum_net::transport::{Connector, Listener, incoming};
use petuum_storage::{Store, Syncer};
use petuum_types::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tonic_health::ServingStatus;

/// Who makes the log durable.
pub enum SyncMode {
    /// A thread of its own: production.
    Thread,
    /// A task that waits for the returned time before each sync: the simulator's disk.
    Task(Box<dyn FnMut() -> Duration + Send>),
}

/// How long a node that stops waits for its database to be closed.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// What a node is made of.
pub struct Parts {
    /// An open store.
    pub store: Store,
    /// Where it listens.
    pub listener: Box<dyn Listener>,
    /// How it reaches others.
    pub connector: Arc<dyn Connector>,
    /// The address others reach it at; the listener's if `None`.
    pub advertise: Option<String>,
    /// Settings, validated.
    pub settings: NodeSettings,
    /// For everything random: from the operating system in production, from the run's seed in the simulator.
    pub seed: u64,
    /// Who makes the log durable.
    pub sync: SyncMode,
}

/// A running node.
pub struct Node {
    inner: Arc<Inner>,
    tasks: JoinSet<()>,
    serving: watch::Sender<bool>,
    /// Closes the database when the store is closed.
    syncing: Option<JoinHandle<()>>,
}

impl Node {
    /// Starts a node: it serves at once, and takes part as soon as it belongs to a cluster and has shown its boot.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for settings out of bounds, [`ErrorKind::Storage`] if the store cannot be used.
    pub fn start(parts: Parts) -> Result<Self, Error> {
        parts.settings.validate().map_err(|e| Error::new(ErrorKind::InvalidArgument, e))?;
        let storage = |e: petuum_storage::Error| Error::new(ErrorKind::Storage, e.to_string());
        let mut random = fastrand::Rng::with_seed(parts.seed);
        reached(Failpoint::BootBeforeCount);
        let boot = parts.store.next_boot(random.u64(..)).map_err(storage)?;
        reached(Failpoint::BootAfterCount);
        let identity = Identity::load(&parts.store)?;
        let period = Duration::from_millis(parts.settings.free_check_ms);
        let (watermark, watching) = Watermark::watch(parts.store.clone(), parts.settings.free_bytes_min, period);
        let ending = Ending::new();
        let address = parts.advertise.unwrap_or_else(|| parts.listener.address());
        let inner = Arc::new(Inner {
            peers: Peers::new(parts.connector.clone()),
            settings: parts.settings,
            store: parts.store,
            connector: parts.connector,
            boot,
            watermark,
            forming: tokio::sync::Mutex::new(()),
            adopting: tokio::sync::Mutex::new(()),
            hearing: tokio::sync::Mutex::new(()),
            address,
            identity: watch::Sender::new(identity),
            consensus: OnceLock::new(),
            running: OnceLock::new(),
            stopping: AtomicBool::new(false),
            leases: Mutex::default(),
            driver_wake: Notify::new(),
            random: Mutex::new(random.fork()),
            ending: ending.clone(),
            health: OnceLock::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(ending.clone().watched(watching));
        let syncing = start_syncer(&inner, parts.sync, &mut tasks);
        let serving = watch::Sender::new(true);
        tasks.spawn(ending.clone().watched(serve(inner.clone(), parts.listener, serving.subscribe())));
        tasks.spawn(ending.clone().watched(take_part(inner.clone(), random.u64(..))));
        Ok(Self { inner, tasks, serving, syncing })
    }

    /// The address others reach it at.
    #[must_use]
    pub fn address(&self) -> &str {
        self.inner.address()
    }

    /// Who it is, once it belongs to a cluster.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        self.inner.identity()
    }

    /// The groups, once they run; for tests and tools in the same process.
    #[must_use]
    pub fn running(&self) -> Option<&Running> {
        self.inner.running.get()
    }

    /// Waits until the node has ended by itself.
    pub async fn ended(&self) -> Stopped {
        self.inner.ending.wait().await
    }

    /// Hands leaderships over, stops serving and ends.
    pub async fn stop(mut self) -> Stopped {
        // Before the groups are ended: none must start behind them.
        self.inner.stopping.store(true, Ordering::SeqCst);
        if let Some(running) = self.inner.running.get() {
            running.hand_over(Duration::from_millis(self.inner.settings.hand_over_ms)).await;
            running.shards.values().for_each(|replica| replica.cell.stop());
        }
        // Also those of a node that has not started all of its groups yet; one that is just starting comes up first.
        if let Some(consensus) = self.inner.consensus.get() {
            consensus.shutdown().await;
        }
        self.inner.end(Stopped::Asked);
        self.serving.send_replace(false);
        self.tasks.shutdown().await;
        self.inner.store.close();
        // A process that ends while RocksDB is being closed can crash in the destructors of both.
        // A disk that is stuck in an fsync does not keep it alive, though.
        let closing = async {
            while self.syncing.as_ref().is_some_and(|thread| !thread.is_finished()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(CLOSING_MAX, closing).await.is_err() {
            tracing::warn!("the database is not closed after {CLOSING_MAX:?}: its disk does not answer");
        }
        self.inner.ending.reason().unwrap_or(Stopped::Asked)
    }
}

/// The syncer's thread, if it has one of its own.
fn start_syncer(inner: &Arc<Inner>, mode: SyncMode, tasks: &mut JoinSet<()>) -> Option<JoinHandle<()>> {
    // P22: after the first real write or sync error nothing is acknowledged any more and the node ends; peers carry on.
    let weak = Arc::downgrade(inner);
    inner.store.on_poison(Box::new(move |error| {
        if let Some(inner) = weak.upgrade() {
            inner.end(Stopped::Failed(Error::new(ErrorKind::Storage, error.to_string())));
        }
    }));
    match mode {
        SyncMode::Thread => return Some(inner.store.spawn_sync_thread()),
        SyncMode::Task(latency) => {
            tasks.spawn(inner.ending.clone().watched(sync_task(inner.store.syncer(), latency)));
        }
    }
    None
}

async fn sync_task(syncer: Syncer, mut latency: Box<dyn FnMut() -> Duration + Send>) {
    let work = Arc::new(Notify::new());
    let waker = work.clone();
    syncer.on_work(Box::new(move || waker.notify_one()));
    while !syncer.is_finished() {
        work.notified().await;
        tokio::time::sleep(latency()).await;
        if let Err(error) = syncer.run_once() {
            tracing::error!(%error, "the log could not be made durable");
        }
    }
}

async fn serve(inner: Arc<Inner>, listener: Box<dyn Listener>, mut serving: watch::Receiver<bool>) {
    let stopping = async move {
        // An error means that the node is gone, and with it the reason to serve.
        let _ = serving.wait_for(|serving| !serving).await;
    };
    let router = services::router(&inner);
    services::announce(&inner, ServingStatus::NotServing).await;
    if let Err(error) = router.serve_with_incoming_shutdown(incoming(listener), stopping).await {
        let message = format!("the server ended: {error}");
        inner.end(Stopped::Failed(Error::new(ErrorKind::Internal, message)));
    }
}

/// From adoption to the end: the part of a node's life in which it votes.
async fn take_part(inner: Arc<Inner>, seed: u64) {
    if inner.identity().is_none() {
        tracing::info!(address = inner.address(), "this node belongs to no cluster yet: waiting for `petuum ctl init`");
    }
    let mut identity = inner.identity.subscribe();
    let Ok(identity) = identity.wait_for(Option::is_some).await.map(|i| i.clone()) else { return };
    let identity = identity.expect("waited for");
    if let Err(error) = start_groups(&inner, identity, seed).await {
        if !inner.stopping.load(Ordering::SeqCst) {
            tracing::error!(%error, "this node cannot take part");
            inner.end(Stopped::Failed(error));
        }
        return;
    }
    services::announce(&inner, ServingStatus::Serving).await;
    driver::run(&inner).await;
}

async fn start_groups(inner: &Arc<Inner>, identity: Identity, seed: u64) -> Result<(), Error> {
    reached(Failpoint::HelloBefore);
    introduce(inner, &identity).await?;
    reached(Failpoint::HelloAfter);
    let parts = petuum_consensus::Parts {
        cluster: identity.cluster,
        node: identity.node,
        store: inner.store.clone(),
        connector: inner.connector.clone(),
        addresses: identity.map.nodes.clone(),
        settings: consensus_settings(&inner.settings),
        seed,
    };
    let consensus = Consensus::new(parts)?;
    assert!(inner.consensus.set(consensus.clone()).is_ok(), "a node starts its groups once");
    let around = Around {
        settings: &inner.settings,
        watermark: &inner.watermark,
        ending: &inner.ending,
        stopping: &inner.stopping,
    };
    let running = Running::start(around, identity, consensus).await?;
    tracing::info!(node = %running.identity.node, shards = running.shards.len(), "this node takes part");
    assert!(inner.running.set(running).is_ok(), "a node starts its groups once");
    Ok(())
}

fn consensus_settings(settings: &NodeSettings) -> petuum_consensus::Settings {
    petuum_consensus::Settings {
        heartbeat: Duration::from_millis(settings.heartbeat_ms),
        election_min: Duration::from_millis(settings.election_min_ms),
        election_max: Duration::from_millis(settings.election_max_ms),
        snapshot_after_entries: settings.snapshot_after_entries,
        log_kept_entries: settings.log_kept_entries,
        log_kept_bytes: settings.log_kept_bytes,
        ..petuum_consensus::Settings::default()
    }
}

#[cfg(test)]
mod tests;
