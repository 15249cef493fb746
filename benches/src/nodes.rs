//! Nodes of a built `petuum` as child processes.

use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A cluster of child processes; killed when dropped.
pub struct Nodes {
    program: PathBuf,
    folder: PathBuf,
    /// `host:port` of each.
    pub addresses: Vec<String>,
    children: Vec<Option<Child>>,
}

impl Nodes {
    /// Starts `count` nodes with data under `folder` and forms a cluster of them.
    ///
    /// # Errors
    /// If a node does not start or the cluster cannot be formed.
    pub fn start(program: &Path, folder: &Path, count: usize, shards: u32) -> io::Result<Self> {
        let addresses = (0..count).map(|_| free_address()).collect::<io::Result<Vec<_>>>()?;
        let children = (0..count).map(|_| None).collect();
        let mut nodes = Self { program: program.to_owned(), folder: folder.to_owned(), addresses, children };
        for node in 0..count {
            nodes.restart(node)?;
        }
        let list = nodes.addresses.join(",");
        let init = Command::new(program)
            .args(["ctl", "init", "--nodes", &list, "--shards", &shards.to_string()])
            .stdout(Stdio::null())
            .status()?;
        if init.success() { Ok(nodes) } else { Err(io::Error::other("the cluster could not be formed")) }
    }

    /// Starts a node and waits until it listens.
    ///
    /// # Errors
    /// If it does not.
    pub fn restart(&mut self, node: usize) -> io::Result<()> {
        let mut child = Command::new(&self.program)
            .args(["serve", "--child", "--listen", &self.addresses[node], "--data"])
            .arg(self.folder.join(format!("node-{node}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        self.children[node] = Some(child);
        if line.starts_with("listening on") { Ok(()) } else { Err(io::Error::other("a node did not start")) }
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// What the system says.
    pub fn kill(&mut self, node: usize) -> io::Result<()> {
        if let Some(mut child) = self.children[node].take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Process ids of the nodes that run.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().flatten().map(Child::id).collect()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in 0..self.children.len() {
            // It may be gone already.
            let _ = self.kill(node);
        }
    }
}

/// A loopback address that nobody listens on.
pub(crate) fn free_address() -> io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
