//! How a process becomes a worker (P15, P17).

use crate::cluster::Cluster;
use petuum_chaos::{Failpoint, reached};
use petuum_net::convert;
use petuum_net::wire;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::map::ShardMap;
use petuum_types::{Clock, Error, Generation, Incarnation, JobId, Staleness, WorkerId};
use std::sync::Arc;
use std::time::Duration;

/// Where a session takes place.
pub(crate) struct Place {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) map: Arc<ShardMap>,
    pub(crate) job: JobId,
    /// The job's name.
    pub(crate) name: String,
    /// How many workers it has.
    pub(crate) workers: u32,
    /// The greatest staleness of its tables.
    pub(crate) staleness: Staleness,
}

/// What a registration answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) worker: WorkerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) generation: Generation,
    pub(crate) start: Clock,
    pub(crate) lease: Duration,
    pub(crate) removed_at: Option<Clock>,
}

pub(super) async fn register(place: &Place, worker: WorkerId, rejoin: bool) -> Result<Registration, Error> {
    let cluster = &place.cluster;
    let request = wire::RegisterRequest {
        format: petuum_net::FORMAT,
        request_id: convert::request_id_bytes(cluster.begin_registration(place.job, worker)?),
        job: place.job.0,
        worker: worker.0,
        rejoin,
        wait_ms: 0,
    };
    reached(Failpoint::RegistrationBeforeSend);
    let answer = cluster
        .control(|channel, wait_ms| {
            let request = wire::RegisterRequest { wait_ms, ..request.clone() };
            async move { SessionClient::new(channel).register(request).await }
        })
        .await;
    cluster.end_registration(place.job, worker, !answer.as_ref().is_err_and(Error::is_retryable));
    let answer = answer.map_err(|e| e.context(format_args!("registering {worker} of job {:?}", place.name)))?;
    reached(Failpoint::RegistrationAfterAnswer);
    Ok(Registration {
        worker,
        incarnation: Incarnation(answer.incarnation),
        generation: Generation(answer.generation),
        start: Clock(answer.start_clock),
        lease: Duration::from_millis(u64::from(answer.lease_ms)),
        removed_at: answer.removed_at.map(Clock),
    })
}
