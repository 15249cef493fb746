//! What a node's services and tasks share.

use crate::ending::{Ending, Stopped};
use crate::groups::Running;
use crate::identity::Identity;
use crate::leases::LeaseTable;
use crate::peers::Peers;
use crate::settings::NodeSettings;
use crate::watermark::Watermark;
use petuum_consensus::Consensus;
use petuum_net::transport::Connector;
use petuum_storage::{Boot, Store};
use petuum_types::{Error, ErrorKind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{Notify, watch};
use tonic_health::server::HealthReporter;

/// What services share.
pub(crate) struct Inner {
    pub(crate) settings: NodeSettings,
    pub(crate) store: Store,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) peers: Peers,
    pub(crate) boot: Boot,
    pub(crate) watermark: Watermark,
    pub(crate) forming: tokio::sync::Mutex<()>,
    pub(crate) adopting: tokio::sync::Mutex<()>,
    pub(crate) hearing: tokio::sync::Mutex<()>,
    pub(crate) address: String,
    pub(crate) identity: watch::Sender<Option<Identity>>,
    /// Raft, once groups begin to start.
    pub(crate) consensus: OnceLock<Consensus>,
    pub(crate) running: OnceLock<Running>,
    /// Set when the node is asked to stop: no group starts from then on.
    pub(crate) stopping: AtomicBool,
    pub(crate) leases: Mutex<LeaseTable>,
    pub(crate) driver_wake: Notify,
    pub(crate) random: Mutex<fastrand::Rng>,
    pub(crate) ending: Ending,
    pub(crate) health: OnceLock<HealthReporter>,
}

impl Inner {
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity.borrow().clone()
    }

    pub(crate) fn set_identity(&self, identity: Identity) {
        self.identity.send_replace(Some(identity));
    }

    pub(crate) fn draw_u128(&self) -> u128 {
        self.random.lock().unwrap_or_else(std::sync::PoisonError::into_inner).u128(..)
    }

    /// The groups, once they run.
    ///
    /// # Errors
    /// [`ErrorKind::NotInitialized`] before the node belongs to a cluster, [`ErrorKind::Unavailable`] while it starts.
    pub(crate) fn running(&self) -> Result<&Running, Error> {
        self.running.get().ok_or_else(|| {
            if self.identity.borrow().is_some() {
                Error::new(ErrorKind::Unavailable, format!("node {} is starting; try again", self.address))
            } else {
                let message = format!("node {} belongs to no cluster yet: run `petuum ctl init`", self.address);
                Error::new(ErrorKind::NotInitialized, message)
            }
        })
    }

    pub(crate) fn set_health(&self, health: HealthReporter) {
        assert!(self.health.set(health).is_ok(), "a node serves once");
    }

    pub(crate) fn health(&self) -> Option<&HealthReporter> {
        self.health.get()
    }

    /// Ends the node. Of several reasons the first counts.
    pub(crate) fn end(&self, why: Stopped) {
        self.ending.end(why);
    }
}
