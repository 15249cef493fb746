//! Nodes as child processes on this machine: for `local`, `train`, `demo` and the tests of real processes.

use crate::output::Failure;
use petuum_client::{Client, Options};
use petuum_net::transport::{ChannelSettings, Connector, Tcp, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// How long a node may take from its start to its first line.
const START: Duration = Duration::from_secs(30);

/// A cluster of child processes. Dropping it kills them.
pub(crate) struct LocalCluster {
    nodes: Vec<LocalNode>,
    /// Removed at the end, if the cluster was given no directory of its own.
    _folder: Option<tempfile::TempDir>,
}

struct LocalNode {
    data: PathBuf,
    address: String,
    child: Option<Child>,
    /// The other end of its standard input: closed when this process ends, however it does, and the node stops then.
    /// Apart from the child, as waiting for that would close it.
    tether: Option<ChildStdin>,
}

/// What a local cluster looks like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: u32,
    pub(crate) shards: u32,
    /// Replicas of each shard; three, or all nodes if there are fewer, if `None`.
    pub(crate) replication: Option<u32>,
    /// Where data is kept; a temporary directory if `None`.
    pub(crate) data: Option<PathBuf>,
    /// The first port; free ones if `None`.
    pub(crate) port: Option<u16>,
}

impl LocalCluster {
    /// Starts the nodes and forms the cluster, or starts the one that is in the data directory again.
    pub(crate) async fn start(shape: &Shape) -> Result<Self, Failure> {
        if shape.nodes == 0 || shape.nodes > 64 {
            return Err(Failure::new(format_args!("{} nodes; expected 1 to 64", shape.nodes)));
        }
        if let Some(replication) = shape.replication.filter(|replicas| !(1..=shape.nodes).contains(replicas)) {
            let nodes = shape.nodes;
            return Err(Failure::new(format_args!("{replication} replicas on {nodes} nodes; expected 1 to {nodes}")));
        }
        let folder = match &shape.data {
            Some(_) => None,
            None => Some(tempfile::Builder::new().prefix("petuum-").tempdir().map_err(Failure::new)?),
        };
        let root = shape.data.clone().or_else(|| folder.as_ref().map(|f| f.path().to_owned()));
        let root = root.expect("one of the two is there");
        let mut nodes = Vec::new();
        for number in 1..=shape.nodes {
            let data = root.join(format!("node-{number}"));
            let listen = listen_address(&data, shape.port, number)?;
            let mut node = LocalNode { data, address: listen, child: None, tether: None };
            node.start().await?;
            nodes.push(node);
        }
        let cluster = Self { nodes, _folder: folder };
        cluster.form(shape).await?;
        Ok(cluster)
    }

    async fn form(&self, shape: &Shape) -> Result<(), Failure> {
        let replication = shape.replication.unwrap_or(shape.nodes.min(3));
        init(&self.endpoints(), shape.shards, replication).await?;
        for node in &self.nodes {
            node.wait_until_it_takes_part().await?;
        }
        Ok(())
    }

    /// `host:port` of every node.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.nodes.iter().map(|n| n.address.clone()).collect()
    }

    /// A client of the cluster.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.endpoints(), Options::default()).await?)
    }

    /// SIGKILL to a node, `0..nodes`.
    pub(crate) async fn kill(&mut self, node: usize) -> Result<(), Failure> {
        if let Some(mut child) = self.nodes[node].child.take() {
            child.kill().await.map_err(Failure::new)?;
        }
        Ok(())
    }

    /// Starts a node again that was killed.
    pub(crate) async fn restart(&mut self, node: usize) -> Result<(), Failure> {
        self.nodes[node].start().await
    }

    /// Waits until a node has ended that was not stopped, and says which, why, and how to start it again. Answers once
    /// for each node, and not at all when none is left.
    pub(crate) async fn any_ended(&mut self) -> String {
        let waits = self.nodes.iter_mut().enumerate().filter_map(|(number, node)| Some((number, node.child.as_mut()?)));
        let waits: Vec<_> =
            waits.map(|(number, child)| Box::pin(async move { (number, child.wait().await) })).collect();
        if waits.is_empty() {
            return std::future::pending().await;
        }
        let ((number, status), _, _) = futures::future::select_all(waits).await;
        let status = status.map_or_else(|e| e.to_string(), |s| s.to_string());
        let LocalNode { data, address, child, .. } = &mut self.nodes[number];
        *child = None;
        let data = data.display();
        format!("node {} has ended ({status}); to start it: petuum serve --data {data} --listen {address}", number + 1)
    }

    /// Whether any node runs that was started here.
    pub(crate) fn is_running(&self) -> bool {
        self.nodes.iter().any(|node| node.child.is_some())
    }

    /// SIGTERM to every node, and waits until they have ended.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        for node in &mut self.nodes {
            node.terminate();
        }
        for node in &mut self.nodes {
            if let Some(mut child) = node.child.take()
                && timeout(Duration::from_secs(20), child.wait()).await.is_err()
            {
                child.kill().await.map_err(Failure::new)?;
            }
        }
        Ok(())
    }
}

/// The address a node listens on: the one it was formed with, else the port asked for, else a free one.
fn listen_address(data: &Path, port: Option<u16>, number: u32) -> Result<String, Failure> {
    let remembered = data.join("address");
    if let Ok(address) = std::fs::read_to_string(&remembered) {
        return Ok(address.trim().to_owned());
    }
    let port = match port {
        Some(first) => u32::from(first) + number - 1,
        None => u32::from(free_port()?),
    };
    let address = format!("127.0.0.1:{port}");
    std::fs::create_dir_all(data).map_err(|e| Failure::new(format_args!("{}: {e}", data.display())))?;
    std::fs::write(&remembered, &address).map_err(|e| Failure::new(format_args!("{}: {e}", remembered.display())))?;
    Ok(address)
}

/// A port nobody listens on now. Fixed per node afterwards, so that a node comes back where it was.
fn free_port() -> Result<u16, Failure> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(Failure::new)?;
    Ok(listener.local_addr().map_err(Failure::new)?.port())
}

impl LocalNode {
    async fn start(&mut self) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(Failure::new)?;
        let mut child = Command::new(program)
            .arg("serve")
            .args(["--child", "--with-parent"])
            .arg("--data")
            .arg(&self.data)
            .arg("--listen")
            .arg(&self.address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C on the terminal is for us; we stop the nodes in order.
            .process_group(0)
            .spawn()
            .map_err(|e| Failure::new(format_args!("a node could not be started: {e}")))?;
        let stdout = child.stdout.take().expect("it was piped");
        let mut lines = BufReader::new(stdout).lines();
        let first = timeout(START, lines.next_line()).await;
        match first {
            Ok(Ok(Some(line))) if line.starts_with("listening on ") => {
                self.tether = child.stdin.take();
                self.child = Some(child);
                Ok(())
            }
            Ok(_) => Err(Failure::new(format_args!("node {} did not start; its reason is above", self.address))),
            Err(_) => Err(Failure::new(format_args!("node {} did not start within {START:?}", self.address))),
        }
    }

    /// Waits until the node answers for its replicas.
    async fn wait_until_it_takes_part(&self) -> Result<(), Failure> {
        let asking = async {
            while crate::listing::replicas(&self.address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let late = |_| Failure::new(format_args!("node {} takes no part {START:?} after its start", self.address));
        timeout(START, asking).await.map_err(late)
    }

    fn terminate(&self) {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // It may have ended already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

/// Forms a cluster through its first node, trying for as long as the nodes are starting.
pub(crate) async fn init(addresses: &[String], shards: u32, replication: u32) -> Result<wire::InitResponse, Failure> {
    let connector: Arc<dyn Connector> = Arc::new(Tcp);
    let first = addresses.first().ok_or_else(|| Failure::new("no nodes named"))?;
    let channel = channel(&connector, first, ChannelSettings::default()).map_err(Failure::new)?;
    let request = wire::InitRequest { format: petuum_net::FORMAT, addresses: addresses.to_vec(), shards, replication };
    let mut last = None;
    for _ in 0..50 {
        match AdminClient::new(channel.clone()).init(request.clone()).await {
            Ok(answer) => return Ok(answer.into_inner()),
            Err(status) => {
                let error = petuum_net::status::from_status(&status);
                if !error.is_retryable() {
                    return Err(error.into());
                }
                last = Some(error);
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err(Failure::new(format_args!("{first}: {}", last.map_or_else(String::new, |e| e.to_string()))))
}
