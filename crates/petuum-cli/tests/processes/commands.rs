//! The command as a person uses it.

use crate::cluster::{Cluster, PETUUM, free_address, petuum, serve};
use petuum_client::{Client, Options};
use petuum_net::status::from_status;
use petuum_net::wire;
use petuum_net::wire::data_client::DataClient;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::ErrorKind;
use std::net::TcpListener;
use std::process::{Output, Stdio};

fn error_of(output: &Output) -> String {
    assert!(!output.status.success(), "it should have failed");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<&str> = text.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "one line of error: {text}");
    errors[0].to_owned()
}

#[test]
fn a_port_in_use_an_unusable_directory_and_a_bad_setting_are_one_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = error_of(&serve(&folder.path().join("a"), &address).output().unwrap());
    assert!(error.contains(&address), "{error}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = error_of(&serve(&file, &free_address()).output().unwrap());
    assert!(error.contains("file"), "{error}");
    let config = folder.path().join("petuum.toml");
    std::fs::write(&config, "listn = \"127.0.0.1:1\"").unwrap();
    let error = error_of(&petuum(&["serve", "--config", config.to_str().unwrap()]));
    assert!(error.contains("listn") && error.contains("\"listen\""), "{error}");
    let error = error_of(&serve(&folder.path().join("b"), "0.0.0.0:0").output().unwrap());
    assert!(error.contains("loopback"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_never_share_a_directory() {
    let cluster = Cluster::unformed(1);
    let error = error_of(&serve(&cluster.data(0), &free_address()).output().unwrap());
    assert!(error.contains("node-0"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn init_is_idempotent_and_ctl_tells_what_there_is() {
    let mut cluster = Cluster::unformed(3);
    let first = cluster.init(2);
    assert!(String::from_utf8_lossy(&first.stdout).contains("is formed"), "{first:?}");
    let again = cluster.init(2);
    assert!(String::from_utf8_lossy(&again.stdout).contains("exists already"), "{again:?}");
    assert!(error_of(&cluster.init(5)).contains("2 shards"));
    let endpoints = cluster.addresses.join(",");
    let ctl = |args: &[&str]| {
        let output = petuum(&[&["ctl", "--endpoints", &endpoints], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(ctl(&["job", "create", "j", "--workers", "2"]).contains("2 workers"));
    assert!(ctl(&["table", "create", "j", "t", "--width", "8", "--staleness", "1"]).contains("\"t\""));
    assert!(ctl(&["table", "list", "j"]).contains("f32"));
    let workers = ctl(&["worker", "list", "j"]);
    assert!(workers.contains("unregistered") && workers.contains("LEASE LEFT"), "{workers}");
    let status = ctl(&["status"]);
    assert!(status.matches("leader").count() >= 3, "{status}");
    assert!(ctl(&["table", "drop", "j", "t"]).contains("dropped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alias_is_refused_before_init_begins() {
    let mut cluster = Cluster::unformed(2);
    for aliased in 0..2 {
        let mut nodes = cluster.addresses.clone();
        nodes[aliased] = nodes[aliased].replace("127.0.0.1", "localhost");
        let error = error_of(&petuum(&["ctl", "init", "--nodes", &nodes.join(",")]));
        assert!(error.contains(&cluster.addresses[aliased]) && error.contains(&nodes[aliased]), "{error}");
    }
    let formed = cluster.init(1);
    assert!(String::from_utf8_lossy(&formed.stdout).contains("is formed"), "{formed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_commands_at_once_form_one_cluster() {
    let mut cluster = Cluster::unformed(3);
    let nodes = cluster.addresses.join(",");
    let mut commands = Vec::new();
    for _ in 0..2 {
        let mut command = std::process::Command::new(PETUUM);
        command.args(["ctl", "init", "--nodes", &nodes, "--shards", "2"]).stdin(Stdio::null()).stdout(Stdio::piped());
        commands.push(command.spawn().unwrap());
    }
    let said = commands.into_iter().map(|command| {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    let said: Vec<String> = said.collect();
    let id = |text: &str| text.split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(id(&said[0]), id(&said[1]));
    assert_eq!(said.iter().filter(|text| text.contains("is formed")).count(), 1, "{said:?}");
    assert!(String::from_utf8_lossy(&cluster.init(2).stdout).contains(&id(&said[0])));
}

/// A node whose disk was emptied knows nothing; it must not answer as if there were nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p21_a_wiped_node_serves_nothing_and_does_not_get_its_place_back() {
    let mut cluster = Cluster::start(3, 1).await;
    cluster.kill(2);
    std::fs::remove_dir_all(cluster.data(2)).unwrap();
    cluster.restart(2);
    let kind = |status: tonic::Status| from_status(&status).kind();
    let format = petuum_net::FORMAT;
    let replicas = cluster.admin(2).get_replicas(wire::GetReplicasRequest { format }).await;
    assert_eq!(replicas.map_err(kind).unwrap_err(), ErrorKind::NotInitialized);
    let map = SessionClient::new(cluster.channel(2)).get_map(wire::GetMapRequest { format }).await;
    assert_eq!(map.map_err(kind).unwrap_err(), ErrorKind::NotInitialized);
    let read = wire::ReadRequest { format, shard: 0, job: 1, latest: true, ..wire::ReadRequest::default() };
    let read = DataClient::new(cluster.channel(2)).read(read).await;
    assert_eq!(read.map(drop).map_err(kind).unwrap_err(), ErrorKind::NotInitialized);
    // A client that asks it first believes the others.
    let order = [2, 0, 1].map(|node| cluster.addresses[node].clone());
    let client = Client::connect(&order, Options::default()).await.unwrap();
    client.job("started").await.unwrap();
    // Started more often than its peers remember, and adopted again by the same init: they refuse it all the same.
    for _ in 0..2 {
        cluster.kill(2);
        cluster.restart(2);
    }
    cluster.init(1);
    cluster.kill(2);
    let error = error_of(&serve(&cluster.data(2), &cluster.addresses[2]).output().unwrap());
    assert!(error.contains("emptied") && error.contains("with which it ran last"), "{error}");
}

/// P21: a node started from an old copy of its data directory is refused by its peers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p21_an_old_copy_of_a_data_directory_does_not_start() {
    let mut cluster = Cluster::start(3, 1).await;
    cluster.terminate(2);
    let copy = cluster.data(9);
    copy_folder(&cluster.data(2), &copy);
    // Two more lives of the node, which its peers remember.
    for _ in 0..2 {
        cluster.restart(2);
        wait_for_part(&cluster, 2).await;
        cluster.terminate(2);
    }
    std::fs::remove_dir_all(cluster.data(2)).unwrap();
    std::fs::rename(&copy, cluster.data(2)).unwrap();
    let error = error_of(&serve(&cluster.data(2), &cluster.addresses[2]).output().unwrap());
    assert!(error.contains("old copy") && error.contains("with which it ran last"), "{error}");
}

async fn wait_for_part(cluster: &Cluster, node: usize) {
    for _ in 0..100 {
        let request = wire::GetReplicasRequest { format: petuum_net::FORMAT };
        if cluster.admin(node).get_replicas(request).await.is_ok() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("node {node} did not take part");
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
