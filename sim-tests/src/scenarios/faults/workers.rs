//! Workers that die inside a clock, crawl, are replaced or removed.

use std::time::Duration;

use futures::future::join_all;
use petuum_client::{Client, Options, ReadFrom};
use petuum_sim::cluster::client_options;
use petuum_sim::{Error, HostResult};
use petuum_types::{Clock, ErrorKind, RowId, WorkerId};

use super::{Faults, Heal, Kind};
use crate::scenarios::shared::{JOB, Point, TABLE};
use crate::scenarios::stage::{Stage, rival_host, worker_host};

/// Readers of a crowd.
const CROWD: usize = 300;

async fn remove(endpoints: &[String], options: Options, worker: u32) -> Result<(), petuum_types::Error> {
    let client = Client::connect(endpoints, options).await?;
    client.job(JOB).await?.evict(WorkerId(worker)).await.map(drop)
}

/// Reads rows as they are, and waits for a clock that never comes, many times at once.
async fn crowd(endpoints: &[String], options: Options, rows: &[RowId]) -> Result<(), petuum_types::Error> {
    let client = Client::connect(endpoints, options).await?;
    let job = client.job(JOB).await?;
    let table = job.table(TABLE).await?;
    let never = ReadFrom::Clock(Clock(u64::from(u32::MAX)));
    let reads = (0..CROWD).map(|reader| {
        let from = if reader % 4 == 0 { ReadFrom::Latest } else { never };
        job.read(&table, rows, from)
    });
    for read in join_all(reads).await {
        match read {
            Err(error) if !error.is_retryable() && error.kind() != ErrorKind::DeadlineExceeded => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

const fn is_over(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Replaced | ErrorKind::Evicted | ErrorKind::DeadlineExceeded)
}

impl Faults {
    fn any_worker(&mut self, stage: &Stage) -> u32 {
        self.random.u32(0..stage.workers)
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

    /// Sends a crowd of readers. Whether they are answered does not matter; what they ask for must be bounded (G10).
    pub(super) fn overload(&mut self, stage: &mut Stage) {
        self.operators += 1;
        let (name, endpoints) = (format!("crowd-{}", self.operators), stage.cluster.endpoints());
        let rows = stage.handle.borrow().rows.clone();
        let options = Options { deadline: Duration::from_secs(2), ..client_options(self.random.u64(..)) };
        stage.cluster.client(&name, async move {
            match crowd(&endpoints, options, &rows).await {
                Err(error) if error.is_retryable() || is_over(error.kind()) => HostResult::Ok(()),
                done => Ok(done?),
            }
        });
        self.count(Kind::Overload);
    }

    /// Kills a worker for about its lease.
    pub(super) fn outlive_lease(&mut self, stage: &mut Stage) {
        let host = worker_host(self.any_worker(stage));
        if !stage.cluster.kill(&host) {
            self.again(Kind::OutliveLease);
            return;
        }
        self.count(Kind::OutliveLease);
        let lease = u64::try_from(stage.lease.as_millis()).unwrap_or(u64::MAX);
        // Some come back just as they are being removed: the last heartbeat may be a good part of the lease old.
        let dead = lease * self.random.u64(50..160) / 100;
        self.pending.push((stage.elapsed() + Duration::from_millis(dead), Heal::Start(host)));
    }
}
