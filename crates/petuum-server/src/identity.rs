//! Who a node is: a record that is written once.

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
    pub(crate) async fn save(&self, store: &Store) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let nodes = [(NodeId(1), "a:1".to_owned())].into();
        let map = ShardMap::spread(nodes, 1, 1).unwrap();
        let identity = Identity { cluster: ClusterId(7), node: NodeId(1), map };
        let bytes = codec::encode(&identity);
        assert_eq!(
            bytes.iter().map(|b| format!("{b:02x}")).collect::<String>(),
            "01070101010103613a31010000fb00100101"
        );
        assert_eq!(codec::decode::<Identity>(&bytes).unwrap(), identity);
    }
}
