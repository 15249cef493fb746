//! A worker's place in its job.

use super::wait::{leading, leading_now, log, until};
use crate::shared::Inner;
use petuum_chaos::{Failpoint, reached};
use petuum_control::{ControlAnswer, ControlCommand, EvictReason, RegistrationStatus, Standing};
use petuum_net::status::{check_format, to_status};
use petuum_net::wire::session_server::Session;
use petuum_net::{convert, wire};
use petuum_types::{Error, ErrorKind, Incarnation, JobId, WorkerId};
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Response, Status};

pub(super) struct Service(pub(super) Arc<Inner>);

#[tonic::async_trait]
impl Session for Service {
    async fn get_map(&self, request: Request<wire::GetMapRequest>) -> Result<Response<wire::ClusterMap>, Status> {
        check_format(request.into_inner().format).map_err(|s| *s)?;
        let running = self.0.running().map_err(|e| to_status(&e))?;
        let control_leader = running.control.as_ref().and_then(|c| c.group.status().leader);
        let leader_of = |shard| running.shards.get(&shard).and_then(|r| r.group.status().leader);
        let (cluster, map) = (running.identity.cluster, &running.identity.map);
        Ok(Response::new(convert::map_to_wire(cluster, map, control_leader, leader_of)))
    }

    async fn get_job(&self, request: Request<wire::GetJobRequest>) -> Result<Response<wire::JobInfo>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let found = control.cell.with(|state| state.job_named(&request.name).map(|(id, job)| job_info(id, job)));
        let missing = || to_status(&Error::new(ErrorKind::NotFound, format!("no job is named {:?}", request.name)));
        found.map(Response::new).ok_or_else(missing)
    }

    async fn get_table(&self, request: Request<wire::GetTableRequest>) -> Result<Response<wire::TableInfo>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let found = control.cell.with(|state| {
            let table = state.table_named(JobId(request.job), &request.name)?;
            Some(convert::table_to_wire(table.schema(), table.is_ready()))
        });
        let missing = || {
            let message = format!("job {} has no table named {:?}", request.job, request.name);
            to_status(&Error::new(ErrorKind::NotFound, message))
        };
        found.map(Response::new).ok_or_else(missing)
    }

    async fn register(
        &self,
        request: Request<wire::RegisterRequest>,
    ) -> Result<Response<wire::RegisterResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading_now(&self.0).await.map_err(|s| *s)?;
        let id = convert::request_id(&request.request_id).map_err(|e| to_status(&e))?;
        let (job, worker) = (JobId(request.job), WorkerId(request.worker));
        let command = ControlCommand::Register { request: id, job, worker, rejoin: request.rejoin };
        log(&self.0, control, &command).await.map_err(|e| to_status(&e))?;
        let answered = until(
            control,
            request.wait_ms,
            |state| match state.registration(job, worker, id) {
                RegistrationStatus::Pending { .. } => None,
                RegistrationStatus::Ready { incarnation, generation, start } => Some(Ok(wire::RegisterResponse {
                    incarnation: incarnation.0,
                    generation: generation.0,
                    start_clock: start.0,
                    lease_ms: lease_ms(state, job),
                    removed_at: state.worker(job, worker).and_then(|w| w.removed_at()).map(|at| at.0),
                })),
                RegistrationStatus::Replaced { by } => Some(Err(replaced(worker, by))),
                RegistrationStatus::Evicted { at } => Some(Err(evicted(worker, at))),
                RegistrationStatus::Unknown => {
                    let message = format!("the registration of {worker} in {job} is no longer known; register anew");
                    Some(Err(Error::new(ErrorKind::FailedPrecondition, message)))
                }
            },
            |state| match state.registration(job, worker, id) {
                RegistrationStatus::Pending { waiting_for } => waiting_for,
                other => format!("{other:?}"),
            },
        );
        let answered = answered.await;
        reached(Failpoint::RegistrationBeforeAnswer);
        answered.map(Response::new).map_err(|e| to_status(&e))
    }

    async fn heartbeat(
        &self,
        request: Request<wire::HeartbeatRequest>,
    ) -> Result<Response<wire::HeartbeatResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let control = leading(&self.0).map_err(|s| *s)?;
        let (job, worker, incarnation) =
            (JobId(request.job), WorkerId(request.worker), Incarnation(request.incarnation));
        confirm_leadership(&self.0, control).await.map_err(|e| to_status(&e))?;
        let (standing, lease) = control.cell.with(|s| (s.standing(job, worker, incarnation), lease_ms(s, job)));
        let error = match standing {
            Standing::Live => {
                let mut leases = self.0.leases.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if leases.heartbeat(job, worker, incarnation, Duration::from_millis(lease.into())) {
                    return Ok(Response::new(wire::HeartbeatResponse { lease_ms: lease }));
                }
                removing(worker, job)
            }
            Standing::Removing => removing(worker, job),
            Standing::Replaced { by } => replaced(worker, by),
            Standing::Evicted { at } => evicted(worker, at),
            Standing::Unknown => {
                // A leader that has just been elected may not have applied the registration yet.
                let message = format!("{incarnation} of {worker} in {job} is unknown here");
                Error::new(ErrorKind::Unavailable, message)
            }
        };
        Err(to_status(&error))
    }

    async fn leave(&self, request: Request<wire::LeaveRequest>) -> Result<Response<wire::LeaveResponse>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let id = convert::request_id(&request.request_id).map_err(|e| to_status(&e))?;
        let (job, worker) = (JobId(request.job), WorkerId(request.worker));
        let incarnation = Some(Incarnation(request.incarnation));
        let command = ControlCommand::Evict { request: id, job, worker, incarnation, reason: EvictReason::Left };
        let clock = remove(&self.0, &command, job, worker, request.wait_ms).await.map_err(|s| *s)?;
        Ok(Response::new(wire::LeaveResponse { clock: clock.0 }))
    }
}

/// Nobody is told that a worker lives which will be removed; at which clock is not known yet.
fn removing(worker: WorkerId, job: JobId) -> Error {
    let why = "by an operator, or because its lease has ended";
    Error::new(ErrorKind::Unavailable, format!("{worker} in {job} is being removed, {why}"))
}

/// Logs a removal and waits until every shard has settled it.
pub(super) async fn remove(
    inner: &Arc<Inner>,
    command: &ControlCommand,
    job: JobId,
    worker: WorkerId,
    wait_ms: u32,
) -> Result<petuum_types::Clock, Box<Status>> {
    let control = leading_now(inner).await?;
    let answer = log(inner, control, command).await.map_err(|e| Box::new(to_status(&e)))?;
    let ControlAnswer::Removing { incarnation } = answer else {
        let message = format!("{worker} in {job}: a removal was answered {answer:?}");
        return Err(Box::new(to_status(&Error::new(ErrorKind::Internal, message))));
    };
    let settled = until(
        control,
        wait_ms,
        |state| match state.worker(job, worker).map(|w| w.phase().incarnation()) {
            Some(now) if now > incarnation => Some(Err(replaced(worker, now))),
            _ => crate::driver::removed_at(state, job, worker).map(Ok),
        },
        |_| format!("every shard to settle the removal of {worker}"),
    );
    settled.await.map_err(|e| Box::new(to_status(&e)))
}

/// A leader that was deposed without noticing would keep workers from the one that counts their leases (P16): it answers
/// only if a majority has confirmed it within the least election timeout.
async fn confirm_leadership(inner: &Inner, control: &crate::groups::ControlReplica) -> Result<(), Error> {
    let lock = || inner.leases.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if lock().is_confirmed(Duration::from_millis(inner.settings.election_min_ms)) {
        return Ok(());
    }
    let asked = tokio::time::Instant::now();
    control.group.read_index().await.map_err(|e| Error::new(ErrorKind::Unavailable, e.to_string()))?;
    lock().confirm(asked);
    Ok(())
}

fn replaced(worker: WorkerId, by: Incarnation) -> Error {
    Error::new(ErrorKind::Replaced, format!("{worker} was replaced: {by} has registered as this worker"))
}

fn evicted(worker: WorkerId, at: petuum_types::Clock) -> Error {
    let message =
        format!("{worker} was removed from its job at {at}; its updates from there on are lost: re-join to go on");
    Error::new(ErrorKind::Evicted, message)
}

fn lease_ms(state: &petuum_control::Control, job: JobId) -> u32 {
    state.job(job).map_or(0, |j| u32::try_from(j.settings().lease_ms).unwrap_or(u32::MAX))
}

/// A job on the wire.
pub(super) fn job_info(id: JobId, job: &petuum_control::Job) -> wire::JobInfo {
    wire::JobInfo {
        job: id.0,
        name: job.name().to_owned(),
        generation: job.generation().0,
        workers: job.size(),
        lease_ms: u32::try_from(job.settings().lease_ms).unwrap_or(u32::MAX),
        ready: job.is_open(),
    }
}
