//! A node's place: its disk, which outlives it, and the node that runs there now.

use std::cell::{Cell, RefCell};
use std::io::{Cursor, Read};
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use petuum_server::{Node, NodeSettings, Parts, Stopped, SyncMode};
use petuum_storage::{CutWal, ReadWals, Store, StoreOptions};

use crate::disk::Disk;
use crate::failpoints::Failpoints;
use crate::simulation::mix;
use crate::{SimConnector, SimListener};

pub(super) struct Place {
    pub(super) name: String,
    pub(super) disk: Disk,
    port: u16,
    seed: u64,
    settings: NodeSettings,
    sync_latency: (Duration, Duration),
    failpoints: Failpoints,
    starts: Cell<u64>,
    /// Owned by the host's software alone, so that a kill leaves nothing of the node, above all no open database.
    node: RefCell<Weak<Node>>,
}

impl Place {
    pub(super) fn new(
        name: String,
        port: u16,
        seed: u64,
        settings: NodeSettings,
        sync_latency: (Duration, Duration),
        failpoints: Failpoints,
    ) -> Self {
        Self {
            name,
            disk: Disk::new(),
            port,
            seed,
            settings,
            sync_latency,
            failpoints,
            starts: Cell::new(0),
            node: RefCell::default(),
        }
    }

    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.name, self.port)
    }

    /// How often a node was started here.
    pub(super) fn starts(&self) -> u64 {
        self.starts.get()
    }

    /// The node that runs here; to be let go before the next step.
    pub(super) fn node(&self) -> Option<Rc<Node>> {
        self.node.borrow().upgrade()
    }

    fn store(&self) -> Result<Store, petuum_storage::Error> {
        let disk = self.disk.clone();
        let read_wals: ReadWals = Arc::new(move |folder: &Path| {
            let logs = disk.write_ahead_logs(folder)?.into_iter();
            Ok(logs.map(|log| Box::new(Cursor::new(log)) as Box<dyn Read>).collect())
        });
        let disk = self.disk.clone();
        let cut_wal: CutWal = Arc::new(move |folder: &Path, log, keep| disk.cut_write_ahead_log(folder, log, keep));
        let options = StoreOptions { cut_wal, ..StoreOptions::simulated(self.disk.env(), read_wals) };
        Store::open(Path::new(Disk::ROOT), options)
    }

    /// A task that waits, as a disk does, before each sync.
    fn sync_mode(&self, seed: u64) -> SyncMode {
        let (least, greatest) = self.sync_latency;
        let mut random = fastrand::Rng::with_seed(seed);
        SyncMode::Task(Box::new(move || least + (greatest - least).mul_f64(random.f64())))
    }
}

/// A node's life from start to death.
pub(super) async fn run(place: Rc<Place>) -> turmoil::Result {
    place.failpoints.enter(&place.name);
    let ended = live(&place).await;
    if ended.is_err() && !place.disk.is_powered() {
        // It is dead and does not know: what it finds wrong now, nobody sees.
        std::future::pending::<()>().await;
    }
    ended
}

async fn live(place: &Place) -> turmoil::Result {
    place.starts.set(place.starts.get() + 1);
    let seed = mix(place.seed, place.starts.get());
    let parts = Parts {
        store: place.store()?,
        listener: Box::new(SimListener::bind(&place.name, place.port).await?),
        connector: Arc::new(SimConnector),
        advertise: Some(place.address()),
        settings: place.settings.clone(),
        seed,
        sync: place.sync_mode(mix(seed, 1)),
    };
    let node = Rc::new(Node::start(parts)?);
    place.node.replace(Rc::downgrade(&node));
    match node.ended().await {
        Stopped::Asked => Ok(()),
        Stopped::Failed(error) => Err(format!("{} ended: {error}", place.name).into()),
    }
}
