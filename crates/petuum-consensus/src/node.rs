//! What all groups of a node share.

use crate::peers::Peers;
use crate::recent::Room;
use crate::runtime::Seeds;
use crate::settings::Settings;
use petuum_storage::Store;
use petuum_types::{ClusterId, NodeId};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What all groups of a node share.
pub(crate) struct Node {
    pub(crate) cluster: ClusterId,
    pub(crate) id: NodeId,
    pub(crate) store: Store,
    pub(crate) peers: Peers,
    pub(crate) settings: Settings,
    pub(crate) seeds: Seeds,
    /// For the newest entries of all groups.
    pub(crate) recent: Arc<Room>,
    /// Snapshots being built.
    pub(crate) builds: Arc<Semaphore>,
    /// Snapshots being sent.
    pub(crate) sends: Semaphore,
    /// Snapshots being received.
    pub(crate) receives: Semaphore,
}
