//! A handle to one group.

use crate::error::{Error, ProposeError};
use crate::state::Raft;
use crate::status::{GroupStatus, Leadership};
use crate::supervisor::Replica;
use crate::types::{Payload, Types};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use openraft::errors::{ClientWriteError, InitializeError, LinearizableReadError, RaftError};
use openraft::impls::ProgressResponder;
use openraft::{BasicNode, ReadPolicy};
use petuum_chaos::{Mutant, mutated};
use petuum_types::{GroupId, LogIndex, NodeId};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};

/// A handle to one group on this node. Clones are handles to the same group; each has its own memory of what
/// [`Group::changed`] reported.
pub struct Group {
    replica: Arc<Replica>,
    seen: Mutex<watch::Receiver<Leadership>>,
}

impl Clone for Group {
    fn clone(&self) -> Self {
        Self::new(self.replica.clone())
    }
}

impl Group {
    pub(crate) fn new(replica: Arc<Replica>) -> Self {
        let mut seen = replica.leadership();
        // Whoever asks for changes is told the first state too.
        seen.mark_changed();
        Self { replica, seen: Mutex::new(seen) }
    }

    /// The group.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.replica.group
    }

    /// Proposes an entry; answered with the machine's answer when it is committed and applied here.
    ///
    /// # Errors
    /// [`ProposeError`]; it tells whether the entry may have taken effect.
    pub async fn propose(&self, entry: Bytes) -> Result<Bytes, ProposeError> {
        self.submit(entry).await
    }

    /// Proposes an entry at once, before the answer is awaited: entries take the order of the calls. The answer may
    /// be dropped; the entry may take effect all the same. While the core's queue is full, proposals behind one whose answer
    /// is neither awaited nor dropped wait.
    ///
    /// # Errors
    /// The answer's: [`ProposeError`].
    pub fn submit(&self, entry: Bytes) -> impl Future<Output = Result<Bytes, ProposeError>> + Send + 'static {
        let raft = match self.replica.raft() {
            Ok(raft) => raft,
            Err(reason) => return std::future::ready(Err(ProposeError::Stopped { reason })).boxed(),
        };
        let (responder, answer) = ProgressResponder::complete_only();
        let proposing = self.replica.proposing.clone();
        let sending = async move {
            // One at a time: of several who wait for room in the core's queue, each has to be polled again when it is
            // given some, and a later call that finds room would go before it.
            let _turn = proposing.lock().await;
            raft.client_write_ff(Payload::new(entry), Some(responder)).await
        };
        // Polled now: it takes its place in the core's queue, or among those who wait for their turn, first come, first
        // served. Not subject to tokio's budget, which would let a later call overtake it.
        let mut sending: BoxFuture<'static, _> = tokio::task::coop::unconstrained(sending).boxed();
        let sent = (&mut sending).now_or_never();
        let answered = async move {
            let sent = match sent {
                Some(sent) => sent,
                None => sending.await,
            };
            sent.map_err(|fatal| ProposeError::Stopped { reason: fatal.to_string() })?;
            match answer.await {
                Ok(Ok(response)) => Ok(response.data.0),
                Ok(Err(error)) => Err(refusal(error)),
                Err(_) => Err(ProposeError::Unknown { reason: "the group ended before it answered".to_owned() }),
            }
        };
        answered.boxed()
    }

    /// Forms the group of the members it was started with, and campaigns at once. Once is enough, on any member; to
    /// do it again, or on several, does no harm.
    ///
    /// # Errors
    /// [`Error::Refused`] if this node is no member, [`Error::Stopped`].
    pub async fn initialize(&self) -> Result<(), Error> {
        let members: BTreeMap<u64, BasicNode> =
            self.replica.members.iter().map(|(node, address)| (node.0, BasicNode::new(address))).collect();
        match self.raft()?.initialize(members).await {
            // It has a log or a vote already: it was formed.
            Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
            Err(RaftError::APIError(error @ InitializeError::NotInMembers(_))) => {
                Err(Error::Refused { group: self.id(), reason: error.to_string() })
            }
            Err(RaftError::Fatal(fatal)) => Err(self.stopped(fatal)),
        }
    }

    /// What this replica looks like now. Cheap.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        self.replica.status()
    }

    /// Waits until role, leader or term differ from what this handle last saw here; the first call answers at once.
    /// Of several calls at once on one handle, one after the other is served.
    pub async fn changed(&self) {
        let mut seen = self.seen.lock().await;
        seen.changed().await.expect("the sender is in the replica");
    }

    /// Hands leadership to another member; answered when this node no longer leads.
    ///
    /// # Errors
    /// [`Error::NotLeader`], [`Error::Refused`] for a node that is no voter, [`Error::Timeout`] if it went on leading
    /// (it then goes on serving), [`Error::Stopped`].
    pub async fn transfer_leader(&self, to: NodeId) -> Result<(), Error> {
        let raft = self.raft()?;
        let status = self.status();
        let (me, group) = (self.replica.node.id, self.id());
        if status.leader != Some(me) {
            return Err(Error::NotLeader { group, leader: status.leader });
        }
        if to == me {
            return Ok(());
        }
        if !raft.voter_ids().any(|voter| voter == to.0) {
            return Err(Error::Refused { group, reason: format!("{to} has no vote in it") });
        }
        raft.trigger().transfer_leader(to.0).await.map_err(|fatal| self.stopped(fatal))?;
        // The target waits for its log, campaigns, and is heard of with its first append.
        let limit = self.replica.node.settings.election_max * 4;
        let mut leadership = self.replica.leadership();
        let handed =
            leadership.wait_for(|now| now.term != status.term || now.leader.is_none_or(|leader| leader != me.0));
        match tokio::time::timeout(limit, handed).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Timeout { group, what: format!("the transfer of leadership to {to}"), waited: limit }),
        }
    }

    /// Campaigns now, whoever leads and however well.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn campaign(&self) -> Result<(), Error> {
        self.raft()?.trigger().elect(false).await.map_err(|fatal| self.stopped(fatal))
    }

    /// ReadIndex: an index such that whoever reads the machine at it or later sees every entry answered before this
    /// call. Answered when this replica has applied that far. Costs one round of heartbeats; trusts no clock.
    ///
    /// # Errors
    /// [`Error::NotLeader`], [`Error::NoQuorum`], [`Error::Stopped`].
    pub async fn read_index(&self) -> Result<LogIndex, Error> {
        let group = self.id();
        let lease = mutated(Mutant::LatestTrustsLease);
        let policy = if lease { ReadPolicy::LeaseRead } else { ReadPolicy::ReadIndex };
        match self.raft()?.ensure_linearizable(policy).await {
            Ok(read) => Ok(LogIndex(read.log_id().index)),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                Err(Error::NotLeader { group, leader: forward.leader_id.map(NodeId) })
            }
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(error))) => {
                Err(Error::NoQuorum { group, reason: error.to_string() })
            }
            Err(RaftError::Fatal(fatal)) => Err(self.stopped(fatal)),
        }
    }

    /// Waits until this replica has applied everything it may have applied before it was restarted, so that reads
    /// from it do not go back.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Stopped`].
    pub async fn wait_for_recovery(&self, limit: Duration) -> Result<(), Error> {
        match self.raft()?.wait_for_recovery(Some(limit)).await {
            Ok(_) => Ok(()),
            Err(openraft::metrics::WaitError::Timeout(..)) => {
                Err(Error::Timeout { group: self.id(), what: "recovery".to_owned(), waited: limit })
            }
            Err(openraft::metrics::WaitError::ShuttingDown) => Err(self.stopped("it is ending")),
        }
    }

    /// Saves the state soon, whatever the thresholds: when a build is allowed and the machine has applied something.
    pub async fn trigger_snapshot(&self) {
        self.replica.compaction.ask();
    }

    /// Ends this replica; answered when it writes and answers nothing any more.
    pub async fn shutdown(&self) {
        self.replica.stop().await;
    }

    fn raft(&self) -> Result<Raft, Error> {
        self.replica.raft().map_err(|reason| Error::Stopped { group: self.id(), reason })
    }

    fn stopped(&self, reason: impl ToString) -> Error {
        Error::Stopped { group: self.id(), reason: reason.to_string() }
    }
}

fn refusal(error: ClientWriteError<Types>) -> ProposeError {
    match error {
        ClientWriteError::ForwardToLeader(forward) => ProposeError::NotLeader { leader: forward.leader_id.map(NodeId) },
        // Truncated here; whether another leader has it is not known here.
        error => ProposeError::Unknown { reason: error.to_string() },
    }
}
