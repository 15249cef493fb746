//! Nodes of etcd, as Debian installs it, as child processes: the system that throughput is compared with.

use crate::nodes::free_address;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a new cluster may take to elect a leader.
const START_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A cluster of child processes, with etcd's own defaults but for addresses and folders; killed when dropped.
pub struct Etcd {
    /// `host:port` for clients, of each.
    pub addresses: Vec<String>,
    children: Vec<Child>,
}

impl Etcd {
    /// Starts `count` nodes with data under `folder` and waits until all of them serve.
    ///
    /// # Errors
    /// If etcd is not installed (the message says how to), does not start or elects no leader in 20 seconds.
    pub async fn start(folder: &Path, count: usize) -> io::Result<Self> {
        let addresses = (0..count).map(|_| free_address()).collect::<io::Result<Vec<_>>>()?;
        let peers = (0..count).map(|_| free_address()).collect::<io::Result<Vec<_>>>()?;
        let members: Vec<String> =
            peers.iter().enumerate().map(|(node, peer)| format!("n{node}=http://{peer}")).collect();
        let mut cluster = Self { addresses, children: Vec::new() };
        for (node, peer) in peers.iter().enumerate() {
            let (client, peer) = (format!("http://{}", cluster.addresses[node]), format!("http://{peer}"));
            let child = Command::new("etcd")
                .args(["--name", &format!("n{node}"), "--initial-cluster", &members.join(",")])
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .arg("--data-dir")
                .arg(folder.join(format!("etcd-{node}")))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(missing)?;
            cluster.children.push(child);
        }
        match tokio::time::timeout(START_MAX, cluster.healthy()).await {
            Ok(()) => Ok(cluster),
            Err(_) => Err(io::Error::other(format!("etcd's nodes did not all serve within {START_MAX:?}"))),
        }
    }

    async fn healthy(&self) {
        for address in &self.addresses {
            while !is_healthy(address).unwrap_or(false) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may be gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn missing(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::NotFound {
        return io::Error::new(ErrorKind::NotFound, "etcd is not installed; as root: apt-get install etcd-server");
    }
    error
}

/// What a node says of itself: it is healthy once it knows a leader and can commit.
fn is_healthy(address: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(stream, "GET /health HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains(r#""health":"true""#))
}
