//! A cluster of real nodes: it forms, survives deaths, and its control group answers as it must around them.

use petuum_sim::SimCluster;
use petuum_types::{GroupId, ShardId};

use crate::support::{SOON, call, formed, settled};

#[test]
fn a_leaders_death_moves_the_lead_and_its_replica_comes_back() {
    let mut cluster = settled(1);
    let group = GroupId::of_shard(ShardId(0));
    cluster.step_until("a leader", SOON, |cluster| cluster.leader(group).is_some()).unwrap();
    let leader = cluster.leader(group).unwrap();
    assert!(cluster.kill(&leader) && !cluster.kill(&leader) && !cluster.is_up(&leader));
    assert_eq!(cluster.shards_on(&leader), []);
    cluster.step_until("another leader", SOON, |cluster| cluster.leader(group).is_some()).unwrap();
    assert_ne!(cluster.leader(group).unwrap(), leader);
    assert!(cluster.start(&leader) && !cluster.start(&leader));
    cluster.step_until("three nodes", SOON, |cluster| cluster.views().len() == 3).unwrap();
    assert_eq!(cluster.shards_on(&leader).len(), 2);
}

/// Was refused for good, when the call met a control group that had a leader and no entry yet.
#[test]
fn a_cluster_formed_a_moment_ago_makes_a_job() {
    for seed in 1..6 {
        let mut cluster = formed(seed);
        call(&mut cluster, "maker", |client| async move { client.create_job("job", 1, None).await.map(drop) });
    }
}

/// A control leader that has not applied its own log yet must not deny what is in it.
#[test]
fn a_job_is_known_at_once_after_a_power_failure() {
    for seed in 1..6 {
        let mut cluster = formed(seed);
        call(&mut cluster, "maker", |client| async move { client.create_job("job", 1, None).await.map(drop) });
        let lost = cluster.lose_power(&cluster.nodes());
        assert_eq!(lost.len(), 3);
        cluster.restore_power(&cluster.nodes());
        call(&mut cluster, "asker", |client| async move { client.job("job").await.map(drop) });
    }
}

#[test]
fn what_is_cut_stays_cut_through_a_power_failure() {
    let mut cluster = settled(1);
    let nodes = cluster.nodes();
    // The first is cut off from both others, so they lead without it, also after they were dark.
    cluster.cut(&nodes[0], &nodes[1]);
    cluster.cut(&nodes[0], &nodes[2]);
    cluster.lose_power(&nodes[1..]);
    cluster.restore_power(&nodes[1..]);
    let group = GroupId::of_shard(ShardId(0));
    let moved = |cluster: &mut SimCluster| cluster.leader(group).is_some_and(|leader| leader != "node-1");
    // Whom the cut keeps out cannot show its boot to the others nor take part in their votes.
    cluster.step_until("a leader among the others", SOON, moved).unwrap();
    cluster.mend(&nodes[0], &nodes[1]);
    cluster.mend(&nodes[0], &nodes[2]);
    cluster
        .step_until("one lead", SOON, |cluster| {
            let views = cluster.views();
            let leads = views.iter().flat_map(|view| &view.replicas).filter(|r| r.group == group && r.leads);
            leads.count() == 1
        })
        .unwrap();
}
