//! A node's place: its disk, which outlives it, and the node that runs there now.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use petuum_server::{Node, NodeSettings, Parts, Stopped, SyncMode};
use petuum_storage::{Store, StoreOptions};
use petuum_types::{GroupId, NodeId};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::disk::Disk;
use crate::failpoints::Failpoints;
use crate::simulation::mix;
use crate::{SimConnector, SimListener};

/// What a node is told to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Hand all its leaderships over and end.
    Stop,
    /// Something with one of its groups.
    OfGroup(GroupId, GroupOrder),
}

/// What a node is told to do with a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum GroupOrder {
    /// Hand its leadership to this node.
    HandOver(NodeId),
    /// Campaign for it.
    Campaign,
}

/// What a node's machine is like.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Least and greatest time that making the log durable takes.
    pub(super) sync_latency: (Duration, Duration),
    /// Memory that the log fills before it becomes a table, and a new write-ahead log is begun.
    pub(super) write_buffer_bytes: usize,
    /// Background jobs of the disk stay pending and begin in one of so many steps; at once, if none.
    pub(super) jobs_begin_one_in: Option<u32>,
}

pub(super) struct Place {
    pub(super) name: String,
    pub(super) disk: Disk,
    port: u16,
    seed: u64,
    settings: NodeSettings,
    machine: Machine,
    /// The time that syncs take now.
    sync_latency: Arc<Mutex<(Duration, Duration)>>,
    failpoints: Failpoints,
    /// To the node that runs now; a new one with each start, so that what came too late concerns nobody else.
    orders: RefCell<Option<UnboundedSender<Order>>>,
    /// Whether the node has ended by itself since its last start.
    ended: Cell<bool>,
    /// Whether a node that ends with an error is no error of the simulation.
    may_fail: Cell<bool>,
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
        machine: Machine,
        failpoints: Failpoints,
    ) -> Self {
        let disk = Disk::new();
        if let Some(one_in) = machine.jobs_begin_one_in {
            disk.hold_background_jobs(mix(seed, 2), one_in);
        }
        Self {
            name,
            disk,
            port,
            seed,
            settings,
            sync_latency: Arc::new(Mutex::new(machine.sync_latency)),
            machine,
            failpoints,
            orders: RefCell::default(),
            ended: Cell::new(false),
            may_fail: Cell::new(false),
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

    pub(super) fn set_sync_latency(&self, least: Duration, greatest: Duration) {
        *self.sync_latency.lock().expect("nothing panics while it is held") = (least, greatest);
    }

    pub(super) fn reset_sync_latency(&self) {
        let (least, greatest) = self.machine.sync_latency;
        self.set_sync_latency(least, greatest);
    }

    /// Has the node carry out an order, if it runs.
    pub(super) fn give(&self, order: Order) {
        // One that has just ended carries out nothing.
        let _ = self.orders.borrow().as_ref().map(|orders| orders.send(order));
    }

    /// Whether the node has ended by itself, well or not, since its last start.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// From now on it is expected that a node may fail here, or no more.
    pub(super) fn allow_failure(&self, allowed: bool) {
        self.may_fail.set(allowed);
    }

    pub(super) fn may_fail(&self) -> bool {
        self.may_fail.get()
    }

    /// The node that runs here; to be let go before the next step.
    pub(super) fn node(&self) -> Option<Rc<Node>> {
        self.node.borrow().upgrade()
    }

    fn store(&self) -> Result<Store, petuum_storage::Error> {
        let options = StoreOptions { write_buffer_bytes: self.machine.write_buffer_bytes, ..self.disk.store_options() };
        Store::open(Path::new(Disk::ROOT), options)
    }

    /// A task that waits, as a disk does, before each sync.
    fn sync_mode(&self, seed: u64) -> SyncMode {
        let latency = Arc::clone(&self.sync_latency);
        let mut random = fastrand::Rng::with_seed(seed);
        SyncMode::Task(Box::new(move || {
            let (least, greatest) = *latency.lock().expect("nothing panics while it is held");
            least + (greatest - least).mul_f64(random.f64())
        }))
    }
}

/// A node's life from start to death.
pub(super) async fn run(place: Rc<Place>) -> turmoil::Result {
    place.failpoints.enter(&place.name);
    place.ended.set(false);
    let (orders, given) = unbounded_channel();
    place.orders.replace(Some(orders));
    let ended = live(&place, given).await;
    place.ended.set(true);
    // Without power it is dead and does not know: what it finds wrong now, nobody sees.
    if ended.is_err() && (place.may_fail.get() || !place.disk.is_powered()) {
        std::future::pending::<()>().await;
    }
    ended
}

async fn live(place: &Place, mut orders: UnboundedReceiver<Order>) -> turmoil::Result {
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
    let stopped = loop {
        tokio::select! {
            stopped = node.ended() => break stopped,
            Some(order) = orders.recv() => match order {
                Order::Stop => break Rc::try_unwrap(node).map_err(|_| "somebody looks at the node")?.stop().await,
                Order::OfGroup(group, order) => carry_out(&node, group, order),
            },
        }
    };
    match stopped {
        Stopped::Asked => Ok(()),
        Stopped::Failed(error) => Err(format!("{} ended: {error}", place.name).into()),
    }
}

/// Begins what an order says, in a task of the node's host.
fn carry_out(node: &Node, id: GroupId, order: GroupOrder) {
    let group = node.running().and_then(|running| running.groups().find(|(of, _)| *of == id));
    let Some(group) = group.map(|(_, group)| group.clone()) else { return };
    tokio::spawn(async move {
        let done = match order {
            GroupOrder::HandOver(to) => group.transfer_leader(to).await,
            GroupOrder::Campaign => group.campaign().await,
        };
        if let Err(error) = done {
            tracing::info!(group = %id, %error, "an order was not carried out");
        }
    });
}
