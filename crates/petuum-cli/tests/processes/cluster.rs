//! A cluster of child processes for one test.

use petuum_client::{Client, Options};
use petuum_net::transport::{ChannelSettings, Connector, Tcp, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const PETUUM: &str = env!("CARGO_BIN_EXE_petuum");

/// Nodes on loopback; killed when dropped.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    pub(crate) addresses: Vec<String>,
    children: Vec<Option<Child>>,
}

impl Cluster {
    /// Starts and forms a cluster.
    pub(crate) async fn start(nodes: usize, shards: u32) -> Self {
        let mut cluster = Self::unformed(nodes);
        let answer = cluster.init(shards);
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        // Every shard has a leader once a job is open.
        cluster.client().await.create_job("started", 1, None).await.unwrap();
        cluster
    }

    /// Nodes that belong to no cluster.
    pub(crate) fn unformed(nodes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let addresses = (0..nodes).map(|_| free_address()).collect();
        let mut cluster = Self { folder, addresses, children: (0..nodes).map(|_| None).collect() };
        for node in 0..nodes {
            cluster.restart(node);
        }
        cluster
    }

    pub(crate) fn init(&mut self, shards: u32) -> Output {
        let nodes = self.addresses.join(",");
        petuum(&["ctl", "init", "--nodes", &nodes, "--shards", &shards.to_string()])
    }

    pub(crate) fn data(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node-{node}"))
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.addresses, Options::default()).await.unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.children[node].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// SIGTERM; returns the exit code.
    pub(crate) fn terminate(&mut self, node: usize) -> Option<i32> {
        self.send_sigterm(node);
        self.children[node].take().unwrap().wait().unwrap().code()
    }

    /// SIGTERM, and no wait for what comes of it.
    pub(crate) fn send_sigterm(&self, node: usize) {
        self.send(node, Signal::TERM);
    }

    /// A signal to a node that runs.
    pub(crate) fn send(&self, node: usize, signal: Signal) {
        kill_process(pid(self.children[node].as_ref().unwrap()), signal).unwrap();
    }

    /// The exit of a node that ends within this time.
    pub(crate) async fn exit_within(&mut self, node: usize, time: Duration) -> Option<ExitStatus> {
        exit_within(self.children[node].as_mut().unwrap(), time).await
    }

    /// Starts a node and waits until it listens.
    pub(crate) fn restart(&mut self, node: usize) {
        let mut child = serve(&self.data(node), &self.addresses[node]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "node {node} said {line:?}");
        self.children[node] = Some(child);
    }

    pub(crate) fn admin(&self, node: usize) -> AdminClient<tonic::transport::Channel> {
        AdminClient::new(self.channel(node))
    }

    pub(crate) fn channel(&self, node: usize) -> tonic::transport::Channel {
        let connector: Arc<dyn Connector> = Arc::new(Tcp);
        channel(&connector, &self.addresses[node], ChannelSettings::default()).unwrap()
    }

    /// Waits until all replicas of each shard are at one index, and asserts that they are equal there (G6).
    pub(crate) async fn assert_replicas_equal(&self, shards: u32) {
        for shard in 0..shards {
            for attempt in 0.. {
                let mut sums = Vec::new();
                for node in 0..self.addresses.len() {
                    let request = wire::GetChecksumsRequest { format: petuum_net::FORMAT, shard };
                    if let Ok(answer) = self.admin(node).get_checksums(request).await {
                        sums.push(answer.into_inner());
                    }
                }
                let settled = sums.len() == self.addresses.len() && sums.iter().all(|s| s.index == sums[0].index);
                if settled {
                    assert!(sums.iter().all(|s| *s == sums[0]), "shard {shard} differs at index {}", sums[0].index);
                    break;
                }
                assert!(attempt < 300, "shard {shard}: replicas did not reach one index in 30 s");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// The node that leads most shards.
    pub(crate) async fn busiest(&self) -> usize {
        let begin = Instant::now();
        loop {
            let mut most = (0, 0);
            for node in 0..self.addresses.len() {
                let request = wire::GetReplicasRequest { format: petuum_net::FORMAT };
                if let Ok(answer) = self.admin(node).get_replicas(request).await {
                    let leads =
                        answer.into_inner().replicas.iter().filter(|r| r.group > 0 && r.role == "leader").count();
                    most = most.max((leads, node));
                }
            }
            if most.0 > 0 {
                return most.1;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "a shard has a leader within 20 s");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.children.len()).for_each(|node| self.kill(node));
    }
}

pub(crate) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// The exit of a process that ends within this time.
pub(crate) async fn exit_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + time;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return Some(status),
            None if Instant::now() >= end => return None,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// The processes that have this folder's path in their command line.
pub(crate) fn processes_in(folder: &Path) -> Vec<Pid> {
    let folder = folder.to_str().unwrap();
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = numbers.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let told = numbers.filter_map(|number| Some((number, std::fs::read(format!("/proc/{number}/cmdline")).ok()?)));
    let ours = told.filter(|(_, command)| String::from_utf8_lossy(command).contains(folder));
    ours.filter_map(|(number, _)| Pid::from_raw(number)).collect()
}

pub(crate) fn serve(data: &Path, listen: &str) -> Command {
    let mut command = Command::new(PETUUM);
    command.arg("serve").arg("--data").arg(data).arg("--listen").arg(listen).stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn petuum(args: &[&str]) -> Output {
    Command::new(PETUUM).args(args).stdin(Stdio::null()).env_remove("PETUUM_ENDPOINTS").output().unwrap()
}
