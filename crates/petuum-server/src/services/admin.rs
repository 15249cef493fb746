//! What operators ask for.

use super::admin_replicas::{checksums, replicas};
use super::admin_workers;
use super::session::{job_info, remove};
use super::wait::{leading_now, log, until};
use crate::formation;
use crate::shared::Inner;
use petuum_control::{ControlAnswer, ControlCommand, EvictReason, JobSettings};
use petuum_net::status::{check_format, to_status};
use petuum_net::wire::admin_server::Admin;
use petuum_net::{convert, wire};
use petuum_types::{Error, ErrorKind, JobId, ShardId, Staleness, WorkerId};
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(super) struct Service(pub(super) Arc<Inner>);

fn unexpected(answer: &ControlAnswer) -> Status {
    to_status(&Error::new(ErrorKind::Internal, format!("the control group answered {answer:?}")))
}

#[tonic::async_trait]
impl Admin for Service {
    async fn describe_node(
        &self,
        request: Request<wire::DescribeNodeRequest>,
    ) -> Result<Response<wire::NodeDescription>, Status> {
        check_format(request.into_inner().format).map_err(|s| *s)?;
        let identity = self.0.identity();
        Ok(Response::new(wire::NodeDescription {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format: petuum_net::FORMAT,
            node: identity.as_ref().map_or(0, |i| i.node.0),
            cluster: identity.map(|i| i.cluster.to_string()).unwrap_or_default(),
            boot: self.0.boot.number,
            free_bytes: self.0.watermark.free_bytes(),
            commits_refused: self.0.watermark.refusal().unwrap_or_default(),
            address: self.0.address().to_owned(),
        }))
    }

    async fn init(&self, request: Request<wire::InitRequest>) -> Result<Response<wire::InitResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let (cluster, existed) = formation::init(&self.0, &request).await.map_err(|e| to_status(&e))?;
        Ok(Response::new(wire::InitResponse { cluster: cluster.to_string(), existed }))
    }

    async fn get_replicas(
        &self,
        request: Request<wire::GetReplicasRequest>,
    ) -> Result<Response<wire::Replicas>, Status> {
        check_format(request.into_inner().format).map_err(|s| *s)?;
        let running = self.0.running().map_err(|e| to_status(&e))?;
        Ok(Response::new(replicas(running)))
    }

    async fn get_checksums(
        &self,
        request: Request<wire::GetChecksumsRequest>,
    ) -> Result<Response<wire::Checksums>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let running = self.0.running().map_err(|e| to_status(&e))?;
        checksums(running, ShardId(request.shard)).map(Response::new).map_err(|e| to_status(&e))
    }

    async fn create_job(&self, request: Request<wire::CreateJobRequest>) -> Result<Response<wire::JobInfo>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let id = convert::request_id(&request.request_id).map_err(|e| to_status(&e))?;
        let mut settings = JobSettings::default();
        if request.lease_ms != 0 {
            settings.lease_ms = u64::from(request.lease_ms);
        }
        let (name, workers) = (request.name, request.workers);
        let command = ControlCommand::CreateJob { request: id, name, workers, settings };
        let job = match log(&self.0, control, &command).await.map_err(|e| to_status(&e))? {
            ControlAnswer::Job { job, .. } => job,
            other => return Err(unexpected(&other)),
        };
        let opened = until(
            control,
            request.wait_ms,
            |state| state.job(job).filter(|j| j.is_open()).map(|j| Ok(job_info(job, j))),
            |_| "every shard to open the job".to_owned(),
        );
        opened.await.map(Response::new).map_err(|e| to_status(&e))
    }

    async fn list_jobs(&self, request: Request<wire::ListJobsRequest>) -> Result<Response<wire::Jobs>, Status> {
        check_format(request.into_inner().format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let jobs = control.cell.with(|state| state.jobs().map(|(id, job)| job_info(id, job)).collect());
        Ok(Response::new(wire::Jobs { jobs }))
    }

    async fn create_table(
        &self,
        request: Request<wire::CreateTableRequest>,
    ) -> Result<Response<wire::TableInfo>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let command = create_table(&request).map_err(|e| to_status(&e))?;
        let table = match log(&self.0, control, &command).await.map_err(|e| to_status(&e))? {
            ControlAnswer::Table { table, .. } => table,
            other => return Err(unexpected(&other)),
        };
        let ready = until(
            control,
            request.wait_ms,
            |state| match state.table(table) {
                None => Some(Err(Error::new(ErrorKind::NotFound, format!("{table} was dropped meanwhile")))),
                Some(found) => found.is_ready().then(|| Ok(convert::table_to_wire(found.schema(), true))),
            },
            |_| "every shard to create the table".to_owned(),
        );
        ready.await.map(Response::new).map_err(|e| to_status(&e))
    }

    async fn drop_table(
        &self,
        request: Request<wire::DropTableRequest>,
    ) -> Result<Response<wire::DropTableResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let id = convert::request_id(&request.request_id).map_err(|e| to_status(&e))?;
        let command = ControlCommand::DropTable { request: id, job: JobId(request.job), name: request.name };
        let table = match log(&self.0, control, &command).await.map_err(|e| to_status(&e))? {
            ControlAnswer::Dropping { table } => table,
            other => return Err(unexpected(&other)),
        };
        let gone = until(
            control,
            request.wait_ms,
            |state| state.table(table).is_none().then_some(Ok(wire::DropTableResponse { table: table.0 })),
            |_| "every shard to drop the table".to_owned(),
        );
        gone.await.map(Response::new).map_err(|e| to_status(&e))
    }

    async fn list_tables(&self, request: Request<wire::ListTablesRequest>) -> Result<Response<wire::Tables>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let tables = control.cell.with(|state| {
            let tables = state.tables(JobId(request.job));
            tables.map(|table| convert::table_to_wire(table.schema(), table.is_ready())).collect()
        });
        Ok(Response::new(wire::Tables { tables }))
    }

    async fn list_workers(
        &self,
        request: Request<wire::ListWorkersRequest>,
    ) -> Result<Response<wire::Workers>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let job = JobId(request.job);
        let workers = admin_workers::workers(&self.0, control, job);
        let missing = || to_status(&Error::new(ErrorKind::NotFound, format!("{job} is unknown")));
        Ok(Response::new(wire::Workers { workers: workers.ok_or_else(missing)? }))
    }

    async fn evict_worker(
        &self,
        request: Request<wire::EvictWorkerRequest>,
    ) -> Result<Response<wire::EvictWorkerResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let id = convert::request_id(&request.request_id).map_err(|e| to_status(&e))?;
        let (job, worker) = (JobId(request.job), WorkerId(request.worker));
        let reason = EvictReason::Operator;
        let command = ControlCommand::Evict { request: id, job, worker, incarnation: None, reason };
        let clock = remove(&self.0, &command, job, worker, request.wait_ms).await.map_err(|s| *s)?;
        Ok(Response::new(wire::EvictWorkerResponse { clock: clock.0 }))
    }
}

fn create_table(request: &wire::CreateTableRequest) -> Result<ControlCommand, Error> {
    let value_type = convert::value_type_from_wire(request.value_type)?;
    Ok(ControlCommand::CreateTable {
        request: convert::request_id(&request.request_id)?,
        job: JobId(request.job),
        name: request.name.clone(),
        width: request.width,
        value_type,
        initial: convert::initial_from_wire(value_type, request.initial.as_ref())?,
        seed: request.seed,
        non_finite: convert::non_finite_from_wire(request.non_finite)?,
        staleness: Staleness(request.staleness),
    })
}
