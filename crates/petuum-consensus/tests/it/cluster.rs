//! Nodes in one process, each with its own runtime, store and port, so that one can be killed without the others.

use crate::machine::{self, Probe};
use crate::net::Wires;
use bytes::Bytes;
use petuum_consensus::{Consensus, Group, GroupStatus, Parts, ProposeError, RaftRpc, Role, Settings};
use petuum_net::transport::{self, Listener, TcpAcceptor};
use petuum_net::wire;
use petuum_net::wire::peer_server::{Peer, PeerServer};
use petuum_storage::{Store, StoreOptions};
use petuum_types::{ClusterId, GroupId, NodeId};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

pub(crate) const CLUSTER: ClusterId = ClusterId(0xabc);
pub(crate) const GROUP: GroupId = GroupId(1);
/// Longer than anything here may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

struct Service(RaftRpc);

type Reply<T> = Result<Response<T>, Status>;
type Replies<T> = Pin<Box<dyn futures::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Peer for Service {
    type AppendStream = Replies<wire::RaftRecord>;
    type InstallSnapshotStream = Replies<wire::SnapshotProgress>;

    async fn adopt(&self, _: Request<wire::AdoptRequest>) -> Reply<wire::AdoptResponse> {
        Err(Status::unimplemented("not of this crate"))
    }

    async fn hello(&self, _: Request<wire::HelloRequest>) -> Reply<wire::HelloResponse> {
        Err(Status::unimplemented("not of this crate"))
    }

    async fn append(&self, request: Request<Streaming<wire::RaftRecord>>) -> Reply<Self::AppendStream> {
        self.0.append(request).await
    }

    async fn vote(&self, request: Request<wire::RaftCall>) -> Reply<wire::RaftRecord> {
        self.0.vote(request).await
    }

    async fn pre_vote(&self, request: Request<wire::RaftCall>) -> Reply<wire::RaftRecord> {
        self.0.pre_vote(request).await
    }

    async fn transfer_leader(&self, request: Request<wire::RaftCall>) -> Reply<wire::RaftRecord> {
        self.0.transfer_leader(request).await
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<wire::SnapshotFrame>>,
    ) -> Reply<Self::InstallSnapshotStream> {
        self.0.install_snapshot(request).await
    }

    async fn propose(&self, _: Request<wire::ProposeRequest>) -> Reply<wire::ProposeResponse> {
        Err(Status::unimplemented("not of this crate"))
    }
}

/// What is there while a node runs.
struct Life {
    runtime: Runtime,
    store: Store,
    sync: JoinHandle<()>,
    group: Group,
}

pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) address: String,
    pub(crate) probe: Arc<Probe>,
    pub(crate) wires: Wires,
    dir: tempfile::TempDir,
    life: Option<Life>,
}

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) settings: Settings,
    /// The test's own.
    runtime: Runtime,
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Times that a busy machine keeps.
pub(crate) fn settings() -> Settings {
    Settings {
        heartbeat: Duration::from_millis(150),
        election_min: Duration::from_millis(1500),
        election_max: Duration::from_millis(2500),
        append_timeout: Duration::from_secs(2),
        log_kept_bytes: 0,
        ..Settings::default()
    }
}

impl Cluster {
    pub(crate) fn start(count: u64, settings: Settings) -> Self {
        let runtime = runtime();
        let nodes = (1..=count)
            .map(|id| {
                let free = runtime.block_on(TcpAcceptor::bind("127.0.0.1:0")).unwrap().address();
                let dir = tempfile::tempdir().unwrap();
                let (probe, wires) = (Arc::default(), Wires::default());
                Node { id: NodeId(id), address: free, probe, wires, dir, life: None }
            })
            .collect();
        let mut cluster = Self { nodes, settings, runtime };
        for at in 0..cluster.nodes.len() {
            cluster.revive(at);
        }
        cluster.block(cluster.group(0).initialize()).unwrap();
        cluster
    }

    pub(crate) fn block<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub(crate) fn addresses(&self) -> BTreeMap<NodeId, String> {
        self.nodes.iter().map(|node| (node.id, node.address.clone())).collect()
    }

    pub(crate) fn group(&self, at: usize) -> Group {
        self.nodes[at].life.as_ref().expect("the node runs").group.clone()
    }

    pub(crate) fn status(&self, at: usize) -> GroupStatus {
        self.group(at).status()
    }

    pub(crate) fn runs(&self, at: usize) -> bool {
        self.nodes[at].life.is_some()
    }

    /// Starts a node on what its directory holds.
    pub(crate) fn revive(&mut self, at: usize) {
        static SEED: AtomicU64 = AtomicU64::new(1);
        let addresses = self.addresses();
        let settings = self.settings.clone();
        let node = &mut self.nodes[at];
        let store = Store::open(node.dir.path(), StoreOptions::default()).unwrap();
        let sync = store.spawn_sync_thread();
        let parts = Parts {
            cluster: CLUSTER,
            node: node.id,
            store: store.clone(),
            connector: Arc::new(node.wires.clone()),
            addresses: addresses.clone(),
            settings,
            seed: SEED.fetch_add(1, Ordering::SeqCst),
        };
        let (factory, address) = (machine::factory(&node.probe), node.address.clone());
        let runtime = runtime();
        let starting = async move {
            let consensus = Consensus::new(parts).unwrap();
            let group = consensus.start_group(GROUP, addresses, factory).await.unwrap();
            let listener = TcpAcceptor::bind(&address).await.unwrap();
            let service = PeerServer::new(Service(consensus.rpc())).max_decoding_message_size(4 << 20);
            let serving = tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(transport::incoming(Box::new(listener)));
            tokio::spawn(serving);
            group
        };
        let group = runtime.block_on(runtime.spawn(starting)).unwrap();
        node.life = Some(Life { runtime, store, sync, group });
    }

    /// Ends a node in the middle of whatever it does.
    pub(crate) fn kill(&mut self, at: usize) {
        let Life { runtime, store, sync, group } = self.nodes[at].life.take().expect("the node runs");
        drop(group);
        runtime.shutdown_timeout(Duration::from_secs(20));
        store.close();
        drop(store);
        sync.join().unwrap();
    }

    /// Ends a replica as a node that stops would.
    pub(crate) fn stop(&mut self, at: usize) {
        self.block(self.group(at).shutdown());
        self.kill(at);
    }

    pub(crate) fn pause(&self, time: Duration) {
        self.block(async { tokio::time::sleep(time).await });
    }

    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        self.runtime.block_on(async {
            let deadline = Instant::now() + LONG;
            while !holds(self) {
                assert!(Instant::now() < deadline, "{what}: not within {LONG:?}; {:?}", self.all());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }

    fn all(&self) -> Vec<Option<GroupStatus>> {
        (0..self.nodes.len()).map(|at| self.runs(at).then(|| self.status(at))).collect()
    }

    /// The node that leads, once there is one that everybody who runs agrees on.
    pub(crate) fn leader(&self) -> usize {
        let mut found = 0;
        self.until("a leader", |cluster| {
            let leaders: Vec<usize> = (0..cluster.nodes.len())
                .filter(|at| cluster.runs(*at) && cluster.status(*at).role == Role::Leader)
                .collect();
            found = leaders.first().copied().unwrap_or(0);
            let agreed = (0..cluster.nodes.len()).filter(|at| cluster.runs(*at)).all(|at| {
                let status = cluster.status(at);
                status.role == Role::Down || status.leader == Some(cluster.nodes[found].id)
            });
            leaders.len() == 1 && agreed
        });
        found
    }

    pub(crate) fn follower(&self) -> usize {
        let leader = self.leader();
        (0..self.nodes.len()).find(|at| *at != leader && self.runs(*at)).expect("there is another")
    }

    /// Proposes numbers, many at once, to the leader; all must be answered. A busy machine can make a leader lose its
    /// lease; it then refuses, and nothing is lost by asking again.
    pub(crate) fn propose_all(&self, values: Range<u64>, padding: usize) {
        let begun = Instant::now();
        loop {
            let group = self.group(self.leader());
            let answers: Vec<_> = values.clone().map(|value| group.submit(machine::entry(value, padding))).collect();
            let answers = self.block(futures::future::join_all(answers));
            let refused = |answer: &Result<Bytes, _>| matches!(answer, Err(ProposeError::NotLeader { .. }));
            if !answers.iter().all(refused) {
                answers.into_iter().for_each(|answer| drop(answer.unwrap()));
                return;
            }
            assert!(begun.elapsed() < LONG, "nobody leads for long enough");
        }
    }

    /// Waits until all running nodes have applied the same and returns it.
    pub(crate) fn converged(&self) -> Vec<u64> {
        let leader = self.leader();
        let last = self.status(leader).last_index;
        self.until("all have applied everything", |cluster| {
            (0..cluster.nodes.len()).filter(|at| cluster.runs(*at)).all(|at| cluster.status(at).applied >= last)
        });
        let values = self.nodes[leader].probe.values();
        for at in (0..self.nodes.len()).filter(|at| self.runs(*at)) {
            assert_eq!(self.nodes[at].probe.values(), values, "{} differs from the leader", self.nodes[at].id);
        }
        values
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for at in 0..self.nodes.len() {
            if self.runs(at) && !std::thread::panicking() {
                self.kill(at);
            }
        }
    }
}
