//! How nodes become a cluster, and how a node proves that it is not an old copy of itself (P21).
//!
//! *Init*: one node draws the cluster's id, writes its own identity, and adopts the others. An empty node waits until
//! it is adopted. Both are idempotent: a call that was cut short is made again.
//! *Hello*: at each start a node counts its boot number up, durably, and shows it to its peers with a nonce and the term
//! of each group before it starts any group. A peer that remembers a higher boot, another nonce of the same boot or a
//! higher term refuses: an old copy of the data directory was put back. What this cannot catch: a majority put back
//! together, and a copy put back while every peer that remembers a later boot is down but a majority answers. A node shows
//! its boot to every peer, also after it has started, so that as many as possible remember.

mod boot;
mod hello;
mod init;

pub(crate) use hello::{answer as answer_hello, introduce};
pub(crate) use init::{adopt, init};

use petuum_storage::Store;
use petuum_types::map::ShardMap;
use petuum_types::{ClusterId, Error, ErrorKind, NodeId, codec};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// Who a node is, for ever: written once, before it serves anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster it belongs to.
    pub cluster: ClusterId,
    /// Its id there.
    pub node: NodeId,
    /// The map it was adopted with.
    pub map: ShardMap,
}

impl Identity {
    /// The identity in a store, `None` before adoption.
    ///
    /// # Errors
    /// [`ErrorKind::Storage`] if it cannot be read.
    pub fn load(store: &Store) -> Result<Option<Self>, Error> {
        let storage = |e: String| Error::new(ErrorKind::Storage, format!("the node's identity: {e}"));
        let Some(bytes) = store.identity().map_err(|e| storage(e.to_string()))? else { return Ok(None) };
        let identity: Self = codec::decode(&bytes).map_err(|e| storage(e.to_string()))?;
        identity.map.validate().map_err(storage)?;
        Ok(Some(identity))
    }

    /// Writes the identity, durably.
    async fn save(&self, store: &Store) -> Result<(), Error> {
        let (done, saved) = oneshot::channel();
        let storage = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Storage, format!("the node's identity: {e}"));
        store
            .set_identity(&codec::encode(self), Box::new(move |result| drop(done.send(result))))
            .map_err(|e| storage(&e))?;
        saved.await.map_err(|e| storage(&e))?.map_err(|e| storage(&e))
    }

    /// This node's own address in the map.
    #[must_use]
    pub fn address(&self) -> &str {
        self.map.nodes.get(&self.node).map_or("", String::as_str)
    }
}
