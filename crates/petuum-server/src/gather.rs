//! One gatherer per shard: worker messages that wait together become one log entry (P8).
//!
//! While an entry is on its way through Raft and the disk, new messages queue, and all of them go into the next, up to a
//! cap. So a lone message waits for nobody, and a crowd shares its entries and fsyncs. Only a queue that would fill a
//! frame of its own goes at once, several on their way together: waiting would save nothing then. (With every message
//! sent as soon as one of eight places was free, eight busy workers made two and a half times the entries, and a sixth
//! less throughput.)

use crate::ending::Ending;
use crate::machine::ShardCell;
use crate::settings::NodeSettings;
use crate::watermark::Watermark;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use petuum_chaos::{Buggify, Failpoint, clumsy, reached};
use petuum_consensus::{Group, ProposeError};
use petuum_net::{convert, wire};
use petuum_types::message::WorkerMessage;
use petuum_types::outcome::{Outcome, Reply, Retry};
use petuum_types::{JobId, Sequence, ShardId, codec, entry, limits};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Where a message's reply goes, with the permit that bounds its stream.
pub(crate) type ReplySender = mpsc::UnboundedSender<(wire::MessageReply, OwnedSemaphorePermit)>;

/// A worker message on its way into the log.
pub(crate) struct Pending {
    bytes: Bytes,
    job: JobId,
    sequence: Sequence,
    replies: ReplySender,
    permit: OwnedSemaphorePermit,
}

/// The entrance to a shard's log on this node.
#[derive(Clone)]
pub(crate) struct Gatherer {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedSender<Pending>,
}

struct Shared {
    shard: ShardId,
    cell: Arc<ShardCell>,
    group: Group,
    watermark: Watermark,
    queued_bytes: AtomicUsize,
    queue_bytes_max: usize,
    in_flight_max: usize,
}

impl Gatherer {
    /// Starts gathering for a shard; the task ends when every handle is gone. Its panic ends the node: the shard's commits
    /// would wait for ever.
    #[must_use]
    pub(crate) fn start(
        cell: Arc<ShardCell>,
        group: Group,
        watermark: Watermark,
        settings: &NodeSettings,
        ending: &Ending,
    ) -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            shard: cell.id(),
            cell,
            group,
            watermark,
            queued_bytes: AtomicUsize::new(0),
            queue_bytes_max: settings.shard_queue_bytes,
            in_flight_max: settings.gather_in_flight,
        });
        tokio::spawn(ending.clone().watched(run(shared.clone(), queued)));
        Self { shared, queue }
    }

    /// Takes a message in. The reply comes on `replies`; messages of one caller keep their order.
    pub(crate) fn submit(
        &self,
        message: &WorkerMessage,
        bytes: Bytes,
        replies: ReplySender,
        permit: OwnedSemaphorePermit,
    ) {
        let pending = Pending { bytes, job: message.job, sequence: message.sequence, replies, permit };
        if let Some(outcome) = self.early(message) {
            self.shared.reply(pending, outcome);
            return;
        }
        let bytes = pending.bytes.len();
        if self.shared.queued_bytes.load(Ordering::Relaxed) + bytes > self.shared.queue_bytes_max {
            let limit = self.shared.queue_bytes_max;
            let busy = Retry::Busy(format!("{limit} bytes of messages wait in {}", self.shared.shard));
            self.shared.reply(pending, Outcome::Retry(busy));
            return;
        }
        self.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Err(mpsc::error::SendError(pending)) = self.queue.send(pending) {
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.shared.reply(pending, Outcome::Retry(Retry::NotLeader { leader: None }));
        }
    }

    /// What can be answered without the log (P4, P22). A gap cannot: the missing message may be on its way.
    fn early(&self, message: &WorkerMessage) -> Option<Outcome> {
        let status = self.shared.group.status();
        if !status.is_leader() {
            return Some(Outcome::Retry(Retry::NotLeader { leader: status.leader }));
        }
        if message.has_part()
            && let Some(reason) = self.shared.watermark.refusal()
        {
            return Some(Outcome::Retry(Retry::Busy(reason)));
        }
        match self.shared.cell.with(|shard| shard.precheck(message)) {
            Some(Outcome::Retry(Retry::Gap { .. })) => None,
            outcome => outcome,
        }
    }
}

impl Shared {
    fn reply(&self, pending: Pending, outcome: Outcome) {
        let reply = Reply { shard: self.shard, sequence: pending.sequence, outcome };
        let wire = convert::reply_to_wire(&reply, self.cell.min_clock(pending.job));
        // The stream may be gone; the client sends again on another and is told the same.
        let _ = pending.replies.send((wire, pending.permit));
    }

    fn finish(&self, batch: Vec<Pending>, result: Result<Bytes, ProposeError>) {
        let bytes: usize = batch.iter().map(|p| p.bytes.len()).sum();
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        match outcomes(batch.len(), result) {
            Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|(pending, outcome)| self.reply(pending, outcome)),
            Err(retry) => batch.into_iter().for_each(|p| self.reply(p, Outcome::Retry(retry.clone()))),
        }
    }
}

fn outcomes(count: usize, result: Result<Bytes, ProposeError>) -> Result<Vec<Outcome>, Retry> {
    match result {
        Ok(answer) => {
            let outcomes: Vec<Outcome> = codec::decode(&answer).map_err(|e| Retry::Unknown(e.to_string()))?;
            assert_eq!(outcomes.len(), count, "apply answers every message of an entry");
            Ok(outcomes)
        }
        Err(ProposeError::NotLeader { leader }) => Err(Retry::NotLeader { leader }),
        Err(error) => Err(Retry::Unknown(error.to_string())),
    }
}

async fn run(shared: Arc<Shared>, mut queued: mpsc::UnboundedReceiver<Pending>) {
    let mut in_flight = FuturesUnordered::new();
    let mut waiting = Waiting::default();
    let mut open = true;
    while open || !in_flight.is_empty() || !waiting.messages.is_empty() {
        if waiting.may_go(in_flight.len(), shared.in_flight_max) {
            in_flight.push(propose(&shared, &mut waiting));
            continue;
        }
        tokio::select! {
            biased;
            Some((batch, result)) = in_flight.next() => {
                reached(Failpoint::GatherAfterApply);
                shared.finish(batch, result);
            }
            next = queued.recv(), if open => match next {
                Some(next) => waiting.push(next),
                None => open = false,
            },
        }
        while let Ok(next) = queued.try_recv() {
            waiting.push(next);
        }
    }
}

/// Hands the next entry to Raft.
fn propose(shared: &Shared, waiting: &mut Waiting) -> BoxFuture<'static, (Vec<Pending>, Result<Bytes, ProposeError>)> {
    let batch = waiting.next_entry(limits::ENTRY_BYTES_MAX);
    let messages: Vec<Bytes> = batch.iter().map(|p| p.bytes.clone()).collect();
    reached(Failpoint::GatherBeforePropose);
    let result = shared.group.submit(entry::encode_messages(&messages));
    async move { (batch, result.await) }.boxed()
}

/// Messages in the order in which they came.
#[derive(Default)]
struct Waiting {
    messages: VecDeque<Pending>,
    /// Of the messages in an entry.
    bytes: usize,
}

impl Waiting {
    fn cost(message: &Pending) -> usize {
        message.bytes.len() + entry::MESSAGE_OVERHEAD_BYTES
    }

    fn push(&mut self, message: Pending) {
        self.bytes += Self::cost(&message);
        self.messages.push_back(message);
    }

    /// Whether an entry goes now, with so many on their way.
    fn may_go(&self, in_flight: usize, in_flight_max: usize) -> bool {
        let worth_it = in_flight == 0 || self.bytes >= limits::RAFT_FRAME_BYTES;
        !self.messages.is_empty() && worth_it && in_flight < in_flight_max
    }

    /// The first message and what follows it, up to an entry of `entry_bytes`.
    fn next_entry(&mut self, entry_bytes: usize) -> Vec<Pending> {
        let mut total = entry::HEADER_BYTES;
        let mut batch = Vec::new();
        while let Some(next) =
            self.messages.pop_front_if(|next| batch.is_empty() || total + Self::cost(next) <= entry_bytes)
        {
            total += Self::cost(&next);
            self.bytes -= Self::cost(&next);
            batch.push(next);
            if clumsy(Buggify::GatherOne) {
                break;
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests;
