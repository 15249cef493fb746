//! The parameter server itself: commits and reads.

use crate::shared::Inner;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use petuum_net::status::{check_format, from_status, to_status};
use petuum_net::wire::data_server::Data;
use petuum_net::{convert, wire};
use petuum_types::message::WorkerMessage;
use petuum_types::outcome::{Outcome, Reply, Retry};
use petuum_types::{Clock, Error, ErrorKind, ShardId, limits};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

pub(super) struct Service(pub(super) Arc<Inner>);

#[tonic::async_trait]
impl Data for Service {
    type CommitStream = BoxStream<'static, Result<wire::CommitReply, Status>>;
    type ReadStream = Pin<Box<dyn Stream<Item = Result<wire::ReadChunk, Status>> + Send>>;

    async fn commit(
        &self,
        request: Request<Streaming<wire::CommitFrame>>,
    ) -> Result<Response<Self::CommitStream>, Status> {
        // A node that takes no part yet says so at once.
        self.0.running().map_err(|e| to_status(&e))?;
        let (replies, replied) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(self.0.settings.stream_messages_max));
        let (refused, refusal) = tokio::sync::oneshot::channel();
        tokio::spawn(take_frames(self.0.clone(), request.into_inner(), replies, permits, refused));
        let gathered = UnboundedReceiverStream::new(replied).ready_chunks(256).map(|ready| {
            // Each reply gives back its place in the stream as it leaves.
            let replies = ready.into_iter().map(|(reply, _permit): (_, OwnedSemaphorePermit)| reply).collect();
            Ok(wire::CommitReply { replies })
        });
        let end = futures::stream::once(refusal).filter_map(|refusal| async { refusal.ok().map(Err) });
        Ok(Response::new(gathered.chain(end).boxed()))
    }

    async fn read(&self, request: Request<wire::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        check_format(request.format).map_err(|s| *s)?;
        let answer = super::read::answer(&self.0, &request).await.map_err(|s| *s)?;
        let chunks = convert::chunks_of_answer(&answer, limits::READ_CHUNK_BYTES);
        Ok(Response::new(Box::pin(futures::stream::iter(chunks.into_iter().map(Ok)))))
    }
}

type Replies = mpsc::UnboundedSender<(wire::MessageReply, OwnedSemaphorePermit)>;

/// Reads a stream's frames until it ends, breaks or sends what cannot be understood; replies go out meanwhile.
async fn take_frames(
    inner: Arc<Inner>,
    mut frames: Streaming<wire::CommitFrame>,
    replies: Replies,
    permits: Arc<Semaphore>,
    refused: tokio::sync::oneshot::Sender<Status>,
) {
    while let Some(frame) = frames.next().await {
        let taken = match frame {
            Ok(frame) => take_frame(&inner, frame, &replies, &permits).await,
            Err(status) => Err(Box::new(unread(&status))),
        };
        if let Err(status) = taken {
            tracing::warn!(error = %from_status(&status), "a commit stream was refused");
            // The client may be gone already.
            let _ = refused.send(*status);
            return;
        }
    }
}

/// What to tell a client of whose stream no further frame could be read. Only what the client itself sent wrong is said
/// to be so, since that ends its work: such a status has no cause below it, that of a broken connection has.
fn unread(status: &Status) -> Status {
    let sent_wrong = std::error::Error::source(status).is_none();
    let (limit, got) = (limits::MESSAGE_BYTES_MAX, status.message());
    let error = match status.code() {
        Code::OutOfRange if sent_wrong => {
            let what = format!("a commit frame is larger than {limit} bytes ({got}); send fewer messages in a frame");
            Error::new(ErrorKind::InvalidArgument, what)
        }
        Code::Internal if sent_wrong => {
            let what = format!("a commit frame that is none ({got}); expected an uncompressed petuum.v1.CommitFrame");
            Error::new(ErrorKind::InvalidArgument, what)
        }
        _ => Error::new(ErrorKind::Unavailable, format!("the commit stream broke: {got}")).with_unknown_outcome(),
    };
    to_status(&error)
}

async fn take_frame(
    inner: &Arc<Inner>,
    frame: wire::CommitFrame,
    replies: &Replies,
    permits: &Arc<Semaphore>,
) -> Result<(), Box<Status>> {
    check_format(frame.format)?;
    for message in frame.messages {
        // Bounded: a client that does not read its replies is no longer listened to.
        let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        take_message(inner, ShardId(message.shard), message.message, replies, permit)?;
    }
    Ok(())
}

fn take_message(
    inner: &Arc<Inner>,
    shard: ShardId,
    bytes: Bytes,
    replies: &Replies,
    permit: OwnedSemaphorePermit,
) -> Result<(), Box<Status>> {
    let invalid = |message: String| Box::new(to_status(&Error::new(ErrorKind::InvalidArgument, message)));
    let message = WorkerMessage::decode(&bytes).map_err(|e| invalid(format!("a message for {shard}: {e}")))?;
    if message.payload.len() > limits::PART_BYTES_MAX {
        let got = message.payload.len();
        return Err(invalid(format!("a part of {got} bytes for {shard}; the limit is {}", limits::PART_BYTES_MAX)));
    }
    let running = inner.running().map_err(|e| Box::new(to_status(&e)))?;
    match running.shards.get(&shard) {
        Some(replica) => replica.gatherer.submit(&message, bytes, replies.clone(), permit),
        None => {
            let outcome = Outcome::Retry(Retry::NotLeader { leader: None });
            let reply = Reply { shard, sequence: message.sequence, outcome };
            // The response stream may be gone; then nobody waits for it.
            let _ = replies.send((convert::reply_to_wire(&reply, Clock::ZERO), permit));
        }
    }
    Ok(())
}
