//! What a client knows of a cluster: channels, the map, who leads; and calls that find the control group's leader.

use crate::options::Options;
use petuum_net::convert::{self, KnownMap};
use petuum_net::status;
use petuum_net::transport::{ChannelSettings, channel};
use petuum_net::wire;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::{Error, ErrorKind, JobId, NodeId, RequestId, WorkerId, limits};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tonic::Status;
use tonic::transport::Channel;

/// A cluster as seen from outside.
pub(crate) struct Cluster {
    pub(crate) options: Options,
    endpoints: Vec<String>,
    state: Mutex<State>,
}

struct State {
    channels: BTreeMap<String, Channel>,
    /// The address that answered as the control group's leader last.
    control: Option<String>,
    random: fastrand::Rng,
    /// Registrations without a final answer yet: a call that is made again must carry the same id, or the first one,
    /// arriving late, would replace the second (P17).
    registering: BTreeMap<(JobId, WorkerId), RequestId>,
}

impl Cluster {
    pub(crate) fn new(endpoints: Vec<String>, options: Options) -> Result<Self, Error> {
        if endpoints.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, "no endpoints; name at least one node as host:port"));
        }
        let random = fastrand::Rng::with_seed(options.seed);
        let state =
            Mutex::new(State { channels: BTreeMap::new(), control: None, random, registering: BTreeMap::new() });
        Ok(Self { options, endpoints, state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The one channel to an address; it reconnects by itself.
    pub(crate) fn channel(&self, address: &str) -> Result<Channel, Error> {
        let mut state = self.lock();
        if let Some(channel) = state.channels.get(address) {
            return Ok(channel.clone());
        }
        let opened = channel(&self.options.connector, address, ChannelSettings::default())
            .map_err(|e| Error::new(ErrorKind::InvalidArgument, e))?;
        state.channels.insert(address.to_owned(), opened.clone());
        Ok(opened)
    }

    pub(crate) fn new_request(&self) -> RequestId {
        RequestId(self.lock().random.u128(..))
    }

    /// The id of a worker's registration: the same until the registration has a final answer.
    pub(crate) fn registration(&self, job: JobId, worker: WorkerId) -> RequestId {
        let mut state = self.lock();
        let fresh = RequestId(state.random.u128(..));
        *state.registering.entry((job, worker)).or_insert(fresh)
    }

    /// The registration has a final answer.
    pub(crate) fn registered(&self, job: JobId, worker: WorkerId) {
        self.lock().registering.remove(&(job, worker));
    }

    /// A pause of the retry length, half of it random so that many clients do not come back together.
    pub(crate) fn pause(&self) -> Duration {
        let whole = self.options.retry_pause;
        whole / 2 + whole.mul_f64(self.lock().random.f64() / 2.0)
    }

    /// The map, from any node that answers.
    pub(crate) async fn map(&self) -> Result<KnownMap, Error> {
        let (answer, _) = self
            .call("any node", self.endpoints.clone(), |channel, _| async move {
                let mut client = SessionClient::new(channel).max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
                client.get_map(wire::GetMapRequest { format: petuum_net::FORMAT }).await
            })
            .await?;
        let known = convert::map_from_wire(&answer)?;
        let mut state = self.lock();
        if let Some(address) = known.control_leader.and_then(|node| known.map.nodes.get(&node)) {
            state.control = Some(address.clone());
        }
        Ok(known)
    }

    /// Calls the control group's leader, wherever it is by now, until it answers for good or the deadline passes. The
    /// call must carry a request id if it changes anything. It is given the milliseconds that are left.
    pub(crate) async fn control<T, F>(&self, call: impl Fn(Channel, u32) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let known = self.lock().control.clone();
        let others = self.endpoints.iter().filter(|e| Some(*e) != known.as_ref()).cloned();
        let candidates: Vec<String> = known.iter().cloned().chain(others).collect();
        let (answer, address) = self.call("the control group's leader", candidates, call).await?;
        self.lock().control = Some(address);
        Ok(answer)
    }

    async fn call<T, F>(
        &self,
        whom: &str,
        candidates: Vec<String>,
        call: impl Fn(Channel, u32) -> F,
    ) -> Result<(T, String), Error>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let begin = Instant::now();
        let end = begin + self.options.deadline;
        let mut hint: Option<String> = None;
        let mut unknown = false;
        for turn in 0.. {
            let address = hint.take().unwrap_or_else(|| candidates[turn % candidates.len()].clone());
            let left = end.saturating_duration_since(Instant::now());
            // Held for at most ten seconds: a node that died silently must not use up the whole deadline.
            let held = left.min(Duration::from_secs(10));
            let held_ms = u32::try_from(held.as_millis()).unwrap_or(u32::MAX).max(1);
            let error = match timeout(held + Duration::from_secs(1), call(self.channel(&address)?, held_ms)).await {
                Ok(Ok(answer)) => return Ok((answer.into_inner(), address)),
                Ok(Err(refusal)) => {
                    hint = status::leader_hint(&refusal).map(|h| h.address).filter(|a| *a != address);
                    status::from_status(&refusal)
                }
                Err(_) => Error::new(ErrorKind::DeadlineExceeded, format!("{address} did not answer within {held:?}")),
            };
            unknown |= error.outcome_unknown();
            // A node that is being started for the first time may be formed any moment; one that is not is told so.
            if !error.is_retryable() {
                return Err(error);
            }
            if Instant::now() >= end {
                let waited = begin.elapsed();
                let message = format!("waited {waited:.1?} for {whom}; last, {address}: {error}");
                let late = Error::new(ErrorKind::DeadlineExceeded, message);
                return Err(if unknown { late.with_unknown_outcome() } else { late });
            }
            if hint.is_none() {
                tokio::time::sleep(self.pause()).await;
            }
        }
        unreachable!("the loop ends by answer or deadline")
    }

    /// Address of a node in a map.
    pub(crate) fn address(map: &petuum_types::map::ShardMap, node: NodeId) -> Result<&str, Error> {
        map.nodes
            .get(&node)
            .map(String::as_str)
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("{node} is not in the shard map")))
    }
}
