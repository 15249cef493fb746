//! All groups of a node.

use crate::error::Error;
use crate::group::Group;
use crate::groups::Groups;
use crate::machine::MachineFactory;
use crate::node::Node;
use crate::peers::Peers;
use crate::recent::Room;
use crate::rpc::RaftRpc;
use crate::runtime::{Rt, Seeds};
use crate::settings::Settings;
use crate::supervisor::Replica;
use petuum_net::transport::Connector;
use petuum_storage::Store;
use petuum_types::{ClusterId, GroupId, NodeId, limits};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What a node's groups are made of.
pub struct Parts {
    /// The cluster.
    pub cluster: ClusterId,
    /// This node.
    pub node: NodeId,
    /// Its store. Somebody must run the store's syncer, or nothing is ever durable.
    pub store: Store,
    /// Opens connections to peers.
    pub connector: Arc<dyn Connector>,
    /// Where peers are. A node that is not in here is looked for where its group's log says.
    pub addresses: BTreeMap<NodeId, String>,
    /// Settings of all groups.
    pub settings: Settings,
    /// Where all randomness comes from: entropy of the system in production, the simulator's seed there. Two starts
    /// of one node must not have the same.
    pub seed: u64,
}

/// All groups of a node. Clones are handles to the same.
#[derive(Clone)]
pub struct Consensus {
    node: Arc<Node>,
    groups: Groups,
    /// Held while a group starts, so that none is started twice.
    starting: Arc<tokio::sync::Mutex<()>>,
}

impl Consensus {
    /// Nothing runs yet.
    ///
    /// # Errors
    /// [`Error::Settings`].
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let settings = parts.settings;
        settings.validate()?;
        let node = Node {
            cluster: parts.cluster,
            id: parts.node,
            store: parts.store,
            peers: Peers::new(parts.connector, parts.addresses, &settings),
            seeds: Seeds::new(parts.seed),
            recent: Arc::new(Room::new(limits::RECENT_NODE_BYTES_MAX)),
            builds: Arc::new(Semaphore::new(settings.snapshot_builds)),
            sends: Semaphore::new(settings.snapshot_sends),
            receives: Semaphore::new(settings.snapshot_receives),
            settings,
        };
        Ok(Self { node: Arc::new(node), groups: Groups::default(), starting: Arc::default() })
    }

    /// Starts this node's replica of a group, as it is stored: snapshot and committed log are applied at return. A
    /// new group waits for [`Group::initialize`] on one of its members. `members` count only there; later the log
    /// knows them.
    ///
    /// # Errors
    /// [`Error::Started`], or [`Error::Recovery`] if what is stored cannot be brought back.
    pub async fn start_group(
        &self,
        group: GroupId,
        members: BTreeMap<NodeId, String>,
        factory: MachineFactory,
    ) -> Result<Group, Error> {
        let _starting = self.starting.lock().await;
        if self.groups.find(group).is_some() {
            return Err(Error::Started(group));
        }
        let starting = Box::pin(Replica::start(self.node.clone(), group, members, factory));
        let replica = Rt::scope(self.node.seeds.next(), starting).await?;
        self.groups.lock().insert(group, replica.clone());
        Ok(Group::new(replica))
    }

    /// A started group.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<Group> {
        self.groups.find(group).map(Group::new)
    }

    /// All started groups, in order.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        self.groups.lock().values().cloned().map(Group::new).collect()
    }

    /// Handlers of peers' requests.
    #[must_use]
    pub fn rpc(&self) -> RaftRpc {
        RaftRpc::new(self.node.clone(), self.groups.clone())
    }

    /// Ends all groups, together; answered when none writes any more. They can be started again.
    pub async fn shutdown(&self) {
        let _starting = self.starting.lock().await;
        let replicas = std::mem::take(&mut *self.groups.lock());
        futures::future::join_all(replicas.values().map(|replica| replica.stop())).await;
    }
}
