//! Workers that die inside a clock, crawl, are cut off, replaced or removed.

use std::time::Duration;

use petuum_client::{Client, Options};
use petuum_sim::cluster::client_options;
use petuum_sim::{Error, HostResult};
use petuum_types::{ErrorKind, GroupId, ShardId, WorkerId};

use super::{Faults, Heal, Kind};
use crate::scenarios::stage::{Stage, rival_host, worker_host};
use crate::scenarios::worker::{JOB, Point};

/// A worker that cannot reach some nodes.
pub(super) struct Cut {
    worker: u32,
    nodes: Vec<String>,
    /// Clocks that were acknowledged when it began.
    acked: u64,
}

async fn remove(endpoints: &[String], options: Options, worker: u32) -> Result<(), petuum_types::Error> {
    let client = Client::connect(endpoints, options).await?;
    client.job(JOB).await?.evict(WorkerId(worker)).await.map(drop)
}

const fn is_over(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Replaced | ErrorKind::Evicted | ErrorKind::DeadlineExceeded)
}

impl Faults {
    fn any_worker(&mut self, stage: &Stage) -> u32 {
        self.random.u32(0..stage.workers)
    }

    /// Cuts a worker off from one shard: mostly from its leader, which is all that commits need, else from its replicas.
    pub(super) fn cut_worker(&mut self, stage: &mut Stage) -> Result<(), Error> {
        let worker = self.any_worker(stage);
        let shard = ShardId(self.random.u32(0..stage.shards));
        let nodes = if self.random.u8(..4) == 0 {
            let hosts = stage.cluster.nodes();
            hosts.into_iter().filter(|host| stage.cluster.shards_on(host).contains(&shard)).collect()
        } else {
            let group = GroupId::of_shard(shard);
            vec![self.wait_for(stage, "a leader to be cut off from", |stage| stage.cluster.leader(group))?]
        };
        for node in &nodes {
            stage.cluster.cut(&worker_host(worker), node);
        }
        let cut = Cut { worker, nodes, acked: stage.acked(worker) };
        self.heal_in(1000..4000, stage, Heal::Cut(cut));
        Ok(())
    }

    pub(super) fn end_cut(&mut self, stage: &mut Stage, cut: &Cut) {
        let host = worker_host(cut.worker);
        cut.nodes.iter().for_each(|node| stage.cluster.mend(&host, node));
        // A clock needs all shards, so only what was under way got through; more, and the shard had moved its leader to
        // a node that the worker could reach.
        if stage.acked(cut.worker) <= cut.acked.saturating_add(stage.staleness).saturating_add(2) {
            self.count(Kind::CutWorker);
        } else {
            self.again(Kind::CutWorker);
        }
    }

    pub(super) fn restart_worker(&mut self, stage: &mut Stage, kind: Kind) -> Result<(), Error> {
        let point = if kind == Kind::RestartBeforeClock { Point::BeforeClock } else { Point::AfterClock };
        let worker = self.any_worker(stage);
        let host = worker_host(worker);
        if !stage.cluster.is_up(&host) || !stage.is_latest(worker, &host) {
            self.again(kind);
            return Ok(());
        }
        stage.handle.borrow_mut().stops.insert(worker, (point, false));
        let stopped = self.wait_for(stage, "a worker to be inside a clock", |stage| {
            let lost = !stage.cluster.is_up(&host) || !stage.is_latest(worker, &host);
            (lost || stage.handle.borrow().stops[&worker].1).then_some(!lost)
        })?;
        if stopped && point == Point::AfterClock {
            // Its tasks go on: parts arrive, then perhaps some of the ticks.
            let time = self.millis(0..60);
            self.pass(stage, time)?;
        }
        stage.handle.borrow_mut().stops.remove(&worker);
        if stopped && stage.cluster.kill(&host) {
            self.count(kind);
            self.heal_in(50..3000, stage, Heal::Start(host));
        } else {
            self.again(kind);
        }
        Ok(())
    }

    pub(super) fn slow_worker(&mut self, stage: &Stage) {
        let worker = self.any_worker(stage);
        let pause = self.millis(50..400);
        stage.handle.borrow_mut().slow.insert(worker, pause);
        self.count(Kind::Straggler);
        self.heal_in(1000..4000, stage, Heal::Hurry(worker));
    }

    /// Lets the worker's other process register. Whichever runs is replaced and goes on for a while.
    pub(super) fn start_rival(&mut self, stage: &mut Stage) {
        let worker = self.any_worker(stage);
        let (own, rival) = (worker_host(worker), rival_host(worker));
        let next = if stage.is_latest(worker, &own) { rival } else { own };
        stage.cluster.kill(&next);
        stage.cluster.start(&next);
        stage.handle.borrow_mut().takes_over.insert(next);
        self.count(Kind::Rival);
    }

    /// Has an operator remove a worker. It is told, and comes back.
    pub(super) fn evict(&mut self, stage: &mut Stage) {
        let worker = self.any_worker(stage);
        self.operators += 1;
        let (name, endpoints) = (format!("operator-{}", self.operators), stage.cluster.endpoints());
        let options = client_options(self.random.u64(..));
        stage.cluster.client(&name, async move {
            match remove(&endpoints, options, worker).await {
                // Given up, or the worker has registered anew meanwhile, or is out already.
                Err(error) if error.is_retryable() || is_over(error.kind()) => HostResult::Ok(()),
                done => Ok(done?),
            }
        });
        self.count(Kind::Evict);
    }

    /// Kills a worker for longer than its lease.
    pub(super) fn outlive_lease(&mut self, stage: &mut Stage) {
        let host = worker_host(self.any_worker(stage));
        if !stage.cluster.kill(&host) {
            self.again(Kind::OutliveLease);
            return;
        }
        self.count(Kind::OutliveLease);
        let lease = u64::try_from(stage.lease.as_millis()).unwrap_or(u64::MAX);
        let dead = lease + self.random.u64(500..2000);
        self.pending.push((stage.elapsed() + Duration::from_millis(dead), Heal::Start(host)));
    }
}
