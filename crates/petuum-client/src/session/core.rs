//! The session's state: pure machines behind one lock, and who is told when they change.

use super::registration::{Place, Registration};
use super::report::SessionReport;
use super::route::Route;
use crate::cluster::Cluster;
use crate::options::WorkerOptions;
use futures::FutureExt;
use petuum_net::convert;
use petuum_net::wire;
use petuum_session::{CacheSettings, Committer, Event, MinClocks, SessionStart, Settings, Workspace, cut};
use petuum_types::map::ShardMap;
use petuum_types::outcome::{Outcome, Reply, Retry};
use petuum_types::{Clock, Error, ErrorKind, JobId, NodeId, ShardId, Staleness};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// What all threads and tasks of a worker share.
pub(crate) struct Core {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) job: JobId,
    pub(crate) workers: u32,
    pub(crate) map: Arc<ShardMap>,
    pub(crate) registration: Registration,
    pub(crate) options: WorkerOptions,
    pub(crate) staleness: Staleness,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    wakes: BTreeMap<NodeId, Notify>,
}

/// The state; public to the session's modules, which lock it for moments.
pub(crate) struct State {
    pub(crate) workspace: Workspace,
    pub(crate) committer: Committer,
    pub(crate) min_clocks: MinClocks,
    pub(crate) routes: BTreeMap<ShardId, Route>,
    pub(crate) rows_read: u64,
    pub(crate) rows_cached: u64,
    /// How many times clocks were given up, and the last error; each thread hears of it once.
    pub(crate) aborts: (u64, Option<Error>),
    ended: Option<Error>,
    /// When `clock()` was called for each clock that is not acknowledged.
    called_at: BTreeMap<Clock, Instant>,
    longest_gap: Duration,
    /// When the last call that kept the lease was begun.
    pub(crate) renewed: Instant,
    /// Who decided a message of the shard last, and how often that was another node than before.
    answered_by: BTreeMap<ShardId, NodeId>,
    failovers: u64,
}

impl Core {
    /// Of a worker whose registration was begun at `begun`.
    pub(crate) fn new(place: Place, registration: Registration, options: WorkerOptions, begun: Instant) -> Self {
        let Place { cluster, map, job, workers, staleness, .. } = place;
        let shards: Vec<ShardId> = map.shards.keys().copied().collect();
        let start = SessionStart {
            job,
            generation: registration.generation,
            worker: registration.worker,
            incarnation: registration.incarnation,
            epoch: map.epoch,
            shards: shards.clone(),
            start: registration.start,
        };
        let settings = Settings {
            window_clocks: options.window_clocks,
            unacked_bytes: options.unacked_bytes,
            ..Settings::new(staleness)
        };
        let cache = CacheSettings { cache_bytes: options.cache_bytes, ..CacheSettings::default() };
        let routes = map.shards.iter().map(|(s, p)| (*s, Route::new(p.replicas[0], None))).collect();
        let nodes: BTreeSet<NodeId> = map.shards.values().flat_map(|p| p.replicas.iter().copied()).collect();
        let state = State {
            workspace: Workspace::new(options.threads as usize, registration.start, staleness, &cache),
            committer: Committer::new(start, settings),
            min_clocks: MinClocks::new(shards),
            routes,
            rows_read: 0,
            rows_cached: 0,
            aborts: (0, None),
            ended: None,
            called_at: BTreeMap::new(),
            longest_gap: Duration::ZERO,
            renewed: begun,
            answered_by: BTreeMap::new(),
            failovers: 0,
        };
        Self {
            cluster,
            job,
            workers,
            map,
            registration,
            options,
            staleness,
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
            wakes: nodes.into_iter().map(|node| (node, Notify::new())).collect(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // A panic has left the state half changed: nothing may be sent or shown from it any more.
            let mut state = poisoned.into_inner();
            state.ended.get_or_insert_with(|| broken("a panic has left this session's state half changed"));
            self.state.clear_poison();
            self.changed();
            state
        })
    }

    /// Every node with a replica.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.wakes.keys().copied().collect()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells every waiter and courier to look again.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|version| *version = version.wrapping_add(1));
        self.wakes.values().for_each(Notify::notify_one);
    }

    /// Waits for a change that concerns a courier.
    pub(crate) async fn woken(&self, node: NodeId) {
        match self.wakes.get(&node) {
            Some(wake) => wake.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the session for good.
    pub(crate) fn end(&self, error: Error) {
        self.lock().ended.get_or_insert(error);
        self.changed();
    }

    /// Runs one of the session's tasks. Its panic ends the session: what it does nobody else would, and all would wait.
    pub(crate) async fn watched(self: Arc<Self>, task: impl Future<Output = ()> + Send) {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            self.end(broken("a task of this session has panicked"));
        }
    }

    /// Waits until `look` has something, in the session's state, for at most the deadline. `whom` says who is waited for.
    pub(crate) async fn until<T>(
        &self,
        mut look: impl FnMut(&mut State) -> Result<Option<T>, Error>,
        whom: impl Fn(&State) -> String,
    ) -> Result<T, Error> {
        let mut changes = self.changes();
        let begin = Instant::now();
        let deadline = self.cluster.options.deadline;
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(&mut self.lock())? {
                return Ok(found);
            }
            let left = deadline.saturating_sub(begin.elapsed());
            if tokio::time::timeout(left, changes.changed()).await.is_err() {
                let waited = begin.elapsed();
                let whom = whom(&self.lock());
                let message = format!("{} waited {waited:.1?} for {whom}", self.registration.worker);
                return Err(Error::new(ErrorKind::DeadlineExceeded, message));
            }
        }
    }

    /// Waits for `work`; none if a clock is given up before, since there were `aborts_seen` aborts, or the session ends: what
    /// it waits for may not come any more then.
    pub(crate) async fn unless_given_up<T>(&self, aborts_seen: u64, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.given_up(aborts_seen) => None,
        }
    }

    async fn given_up(&self, aborts_seen: u64) {
        let mut changes = self.changes();
        let mut seen = aborts_seen;
        while self.lock().check_heard(&mut seen).is_ok() {
            changes.changed().await.expect("the sender is in this core");
        }
    }

    /// Ends a thread's clock and queues it if it was the last thread's. `called` is when the program asked for it;
    /// `aborts_seen`, how many aborts the thread has reported. After one that it has not, it is in an earlier clock than
    /// its program knows.
    pub(crate) fn tick(&self, thread: usize, called: Instant, aborts_seen: &mut u64) -> Result<(), Error> {
        let mut state = self.lock();
        state.check_heard(aborts_seen)?;
        if !state.committer.room() {
            return Err(Error::new(ErrorKind::ResourceExhausted, "another thread has taken the room"));
        }
        if let Some((clock, updates)) = state.workspace.tick(thread) {
            let parts = cut(&updates, &self.map, self.options.part_bytes);
            if let Err(error) = state.committer.commit(clock, parts) {
                // It can never fit. Every thread is back in this clock without updates, and hears of it.
                state.workspace.give_up(clock);
                state.aborts = (state.aborts.0 + 1, Some(error.clone()));
                *aborts_seen = state.aborts.0;
                drop(state);
                self.changed();
                return Err(error);
            }
            state.called_at.insert(clock, called);
        }
        drop(state);
        self.changed();
        Ok(())
    }

    /// Takes a shard's reply, which came from this node.
    pub(crate) fn on_reply(&self, node: NodeId, reply: &wire::MessageReply) {
        let (reply, min_clock) = match convert::reply_from_wire(reply) {
            Ok(known) => known,
            Err(error) => return self.end(error),
        };
        let mut state = self.lock();
        if matches!(reply.outcome, Outcome::Retry(_)) {
            // A node that is no longer asked has nothing to say about where to go: obeying it would send the lane in
            // circles. All it was sent is being sent again.
            if state.routes.get(&reply.shard).is_none_or(|route| route.node != node) {
                return;
            }
        } else {
            state.min_clocks.note_min_clock(reply.shard, min_clock);
            if let Some(route) = state.routes.get_mut(&reply.shard).filter(|route| route.node == node) {
                route.decided();
            }
            if state.answered_by.insert(reply.shard, node).is_some_and(|before| before != node) {
                state.failovers += 1;
            }
        }
        let Reply { shard, sequence, outcome } = reply;
        let events = state.committer.on_outcome(shard, sequence, &outcome);
        for event in events {
            self.on_event(&mut state, event);
        }
        drop(state);
        self.changed();
    }

    fn on_event(&self, state: &mut State, event: Event) {
        match event {
            Event::Acknowledged { clock } => {
                if let Some(called) = state.called_at.remove(&clock) {
                    state.longest_gap = state.longest_gap.max(called.elapsed());
                }
            }
            Event::TickedEverywhere { .. } => {}
            Event::Aborted { clock, refusal, .. } => {
                state.workspace.give_up(clock);
                state.called_at.retain(|earlier, _| *earlier < clock);
                let error = Error::new(ErrorKind::InvalidArgument, refusal.to_string()).context(clock);
                state.aborts = (state.aborts.0 + 1, Some(error));
            }
            Event::Backoff { shard, reason } => self.on_backoff(state, shard, &reason),
            Event::StaleMap { shard, ours } => {
                let message =
                    format!("{shard} is at {ours}, this client at {}; maps do not change yet", self.map.epoch);
                state.ended.get_or_insert(Error::new(ErrorKind::FailedPrecondition, message));
            }
            Event::Fenced(_) | Event::Failed { .. } => {
                let error = state.committer.error().expect("a committer that has ended says why");
                state.ended.get_or_insert(error);
            }
        }
    }

    fn on_backoff(&self, state: &mut State, shard: ShardId, reason: &Retry) {
        let later = Some(Instant::now() + self.cluster.pause());
        match reason {
            Retry::NotLeader { leader: Some(leader) } if self.wakes.contains_key(leader) => {
                // Followed at once, unless the lane has just been sent here: two nodes may name each other.
                let fresh = state.routes[&shard].is_younger_than(self.cluster.options.retry_pause);
                state.reroute(shard, *leader, later.filter(|_| fresh));
            }
            Retry::NotLeader { .. } => {
                let next = self.next_replica(state, shard);
                state.reroute(shard, next, later);
            }
            _ => {
                let route = state.routes.get_mut(&shard).expect("every shard has a route");
                route.not_before = later;
                if route.put_off(self.cluster.options.stall_after) {
                    let next = self.next_replica(state, shard);
                    state.reroute(shard, next, later);
                }
            }
        }
    }

    fn next_replica(&self, state: &State, shard: ShardId) -> NodeId {
        let now = state.routes[&shard].node;
        let replicas = &self.map.shards[&shard].replicas;
        let at = replicas.iter().position(|n| *n == now).unwrap_or(0);
        replicas[(at + 1) % replicas.len()]
    }

    /// The connection to a node is gone: its shards' messages are due again, at another replica.
    pub(crate) fn on_lost(&self, node: NodeId) {
        let mut state = self.lock();
        let lost: Vec<ShardId> = state.routes.iter().filter(|(_, r)| r.node == node).map(|(s, _)| *s).collect();
        for shard in lost {
            let next = self.next_replica(&state, shard);
            let later = Instant::now() + self.cluster.pause();
            state.reroute(shard, next, Some(later));
        }
        drop(state);
        self.changed();
    }

    /// A node answers for other shards and not for this one, which goes elsewhere.
    pub(crate) fn on_stalled(&self, node: NodeId, shard: ShardId) {
        let mut state = self.lock();
        if state.routes.get(&shard).is_some_and(|route| route.node == node) {
            let next = self.next_replica(&state, shard);
            state.reroute(shard, next, Some(Instant::now() + self.cluster.pause()));
        }
        drop(state);
        self.changed();
    }

    /// Figures so far.
    pub(crate) fn report(&self) -> SessionReport {
        let state = self.lock();
        SessionReport {
            clocks: state.committer.next_clock().0 - self.registration.start.0,
            acked: state.committer.acked().0 - self.registration.start.0,
            counters: state.committer.counters().into(),
            failovers: state.failovers,
            longest_commit_gap: state.longest_gap,
            since_renewal: state.renewed.elapsed(),
            rows_read: state.rows_read,
            rows_cached: state.rows_cached,
            clock_differentials: state.workspace.differentials().clone(),
        }
    }
}

/// A defect of this program has ended the session.
fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("{what}; the reason is in the log above: register the worker anew"))
}

impl State {
    /// The end of the session, if it has ended.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    /// As [`State::check`]; also a clock that was given up since the thread looked last.
    pub(crate) fn check_heard(&self, aborts_seen: &mut u64) -> Result<(), Error> {
        self.check()?;
        let (aborts, error) = &self.aborts;
        if aborts == aborts_seen {
            return Ok(());
        }
        *aborts_seen = *aborts;
        Err(error.clone().expect("an abort has a reason"))
    }

    /// Sends a shard's messages elsewhere, from the first unacknowledged on.
    fn reroute(&mut self, shard: ShardId, node: NodeId, not_before: Option<Instant>) {
        self.committer.on_lost(shard);
        let route = self.routes.get_mut(&shard).expect("every shard has a route");
        if route.node != node {
            tracing::debug!(%shard, from = %route.node, to = %node, "messages go to another node");
        }
        *route = Route::new(node, not_before);
    }

    /// For people: which shards hold the session up.
    pub(crate) fn waiting_for(&self) -> String {
        let waiting: Vec<String> = self.committer.waiting_for().iter().take(4).map(ToString::to_string).collect();
        if waiting.is_empty() { "its shards".to_owned() } else { waiting.join("; ") }
    }
}

#[cfg(test)]
mod tests;
