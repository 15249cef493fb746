//! What was acknowledged is there after directed failures: of a group's leader and those that had acknowledged first, of
//! the only replica, of a leader that was cut off with writes under way.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Options, ReadFrom, TableDefinition, Worker, WorkerOptions};
use petuum_server::NodeSettings;
use petuum_sim::SimCluster;
use petuum_sim::cluster::ReplicaView;
use petuum_types::{Error, GroupId, LogIndex, RowId, ShardId, WorkerId};

use crate::support::{SOON, call, options_of, settle};

const ROW: RowId = RowId(7);
/// Longer than any failure here.
const DEADLINE: Duration = Duration::from_secs(180);
/// The only shard's group.
const GROUP: GroupId = GroupId::of_shard(ShardId(0));

/// A worker that ends clocks without a pause until it is told to stop.
#[derive(Clone, Default)]
struct Writer {
    /// Clocks acknowledged.
    acked: Rc<Cell<i64>>,
    stop: Rc<Cell<bool>>,
    stopped: Rc<Cell<bool>>,
    /// Whether it reads the latest row after every acknowledgement.
    reads: bool,
}

impl Writer {
    fn start(self, cluster: &mut SimCluster, id: u32) -> Self {
        let (endpoints, writer) = (cluster.endpoints(), self.clone());
        cluster.client(&format!("writer-{id}"), async move { Ok(writer.run(endpoints, id).await?) });
        self
    }

    /// Adds 1 in the writer's own column in each clock: what the row holds is what was acknowledged.
    async fn run(self, endpoints: Vec<String>, id: u32) -> Result<(), Error> {
        let options = Options { deadline: DEADLINE, ..options_of(&format!("writer-{id}")) };
        let client = Client::connect(&endpoints, options).await?;
        let job = client.job("job").await?;
        let table = job.table("table").await?;
        let session = job.worker(WorkerId(id), WorkerOptions::default()).await?;
        let mut thread = session.thread();
        while !self.stop.get() {
            thread.inc(&table, ROW, id, 1i64)?;
            thread.clock().await?;
            thread.flush().await?;
            self.acked.set(self.acked.get() + 1);
            if self.reads {
                let rows = job.read(&table, &[ROW], ReadFrom::Latest).await?;
                assert_eq!(rows[0].values.as_i64().unwrap()[id as usize], self.acked.get(), "what was acknowledged");
            }
        }
        self.stopped.set(true);
        Ok(())
    }
}

fn make(cluster: &mut SimCluster, workers: u32) {
    cluster.form(SOON).unwrap();
    settle(cluster);
    call(cluster, "maker", move |client| async move {
        let job = client.create_job("job", workers, Some(Duration::from_secs(300))).await?;
        // No worker waits for another.
        job.create_table(&TableDefinition::i64("table", workers, 1_000)).await.map(drop)
    });
}

fn read(cluster: &mut SimCluster, name: &str) -> Vec<i64> {
    call(cluster, name, |client| async move {
        let job = client.job("job").await?;
        let rows = job.read(&job.table("table").await?, &[ROW], ReadFrom::Latest).await?;
        Ok(rows[0].values.as_i64().unwrap().to_vec())
    })
}

/// Stops the writers; what is there then is exactly what they were told.
fn finish(cluster: &mut SimCluster, writers: &[Writer]) {
    writers.iter().for_each(|writer| writer.stop.set(true));
    cluster.step_until("the writers' ends", 2 * SOON, |_| writers.iter().all(|w| w.stopped.get())).unwrap();
    let acked: Vec<i64> = writers.iter().map(|writer| writer.acked.get()).collect();
    assert_eq!(read(cluster, "last"), acked);
}

fn replica(cluster: &SimCluster, host: &str) -> Option<ReplicaView> {
    let view = cluster.views().into_iter().find(|view| view.host == host)?;
    view.replicas.into_iter().find(|replica| replica.group == GROUP)
}

/// One leader with two of its four followers, one of which is slow: none of the three can be done without.
struct Quorum {
    leader: String,
    fast: String,
    slow: String,
    cut: Vec<String>,
}

impl Quorum {
    fn choose(cluster: &mut SimCluster, random: &mut fastrand::Rng) -> Self {
        cluster
            .step_until("five replicas and a leader", SOON, |cluster| {
                cluster.views().len() == 5 && cluster.leader(GROUP).is_some()
            })
            .unwrap();
        let leader = cluster.leader(GROUP).unwrap();
        let mut others: Vec<String> = cluster.nodes().into_iter().filter(|node| *node != leader).collect();
        random.shuffle(&mut others);
        for node in &others {
            let least = random.u64(1..20);
            cluster.set_sync_latency(node, Duration::from_millis(least), Duration::from_millis(2 * least));
        }
        let (fast, slow) = (others.remove(0), others.remove(0));
        cluster.set_sync_latency(&leader, Duration::from_micros(500), Duration::from_millis(1));
        cluster.set_sync_latency(&fast, Duration::from_micros(500), Duration::from_millis(1));
        cluster.set_sync_latency(&slow, Duration::from_millis(20), Duration::from_millis(40));
        Self { leader, fast, slow, cut: others }
    }
}

/// Writes go on with exactly three of five, stop with two, and are all there when those two lose their power. Returns
/// whether the leader still led when it was left with one follower.
fn power_fails_for_the_first_to_acknowledge(
    cluster: &mut SimCluster,
    writer: &Writer,
    random: &mut fastrand::Rng,
) -> bool {
    let quorum = Quorum::choose(cluster, random);
    quorum.cut.iter().for_each(|node| cluster.cut(&quorum.leader, node));
    let enough = writer.acked.get() + 10;
    cluster.step_until("acknowledgements by three of five", SOON, |_| writer.acked.get() >= enough).unwrap();
    cluster.cut(&quorum.leader, &quorum.slow);
    // What was under way arrives; nobody else is elected so early.
    cluster.simulation().run_for(Duration::from_millis(50)).unwrap();
    let frozen = writer.acked.get();
    cluster.simulation().run_for(Duration::from_millis(200)).unwrap();
    let led = cluster.leader(GROUP).as_ref() == Some(&quorum.leader);
    assert!(!led || writer.acked.get() == frozen, "two of five acknowledged a clock");
    let acked = writer.acked.get();
    let dark = [quorum.leader.clone(), quorum.fast.clone()];
    assert_eq!(cluster.lose_power(&dark).len(), 2);
    let elected = |cluster: &mut SimCluster| cluster.leader(GROUP).is_some();
    cluster.step_until("a leader among the other three", SOON, elected).unwrap();
    quorum.cut.iter().chain([&quorum.slow]).for_each(|node| cluster.mend(&quorum.leader, node));
    cluster.restore_power(&dark);
    let name = format!("reader-at-{}", cluster.elapsed().as_millis());
    let value = read(cluster, &name)[0];
    assert!(value >= acked, "{acked} clocks were acknowledged and {value} are there");
    led
}

#[test]
fn five_voters_lose_no_clock_when_the_leader_and_its_fastest_follower_lose_power() {
    for seed in 1..4 {
        let mut cluster = SimCluster::builder(seed).nodes(5).shards(1).replication(5).build();
        make(&mut cluster, 1);
        let writer = Writer::default().start(&mut cluster, 0);
        let mut random = fastrand::Rng::with_seed(seed);
        let rounds = (0..5).map(|_| power_fails_for_the_first_to_acknowledge(&mut cluster, &writer, &mut random));
        let led = rounds.filter(|led| *led).count();
        assert!(led >= 3, "seed {seed}: in {led} of 5 rounds the leader was left with one follower and led");
        finish(&mut cluster, &[writer]);
    }
}

#[test]
fn g8_a_worker_goes_on_by_itself_when_all_nodes_were_down_for_more_than_a_minute() {
    for (seed, power) in [(1, false), (2, true)] {
        let mut cluster = SimCluster::builder(seed).nodes(3).shards(1).build();
        make(&mut cluster, 1);
        let writer = Writer { reads: true, ..Writer::default() }.start(&mut cluster, 0);
        cluster.step_until("first clocks", SOON, |_| writer.acked.get() >= 10).unwrap();
        let nodes = cluster.nodes();
        if power {
            cluster.lose_power(&nodes);
        } else {
            assert!(nodes.iter().all(|node| cluster.kill(node)));
        }
        let before = writer.acked.get();
        cluster.simulation().run_for(Duration::from_secs(70)).unwrap();
        assert_eq!(writer.acked.get(), before, "nobody is there to acknowledge anything");
        if power {
            cluster.restore_power(&nodes);
        } else {
            nodes.iter().for_each(|node| assert!(cluster.start(node)));
        }
        cluster.step_until("more clocks", SOON, |_| writer.acked.get() >= before + 50).unwrap();
        finish(&mut cluster, &[writer]);
    }
}

/// A group of one replica has nobody to ask; it must wait for its own disk.
#[test]
fn one_replica_has_all_it_acknowledged_when_its_power_fails_right_after() {
    for seed in 1..4 {
        let mut cluster = SimCluster::builder(seed).nodes(1).shards(1).replication(1).build();
        make(&mut cluster, 1);
        let writer = Writer { reads: true, ..Writer::default() }.start(&mut cluster, 0);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..30 {
            let next = writer.acked.get() + random.i64(1..4);
            cluster.step_until("an acknowledgement", SOON, |_| writer.acked.get() >= next).unwrap();
            assert_eq!(cluster.lose_power(&cluster.nodes()).len(), 1);
            cluster.restore_power(&cluster.nodes());
        }
        finish(&mut cluster, &[writer]);
        let lost = cluster.disks()[0].bytes_lost;
        assert!(lost > 0, "seed {seed}: a power failure that drops nothing shows nothing");
    }
}

/// The others' snapshot replaces entries whose clients the old leader still owes an answer.
#[test]
fn a_leader_cut_off_with_writes_under_way_takes_a_snapshot_over_them() {
    let settings =
        NodeSettings { log_kept_entries: 0, log_kept_bytes: 0, snapshot_after_entries: 100, ..NodeSettings::default() };
    for seed in 1..4 {
        let mut cluster = SimCluster::builder(seed).nodes(3).shards(1).settings(settings.clone()).build();
        make(&mut cluster, 4);
        let writers: Vec<Writer> = (0..4).map(|id| Writer::default().start(&mut cluster, id)).collect();
        let reach = |clocks: i64| move |writers: &[Writer]| writers.iter().all(|writer| writer.acked.get() >= clocks);
        cluster.step_until("first clocks", SOON, |_| reach(5)(&writers)).unwrap();
        let old = cluster.leader(GROUP).unwrap();
        let others: Vec<String> = cluster.nodes().into_iter().filter(|node| *node != old).collect();
        others.iter().for_each(|other| cluster.cut(&old, other));
        cluster.simulation().run_for(Duration::from_millis(150)).unwrap();
        let stranded = replica(&cluster, &old).unwrap();
        assert!(stranded.leads && stranded.last > stranded.applied, "writes are under way: {stranded:?}");
        let gone = |cluster: &mut SimCluster, hosts: &[String], index: Option<LogIndex>| {
            hosts.iter().all(|host| replica(cluster, host).is_some_and(|replica| replica.purged > index))
        };
        let purged = |cluster: &mut SimCluster| gone(cluster, &others, stranded.last);
        cluster.step_until("the others to purge what the old leader lacks", 3 * SOON, purged).unwrap();
        others.iter().for_each(|other| cluster.mend(&old, other));
        let (clocks, hosts) = (writers.iter().map(|w| w.acked.get()).max().unwrap() + 50, [old.clone()]);
        let goes_on = |cluster: &mut SimCluster| gone(cluster, &hosts, stranded.last) && reach(clocks)(&writers);
        cluster.step_until("the old leader to take the snapshot", 3 * SOON, goes_on).unwrap();
        finish(&mut cluster, &writers);
        for view in cluster.views() {
            assert!(view.replicas.iter().all(|replica| replica.failure.is_none()), "{view:?}");
        }
        assert!(cluster.views().len() == 3 && !cluster.has_ended(&old));
    }
}
