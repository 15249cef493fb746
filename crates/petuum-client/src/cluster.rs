//! What a client knows of a cluster: channels, the map, who leads; and calls that find the control group's leader.

use crate::options::Options;
use petuum_net::convert::{self, KnownMap};
use petuum_net::status;
use petuum_net::transport::{ChannelSettings, channel, check_address};
use petuum_net::wire;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::{Error, ErrorKind, JobId, NodeId, RequestId, ShardId, WorkerId, limits};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tonic::Status;
use tonic::transport::Channel;

/// The longest a node is asked to hold a call: one that died silently must not use up the whole deadline.
const HELD_MAX: Duration = Duration::from_secs(10);

/// Whom to ask next.
#[derive(Default)]
struct Search {
    candidates: Vec<String>,
    turn: usize,
    hint: Option<String>,
    hints_in_a_row: u32,
    /// Nodes in a row that belong to no cluster.
    unformed: usize,
    outcome_unknown: bool,
}

impl Search {
    fn next(&mut self) -> String {
        if let Some(hint) = self.hint.take() {
            self.hints_in_a_row += 1;
            return hint;
        }
        self.hints_in_a_row = 0;
        self.turn += 1;
        self.candidates[(self.turn - 1) % self.candidates.len()].clone()
    }

    /// Whether asking another node, or later, is in vain. One node that belongs to no cluster may have lost its disk;
    /// only if all say so is there no cluster.
    fn is_final(&mut self, error: &Error) -> bool {
        self.outcome_unknown |= error.outcome_unknown();
        if error.kind() == ErrorKind::NotInitialized {
            self.unformed += 1;
            return self.unformed >= self.candidates.len();
        }
        self.unformed = 0;
        !error.is_retryable()
    }

    /// A first hint is followed at once; two nodes that name each other are not.
    const fn should_pause(&self) -> bool {
        self.hint.is_none() || self.hints_in_a_row > 0
    }
}

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
    /// Who answered for a shard as its leader last.
    leaders: BTreeMap<ShardId, NodeId>,
    random: fastrand::Rng,
    /// Registrations without a final answer yet: a call that is made again must carry the same id, or the first one,
    /// arriving late, would replace the second (P17).
    registering: BTreeMap<(JobId, WorkerId), Registering>,
}

/// A registration without a final answer.
struct Registering {
    request: RequestId,
    under_way: bool,
}

impl Cluster {
    pub(crate) fn new(endpoints: Vec<String>, options: Options) -> Result<Self, Error> {
        options.check()?;
        if endpoints.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, "no endpoints; name at least one node as host:port"));
        }
        for endpoint in &endpoints {
            check_address(endpoint).map_err(|e| Error::new(ErrorKind::InvalidArgument, e))?;
        }
        let random = fastrand::Rng::with_seed(options.seed);
        let state = State {
            channels: BTreeMap::new(),
            control: None,
            leaders: BTreeMap::new(),
            random,
            registering: BTreeMap::new(),
        };
        Ok(Self { options, endpoints, state: Mutex::new(state) })
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
    ///
    /// # Errors
    /// [`ErrorKind::FailedPrecondition`] while another call of this process registers the worker: two sessions of one
    /// registration would send two contents under one sequence (P4).
    pub(crate) fn begin_registration(&self, job: JobId, worker: WorkerId) -> Result<RequestId, Error> {
        let mut state = self.lock();
        let request = RequestId(state.random.u128(..));
        let entry = state.registering.entry((job, worker)).or_insert(Registering { request, under_way: false });
        if std::mem::replace(&mut entry.under_way, true) {
            let message = format!("{worker} of {job} is being registered by another call of this process");
            return Err(Error::new(ErrorKind::FailedPrecondition, message));
        }
        Ok(entry.request)
    }

    /// The call of a registration has returned; `answered` if its answer is final.
    pub(crate) fn end_registration(&self, job: JobId, worker: WorkerId, answered: bool) {
        let mut state = self.lock();
        if answered {
            state.registering.remove(&(job, worker));
        } else if let Some(entry) = state.registering.get_mut(&(job, worker)) {
            entry.under_way = false;
        }
    }

    /// Who answered for a shard as its leader last.
    pub(crate) fn leader(&self, shard: ShardId) -> Option<NodeId> {
        self.lock().leaders.get(&shard).copied()
    }

    /// A node has answered as a shard's leader.
    pub(crate) fn note_leader(&self, shard: ShardId, node: NodeId) {
        self.lock().leaders.insert(shard, node);
    }

    /// A pause of the retry length, half of it random so that many clients do not come back together.
    pub(crate) fn pause(&self) -> Duration {
        let whole = self.options.retry_pause;
        whole / 2 + whole.mul_f64(self.lock().random.f64() / 2.0)
    }

    /// The map, from any node that answers.
    pub(crate) async fn map(&self) -> Result<KnownMap, Error> {
        let (answer, _) = self
            .call("any node", self.endpoints.clone(), HELD_MAX, |channel, _| async move {
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
    /// call must carry a request id if it changes anything. It is given the milliseconds it may be held.
    pub(crate) async fn control<T, F>(&self, call: impl Fn(Channel, u32) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        self.control_within(HELD_MAX, call).await
    }

    /// The same with at most `attempt` for each node.
    pub(crate) async fn control_within<T, F>(
        &self,
        attempt: Duration,
        call: impl Fn(Channel, u32) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let known = self.lock().control.clone();
        let others = self.endpoints.iter().filter(|e| Some(*e) != known.as_ref()).cloned();
        let candidates: Vec<String> = known.iter().cloned().chain(others).collect();
        let called = self.call("the control group's leader", candidates, attempt, call).await;
        let mut state = self.lock();
        match called {
            Ok((answer, address)) => {
                state.control = Some(address);
                Ok(answer)
            }
            Err(error) => {
                state.control = None;
                Err(error)
            }
        }
    }

    async fn call<T, F>(
        &self,
        whom: &str,
        candidates: Vec<String>,
        attempt: Duration,
        call: impl Fn(Channel, u32) -> F,
    ) -> Result<(T, String), Error>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let begin = Instant::now();
        let end = begin + self.options.deadline;
        let mut search = Search { candidates, ..Search::default() };
        loop {
            let address = search.next();
            let left = end.saturating_duration_since(Instant::now());
            let held = left.min(attempt);
            let held_ms = u32::try_from(held.as_millis()).unwrap_or(u32::MAX).max(1);
            // A node that holds the call answers in time; the margin is for its way back.
            let margin = (held / 4).clamp(Duration::from_millis(50), Duration::from_secs(1));
            let error = match timeout(held + margin, call(self.channel(&address)?, held_ms)).await {
                Ok(Ok(answer)) => return Ok((answer.into_inner(), address)),
                Ok(Err(refusal)) => {
                    search.hint = status::leader_hint(&refusal).map(|h| h.address).filter(|a| *a != address);
                    status::from_status(&refusal)
                }
                Err(_) => Error::new(ErrorKind::DeadlineExceeded, format!("{address} did not answer within {held:?}")),
            };
            if search.is_final(&error) {
                return Err(error);
            }
            if Instant::now() >= end {
                let message = format!("waited {:.1?} for {whom}; last, {address}: {error}", begin.elapsed());
                let late = Error::new(ErrorKind::DeadlineExceeded, message);
                return Err(if search.outcome_unknown { late.with_unknown_outcome() } else { late });
            }
            if search.should_pause() {
                tokio::time::sleep(self.pause()).await;
            }
        }
    }

    /// Pauses before asking again for something that not every shard knows: before that its use would be refused (P18).
    ///
    /// # Errors
    /// [`ErrorKind::DeadlineExceeded`] when it has been waited for long enough.
    pub(crate) async fn wait_until_ready(&self, begin: Instant, what: &str) -> Result<(), Error> {
        if begin.elapsed() > self.options.deadline {
            let message = format!("waited {:.1?} for every shard to know {what}", begin.elapsed());
            return Err(Error::new(ErrorKind::DeadlineExceeded, message));
        }
        tokio::time::sleep(self.pause()).await;
        Ok(())
    }

    /// Address of a node in a map.
    pub(crate) fn address(map: &petuum_types::map::ShardMap, node: NodeId) -> Result<&str, Error> {
        map.nodes
            .get(&node)
            .map(String::as_str)
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("{node} is not in the shard map")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(nodes: usize) -> Search {
        Search { candidates: (0..nodes).map(|n| n.to_string()).collect(), ..Search::default() }
    }

    #[test]
    fn one_node_without_a_cluster_is_passed_over_and_all_of_them_are_believed() {
        let empty = Error::new(ErrorKind::NotInitialized, "no cluster");
        let mut search = search(3);
        assert!(!search.is_final(&empty) && !search.is_final(&empty));
        assert!(!search.is_final(&Error::new(ErrorKind::Unavailable, "starting")));
        assert!(!search.is_final(&empty) && !search.is_final(&empty) && search.is_final(&empty));
        assert!(search.is_final(&Error::new(ErrorKind::NotFound, "no such job")));
    }

    #[test]
    fn a_hint_is_followed_at_once_but_two_nodes_that_name_each_other_are_not_spun_between() {
        let mut search = search(2);
        assert_eq!(search.next(), "0");
        search.hint = Some("1".into());
        assert!(!search.should_pause());
        assert_eq!(search.next(), "1");
        search.hint = Some("0".into());
        assert!(search.should_pause());
    }
}
