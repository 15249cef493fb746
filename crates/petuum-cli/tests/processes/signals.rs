//! Signals: what stops a node or a whole local cluster, in order or at once, and leaves nothing behind.

use crate::cluster::{Cluster, PETUUM, exit_within, petuum, pid, processes_in};
use rustix::process::{Signal, kill_process, kill_process_group};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// `petuum local`, killed with its nodes if the test fails.
struct Local {
    child: Child,
    endpoints: String,
}

impl Local {
    /// Starts it with `temporary` as the place of its data, and reads what it says until it waits for Ctrl-C.
    fn start(temporary: &Path) -> Self {
        let mut command = Command::new(PETUUM);
        command
            .args(["local", "--nodes", "3", "--shards", "2"])
            .env("TMPDIR", temporary)
            .env_remove("PETUUM_ENDPOINTS");
        // A terminal sends Ctrl-C to the whole group of the process in front.
        let mut child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut local = Self { child, endpoints: String::new() };
        for line in lines {
            if let Some(endpoints) = line.trim().strip_prefix("export PETUUM_ENDPOINTS=") {
                local.endpoints = endpoints.to_owned();
            }
            if line == "Ctrl-C stops it." {
                break;
            }
        }
        local
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            kill_process_group(pid(&self.child), Signal::INT).unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// Every group of the cluster, two shards' and the control group, has a leader that `ctl status` shows, and so many nodes do
/// not answer.
async fn assert_takes_status(endpoints: &str, unreachable: usize) {
    let begin = Instant::now();
    loop {
        let status = petuum(&["ctl", "--endpoints", endpoints, "status"]);
        let said = String::from_utf8_lossy(&status.stdout);
        if status.status.success()
            && said.matches("leader").count() == 3
            && said.matches("unreachable").count() == unreachable
        {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "three leaders within 20 s: {status:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_a_local_cluster_with_all_its_nodes_and_data() {
    let temporary = tempfile::tempdir().unwrap();
    let mut local = Local::start(temporary.path());
    assert_eq!(local.endpoints.split(',').count(), 3, "{}", local.endpoints);
    assert_eq!(processes_in(temporary.path()).len(), 3, "one process per node");
    assert_takes_status(&local.endpoints, 0).await;
    kill_process_group(pid(&local.child), Signal::INT).unwrap();
    let exit = exit_within(&mut local.child, Duration::from_secs(30)).await.expect("an end within 30 s");
    assert_eq!(exit.code(), Some(0), "{exit}");
    assert_eq!(processes_in(temporary.path()), [], "no node is left");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "no data is left");
    let error = petuum(&["ctl", "--endpoints", &local.endpoints, "--deadline", "1", "status"]);
    assert!(!error.status.success(), "nobody listens any more: {error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_cluster_goes_on_without_a_node_that_was_killed() {
    let temporary = tempfile::tempdir().unwrap();
    let mut local = Local::start(temporary.path());
    kill_process(processes_in(temporary.path())[0], Signal::KILL).unwrap();
    assert_takes_status(&local.endpoints, 1).await;
    kill_process(pid(&local.child), Signal::INT).unwrap();
    let exit = exit_within(&mut local.child, Duration::from_secs(30)).await.expect("an end within 30 s");
    assert_eq!(exit.code(), Some(0), "{exit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_stop_by_themselves_when_their_local_cluster_was_killed() {
    let temporary = tempfile::tempdir().unwrap();
    let mut local = Local::start(temporary.path());
    kill_process(pid(&local.child), Signal::KILL).unwrap();
    local.child.wait().unwrap();
    let begin = Instant::now();
    while !processes_in(temporary.path()).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(30), "an end of all nodes within 30 s");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A node whose peers are dead can hand its leaderships to nobody and tries for three seconds. On a busy machine it may
/// have lost them just before: then there was nothing to hand over, and another attempt tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_sigterm_ends_a_node_at_once() {
    let mut cluster = Cluster::start(3, 2).await;
    for _ in 0..5 {
        let leader = cluster.busiest().await;
        (0..3).filter(|node| *node != leader).for_each(|node| cluster.kill(node));
        cluster.send_sigterm(leader);
        let early = cluster.exit_within(leader, Duration::from_secs(1)).await;
        if early.is_none() {
            cluster.send_sigterm(leader);
        }
        let late = cluster.exit_within(leader, Duration::from_millis(1500)).await;
        let exit = early.or(late).expect("an end at the second signal");
        assert_eq!(exit.code(), Some(0), "{exit}");
        (0..3).for_each(|node| cluster.restart(node));
        cluster.client().await.job("started").await.unwrap();
        if early.is_none() {
            return;
        }
    }
    panic!("five times a node that led a shard had nothing to hand over");
}
