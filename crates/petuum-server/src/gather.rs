//! One gatherer per shard: worker messages that wait together become one log entry (P8).
//!
//! While entries are on their way through Raft and the disk, new messages queue; when a place is free everything queued
//! goes into the next entry, up to a cap. So a lone message waits for nobody, and a crowd shares its fsyncs.

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
    let mut open = true;
    let mut carried: Option<Pending> = None;
    while open || !in_flight.is_empty() || carried.is_some() {
        let room = in_flight.len() < shared.in_flight_max;
        if let Some(first) = carried.take_if(|_| room) {
            in_flight.push(propose(&shared, first, &mut queued, &mut carried));
            continue;
        }
        tokio::select! {
            biased;
            Some((batch, result)) = in_flight.next() => {
                reached(Failpoint::GatherBeforeReply);
                shared.finish(batch, result);
            }
            first = queued.recv(), if open && room => match first {
                Some(first) => in_flight.push(propose(&shared, first, &mut queued, &mut carried)),
                None => open = false,
            },
        }
    }
}

/// Hands `first` and what waits behind it to Raft, in order.
fn propose(
    shared: &Shared,
    first: Pending,
    queued: &mut mpsc::UnboundedReceiver<Pending>,
    carried: &mut Option<Pending>,
) -> BoxFuture<'static, (Vec<Pending>, Result<Bytes, ProposeError>)> {
    let batch = gather(first, queued, carried, limits::ENTRY_BYTES_MAX);
    let messages: Vec<Bytes> = batch.iter().map(|p| p.bytes.clone()).collect();
    reached(Failpoint::GatherBeforePropose);
    let result = shared.group.submit(entry::encode_messages(&messages));
    async move { (batch, result.await) }.boxed()
}

/// Everything that waits behind `first`, in order, up to an entry of `entry_bytes`. The first that no longer fits is
/// carried to the next entry.
fn gather(
    first: Pending,
    queued: &mut mpsc::UnboundedReceiver<Pending>,
    carried: &mut Option<Pending>,
    entry_bytes: usize,
) -> Vec<Pending> {
    let cost = |p: &Pending| p.bytes.len() + entry::MESSAGE_OVERHEAD_BYTES;
    let mut total = entry::HEADER_BYTES + cost(&first);
    let mut batch = vec![first];
    if clumsy(Buggify::GatherOne) {
        return batch;
    }
    while let Ok(next) = queued.try_recv() {
        if total + cost(&next) > entry_bytes {
            *carried = Some(next);
            break;
        }
        total += cost(&next);
        batch.push(next);
    }
    batch
}

#[cfg(test)]
mod tests;
