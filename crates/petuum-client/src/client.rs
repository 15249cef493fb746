//! The entrance: a cluster, its jobs, their tables and workers.

use crate::cluster::Cluster;
use crate::options::{Options, WorkerOptions};
use crate::session::{Place, Session};
use crate::worker::Table;
use petuum_net::convert;
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::map::ShardMap;
use petuum_types::{
    Clock, ClusterId, Error, Generation, Initial, JobId, NonFinite, Staleness, TableId, TableSchema, ValueType,
    WorkerId,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A connection to a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    cluster: Arc<Cluster>,
    id: ClusterId,
    map: Arc<ShardMap>,
}

/// A job. Cheap to clone.
#[derive(Clone)]
pub struct Job {
    client: Client,
    info: JobInfo,
}

/// What a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: Generation,
    /// How many workers it has.
    pub workers: u32,
    /// How long a worker may be silent.
    pub lease: Duration,
}

/// A table to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// Unique among the job's tables.
    pub name: String,
    /// Columns of every row, 1 to 1,000,000.
    pub width: u32,
    /// Type of every value.
    pub value_type: ValueType,
    /// Staleness of reads; 0 is BSP.
    pub staleness: Staleness,
    /// What an untouched row holds.
    pub initial: Initial,
    /// Seed of `initial`.
    pub seed: u64,
    /// What to do with NaN and infinities.
    pub non_finite: NonFinite,
}

impl TableDefinition {
    /// An f32 table of zeros that rejects NaN and infinities.
    pub fn f32(name: impl Into<String>, width: u32, staleness: u32) -> Self {
        Self {
            name: name.into(),
            width,
            value_type: ValueType::F32,
            staleness: Staleness(staleness),
            initial: Initial::Zero,
            seed: 0,
            non_finite: NonFinite::Reject,
        }
    }

    /// An i64 table of zeros.
    pub fn i64(name: impl Into<String>, width: u32, staleness: u32) -> Self {
        Self { value_type: ValueType::I64, ..Self::f32(name, width, staleness) }
    }
}

impl Client {
    /// Connects to a cluster through any of its nodes (`host:port`); finds the others by itself.
    ///
    /// # Errors
    /// [`petuum_types::ErrorKind::NotInitialized`] if the cluster has not been formed, `DeadlineExceeded` if no node answers,
    /// `Incompatible` for another version, `InvalidArgument` for options out of their bounds.
    pub async fn connect(endpoints: &[String], options: Options) -> Result<Self, Error> {
        let first = Cluster::new(endpoints.to_vec(), options.clone())?;
        let known = first.map().await?;
        // From here on every node is an endpoint: those named may all be gone when they are needed.
        let mut all: Vec<String> = known.map.nodes.values().cloned().collect();
        all.extend(endpoints.iter().filter(|e| !known.map.nodes.values().any(|n| n == *e)).cloned());
        let cluster = Arc::new(Cluster::new(all, options)?);
        Ok(Self { cluster, id: known.cluster, map: Arc::new(known.map) })
    }

    /// The cluster's id.
    #[must_use]
    pub fn cluster_id(&self) -> ClusterId {
        self.id
    }

    /// The shard map.
    #[must_use]
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Creates a job of `workers` workers, or finds the one of this name with the same definition.
    ///
    /// # Errors
    /// `AlreadyExists` for another definition, `InvalidArgument` for impossible numbers, `DeadlineExceeded`.
    pub async fn create_job(&self, name: &str, workers: u32, lease: Option<Duration>) -> Result<Job, Error> {
        let request = wire::CreateJobRequest {
            format: petuum_net::FORMAT,
            request_id: convert::request_id_bytes(self.cluster.new_request()),
            name: name.to_owned(),
            workers,
            lease_ms: lease.map_or(0, |l| u32::try_from(l.as_millis()).unwrap_or(u32::MAX)),
            wait_ms: 0,
        };
        let info = self
            .cluster
            .control(|channel, wait_ms| {
                let request = wire::CreateJobRequest { wait_ms, ..request.clone() };
                async move { AdminClient::new(channel).create_job(request).await }
            })
            .await?;
        Ok(Job { client: self.clone(), info: job_info(info) })
    }

    /// A job by name.
    ///
    /// # Errors
    /// `NotFound`, `DeadlineExceeded`.
    pub async fn job(&self, name: &str) -> Result<Job, Error> {
        let request = wire::GetJobRequest { format: petuum_net::FORMAT, name: name.to_owned() };
        let begin = Instant::now();
        loop {
            let found = self.cluster.control(|channel, _| {
                let request = request.clone();
                async move { SessionClient::new(channel).get_job(request).await }
            });
            let info = found.await?;
            if info.ready {
                return Ok(Job { client: self.clone(), info: job_info(info) });
            }
            self.cluster.wait_until_ready(begin, &format!("job {name:?}")).await?;
        }
    }

    /// Every job.
    ///
    /// # Errors
    /// `DeadlineExceeded`.
    pub async fn jobs(&self) -> Result<Vec<JobInfo>, Error> {
        let answer = self
            .cluster
            .control(|channel, _| async move {
                AdminClient::new(channel).list_jobs(wire::ListJobsRequest { format: petuum_net::FORMAT }).await
            })
            .await?;
        Ok(answer.jobs.into_iter().map(job_info).collect())
    }
}

fn job_info(info: wire::JobInfo) -> JobInfo {
    JobInfo {
        id: JobId(info.job),
        name: info.name,
        generation: Generation(info.generation),
        workers: info.workers,
        lease: Duration::from_millis(u64::from(info.lease_ms)),
    }
}

impl Job {
    /// What it is.
    #[must_use]
    pub const fn info(&self) -> &JobInfo {
        &self.info
    }

    /// The cluster it runs on.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a table, or finds the one of this name with the same definition. Returns when every shard has it.
    ///
    /// # Errors
    /// `AlreadyExists` for another definition, `InvalidArgument` for an impossible one, `DeadlineExceeded`.
    pub async fn create_table(&self, table: &TableDefinition) -> Result<Table, Error> {
        let request = wire::CreateTableRequest {
            format: petuum_net::FORMAT,
            request_id: convert::request_id_bytes(self.client.cluster.new_request()),
            job: self.info.id.0,
            name: table.name.clone(),
            width: table.width,
            value_type: convert::value_type_to_wire(table.value_type) as i32,
            initial: convert::initial_to_wire(table.value_type, table.initial),
            seed: table.seed,
            non_finite: convert::non_finite_to_wire(table.non_finite) as i32,
            staleness: table.staleness.0,
            wait_ms: 0,
        };
        let info = self
            .client
            .cluster
            .control(|channel, wait_ms| {
                let request = wire::CreateTableRequest { wait_ms, ..request.clone() };
                async move { AdminClient::new(channel).create_table(request).await }
            })
            .await?;
        Ok(Table::new(convert::table_from_wire(&info)?))
    }

    /// A table by name.
    ///
    /// # Errors
    /// `NotFound`, `DeadlineExceeded`.
    pub async fn table(&self, name: &str) -> Result<Table, Error> {
        let request = wire::GetTableRequest { format: petuum_net::FORMAT, job: self.info.id.0, name: name.to_owned() };
        let cluster = &self.client.cluster;
        let begin = Instant::now();
        loop {
            let found = cluster.control(|channel, _| {
                let request = request.clone();
                async move { SessionClient::new(channel).get_table(request).await }
            });
            let info = found.await?;
            if info.ready {
                return Ok(Table::new(convert::table_from_wire(&info)?));
            }
            cluster.wait_until_ready(begin, &format!("table {name:?}")).await?;
        }
    }

    /// Every table's definition.
    ///
    /// # Errors
    /// `DeadlineExceeded`.
    pub async fn tables(&self) -> Result<Vec<TableSchema>, Error> {
        let job = self.info.id.0;
        let answer = self
            .client
            .cluster
            .control(|channel, _| async move {
                AdminClient::new(channel).list_tables(wire::ListTablesRequest { format: petuum_net::FORMAT, job }).await
            })
            .await?;
        answer.tables.iter().map(convert::table_from_wire).collect()
    }

    /// Drops a table. Returns when every shard has.
    ///
    /// # Errors
    /// `NotFound`, `DeadlineExceeded`.
    pub async fn drop_table(&self, name: &str) -> Result<TableId, Error> {
        let request = wire::DropTableRequest {
            format: petuum_net::FORMAT,
            request_id: convert::request_id_bytes(self.client.cluster.new_request()),
            job: self.info.id.0,
            name: name.to_owned(),
            wait_ms: 0,
        };
        let answer = self
            .client
            .cluster
            .control(|channel, wait_ms| {
                let request = wire::DropTableRequest { wait_ms, ..request.clone() };
                async move { AdminClient::new(channel).drop_table(request).await }
            })
            .await?;
        Ok(TableId(answer.table))
    }

    /// Every worker of the job.
    ///
    /// # Errors
    /// `DeadlineExceeded`.
    pub async fn workers(&self) -> Result<Vec<wire::WorkerInfo>, Error> {
        let job = self.info.id.0;
        let answer = self
            .client
            .cluster
            .control(|channel, _| async move {
                AdminClient::new(channel)
                    .list_workers(wire::ListWorkersRequest { format: petuum_net::FORMAT, job })
                    .await
            })
            .await?;
        Ok(answer.workers)
    }

    /// Removes a worker at its clock and returns that. Returns when every shard has removed it.
    ///
    /// # Errors
    /// `NotFound`, `DeadlineExceeded`.
    pub async fn evict(&self, worker: WorkerId) -> Result<Clock, Error> {
        let request = wire::EvictWorkerRequest {
            format: petuum_net::FORMAT,
            request_id: convert::request_id_bytes(self.client.cluster.new_request()),
            job: self.info.id.0,
            worker: worker.0,
            wait_ms: 0,
        };
        let answer = self
            .client
            .cluster
            .control(|channel, wait_ms| {
                let request = wire::EvictWorkerRequest { wait_ms, ..request.clone() };
                async move { AdminClient::new(channel).evict_worker(request).await }
            })
            .await?;
        Ok(Clock(answer.clock))
    }

    /// Registers a worker and waits until it may start: until all of the job's workers have registered, or, after a
    /// restart, until its committed clock is known everywhere.
    ///
    /// # Errors
    /// `Replaced` if another process registers as this worker meanwhile, `Evicted` if it was removed and
    /// [`WorkerOptions::rejoin`] is not set, `DeadlineExceeded` naming whom it waited for.
    pub async fn worker(&self, worker: WorkerId, options: WorkerOptions) -> Result<Session, Error> {
        let place = Place {
            cluster: self.client.cluster.clone(),
            map: self.client.map.clone(),
            job: self.info.id,
            name: self.info.name.clone(),
            workers: self.info.workers,
            staleness: self.tables().await?.iter().map(|t| t.staleness).max().unwrap_or(Staleness(0)),
        };
        Session::open(place, worker, options).await
    }
}
