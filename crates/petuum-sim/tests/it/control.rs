//! The control group around failures: heartbeats, workers' clocks and leases, drivers that follow leaders, forming.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use petuum_client::{Client, TableDefinition, Worker, WorkerOptions};
use petuum_net::status::from_status;
use petuum_net::transport::{ChannelSettings, Connector, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use petuum_net::wire::session_client::SessionClient;
use petuum_sim::{SimCluster, SimConnector};
use petuum_types::{Error, ErrorKind, GroupId, RowId, ShardId, WorkerId};
use tokio::time::Instant;

use crate::support::{SOON, call, run, settled};

fn connector() -> Arc<dyn Connector> {
    Arc::new(SimConnector)
}

async fn beat(address: String, request: wire::HeartbeatRequest) -> Result<u32, Error> {
    let channel = channel(&connector(), &address, ChannelSettings::default()).unwrap();
    let answer = SessionClient::new(channel).heartbeat(request).await;
    answer.map(|answer| answer.into_inner().lease_ms).map_err(|status| from_status(&status))
}

/// A job of one worker that finishes some clocks; gives what its heartbeats carry.
fn work(cluster: &mut SimCluster, clocks: u64) -> wire::HeartbeatRequest {
    call(cluster, "worker", move |client| async move {
        let job = client.create_job("job", 1, Some(Duration::from_secs(300))).await?;
        let table = job.create_table(&TableDefinition::i64("table", 1, 0)).await?;
        let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
        let mut thread = session.thread();
        for _ in 0..clocks {
            thread.inc(&table, RowId(1), 0, 1i64)?;
            thread.clock().await?;
        }
        thread.flush().await?;
        let incarnation = session.incarnation().0;
        Ok(wire::HeartbeatRequest { format: petuum_net::FORMAT, job: job.info().id.0, worker: 0, incarnation })
    })
}

/// Was answered by whoever took itself for the leader: the worker kept a lease that nobody counted.
#[test]
fn p16_a_control_leader_deposed_without_knowing_does_not_answer_heartbeats() {
    for seed in 1..4 {
        let mut cluster = settled(seed);
        let request = work(&mut cluster, 1);
        let old = cluster.leader(GroupId::CONTROL).unwrap();
        let nodes = cluster.nodes();
        let at = nodes.iter().position(|node| *node == old).unwrap();
        let address = cluster.endpoints()[at].clone();
        assert_eq!(run(&mut cluster, "before", beat(address.clone(), request)), Ok(300_000));
        nodes.iter().filter(|node| **node != old).for_each(|other| cluster.cut(&old, other));
        let moved = |cluster: &mut SimCluster| cluster.leader(GroupId::CONTROL).is_some_and(|leader| leader != old);
        cluster.step_until("another leader", SOON, moved).unwrap();
        let leads = cluster.views()[at].replicas.iter().any(|r| r.group == GroupId::CONTROL && r.leads);
        assert!(leads, "the old leader still takes itself for one");
        let refused = run(&mut cluster, "after", beat(address, request)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        // The worker's own client finds the new one.
        let new = cluster.leader(GroupId::CONTROL).unwrap();
        let at = nodes.iter().position(|node| *node == new).unwrap();
        let address = cluster.endpoints()[at].clone();
        assert_eq!(run(&mut cluster, "new", beat(address, request)), Ok(300_000));
    }
}

#[test]
fn p16_a_worker_is_listed_with_its_acknowledged_clock_and_what_is_left_of_its_lease() {
    let mut cluster = settled(1);
    work(&mut cluster, 5);
    let list = |client: Client| async move { client.job("job").await?.workers().await };
    let workers = call(&mut cluster, "first", list);
    assert_eq!((workers.len(), workers[0].phase.as_str(), workers[0].clock), (1, "live", 5));
    let first = workers[0].lease_left_ms;
    assert!(0 < first && first <= 300_000, "{first}");
    cluster.simulation().run_for(Duration::from_secs(3)).unwrap();
    let second = call(&mut cluster, "second", list)[0].lease_left_ms;
    assert!((2_900..4_000).contains(&(first - second)), "nobody has sent heartbeats since: {first}, {second}");
    call(&mut cluster, "evict", |client| async move { client.job("job").await?.evict(WorkerId(0)).await });
    let removed = call(&mut cluster, "third", list);
    assert_eq!((removed[0].phase.as_str(), removed[0].clock, removed[0].lease_left_ms), ("removed", 5, 0));
}

/// The driver used to wait for a dark replica until its attempt was over, and then began with the same one again.
#[test]
fn a_silent_replica_does_not_hold_up_the_driver() {
    // Shard 1 lies on nodes 2, 3 and 4; the control group on 1, 2 and 3.
    let mut cluster = SimCluster::builder(1).nodes(4).shards(2).build();
    cluster.form(SOON).unwrap();
    call(&mut cluster, "maker", |client| async move { client.create_job("job", 1, None).await.map(drop) });
    assert_eq!(cluster.leader(GroupId::CONTROL).as_deref(), Some("node-1"));
    assert_eq!(cluster.shards_on("node-1"), [ShardId(0)]);
    cluster.lose_power(&["node-2".to_owned()]);
    let group = GroupId::of_shard(ShardId(1));
    let elected = |cluster: &mut SimCluster| cluster.leader(group).is_some();
    cluster.step_until("a leader among the others", SOON, elected).unwrap();
    let took = call(&mut cluster, "tables", |client| async move {
        let job = client.job("job").await?;
        let mut took = Vec::new();
        for name in ["first", "second"] {
            let begin = Instant::now();
            job.create_table(&TableDefinition::i64(name, 1, 0)).await?;
            took.push(begin.elapsed());
        }
        Ok(took)
    });
    assert!(took.iter().all(|took| *took < Duration::from_secs(1)), "{took:?}");
}

/// Two operators form the same cluster at once, each through another node: one cluster comes of it.
#[test]
fn two_calls_of_init_at_once_form_one_cluster() {
    for seed in 1..9 {
        let mut cluster = SimCluster::builder(seed).nodes(3).shards(2).build();
        let request =
            wire::InitRequest { format: petuum_net::FORMAT, addresses: cluster.endpoints(), shards: 2, replication: 3 };
        let formed = Rc::new(RefCell::new(Vec::new()));
        for (name, address) in ["a", "b", "c"].into_iter().zip(cluster.endpoints()) {
            let (tell, request) = (Rc::clone(&formed), request.clone());
            cluster.client(name, async move {
                let channel = channel(&connector(), &address, ChannelSettings::default())?;
                loop {
                    match AdminClient::new(channel.clone()).init(request.clone()).await.map_err(|s| from_status(&s)) {
                        Ok(answer) => break tell.borrow_mut().push(answer.into_inner()),
                        Err(error) if error.is_retryable() => tokio::time::sleep(Duration::from_millis(50)).await,
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(())
            });
        }
        cluster.step_until("all three answers", SOON, |_| formed.borrow().len() == 3).unwrap();
        let formed = formed.take();
        assert!(formed.iter().all(|answer| answer.cluster == formed[0].cluster), "{formed:?}");
        assert_eq!(formed.iter().filter(|answer| !answer.existed).count(), 1, "{formed:?}");
        cluster.step_until("three nodes", SOON, |cluster| cluster.views().len() == 3).unwrap();
        let id = call(&mut cluster, "asker", |client| async move { Ok(client.cluster_id().to_string()) });
        assert_eq!(id, formed[0].cluster);
    }
}
