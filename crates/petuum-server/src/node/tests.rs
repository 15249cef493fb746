//! A node's end before its beginning is over.

use super::*;
use crate::formation;
use petuum_net::transport::{Tcp, TcpAcceptor};
use petuum_net::wire;
use petuum_storage::StoreOptions;
use std::path::Path;

async fn start(folder: &Path) -> Node {
    let parts = Parts {
        store: Store::open(folder, StoreOptions::default()).unwrap(),
        listener: Box::new(TcpAcceptor::bind("127.0.0.1:0").await.unwrap()),
        connector: Arc::new(Tcp),
        advertise: None,
        settings: NodeSettings::default(),
        seed: 1,
        sync: SyncMode::Thread,
    };
    Node::start(parts).unwrap()
}

/// They used to go on until the process ended, with the store open.
#[tokio::test]
async fn a_node_stopped_while_its_groups_start_ends_them() {
    let folder = tempfile::tempdir().unwrap();
    let node = start(folder.path()).await;
    let request = wire::InitRequest {
        format: petuum_net::FORMAT,
        addresses: vec![node.address().to_owned()],
        shards: 64,
        replication: 1,
    };
    formation::init(&node.inner, &request).await.unwrap();
    // One thread: between two steps of the start this looks.
    let consensus = loop {
        match node.inner.consensus.get() {
            Some(consensus) if consensus.groups().len() > 3 => break consensus.clone(),
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(node.running().is_none(), "it is still starting");
    assert_eq!(node.stop().await, Stopped::Asked);
    assert_eq!(consensus.groups().len(), 0);
    drop(consensus);
    for _ in 0..100 {
        if Store::open(folder.path(), StoreOptions::default()).is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the store is still in use 10 s after the node was stopped");
}
