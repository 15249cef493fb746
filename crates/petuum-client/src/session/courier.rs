//! One courier per node: a commit stream that carries the messages of all shards the node is believed to lead.

use super::core::Core;
use crate::cluster::Cluster;
use petuum_chaos::{Buggify, Failpoint, clumsy, reached};
use petuum_net::wire;
use petuum_net::wire::data_client::DataClient;
use petuum_types::{Error, ErrorKind, NodeId, ShardId, limits};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Bytes of one frame; smaller than what a server takes, so that a frame never waits long behind another.
const FRAME_BYTES: usize = 1024 * 1024;
/// Frames queued to the connection.
const FRAMES_AHEAD: usize = 4;

/// Carries for as long as the session lives; aborted with it.
pub(super) async fn run(core: Arc<Core>, node: NodeId) {
    let mut stalls = 0u32;
    loop {
        let Some(frame) = collect(&core, node) else {
            idle(&core, node).await;
            continue;
        };
        // A slow node is not hurried: each stall in a row is waited for twice as long, up to eight times.
        let patience = core.cluster.options.stall_after * (1 << stalls.min(3));
        let Err(error) = carry(&core, node, frame, patience).await;
        stalls = if error.kind() == ErrorKind::DeadlineExceeded { stalls + 1 } else { 0 };
        tracing::debug!(%node, %error, "a commit stream ended");
        core.on_lost(node);
    }
}

/// Waits for something to send.
async fn idle(core: &Core, node: NodeId) {
    let pause = next_due(core, node).unwrap_or(Duration::from_secs(5));
    // Woken or not, the caller looks again.
    let _ = timeout(pause, core.woken(node)).await;
}

/// When a shard that was told to wait may be tried again.
fn next_due(core: &Core, node: NodeId) -> Option<Duration> {
    let state = core.lock();
    let due = state.routes.values().filter(|r| r.node == node).filter_map(|r| r.not_before).min()?;
    Some(due.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
}

/// The next frame for a node, if anything is to be sent there now.
fn collect(core: &Core, node: NodeId) -> Option<wire::CommitFrame> {
    let mut state = core.lock();
    let now = Instant::now();
    let mut messages = Vec::new();
    let mut bytes = 0;
    let shards: Vec<ShardId> = state.routes.iter().filter(|(_, r)| r.node == node).map(|(s, _)| *s).collect();
    for shard in shards {
        let route = state.routes.get_mut(&shard).expect("just listed");
        match route.not_before {
            Some(due) if due > now => continue,
            Some(_) => {
                route.not_before = None;
                state.committer.resume(shard);
            }
            None => {}
        }
        while bytes < FRAME_BYTES {
            let Some(message) = state.committer.next_message(shard) else { break };
            let message = message.encode();
            reached(Failpoint::WorkerBeforeSend);
            bytes += message.len();
            if clumsy(Buggify::MessageDoubled) {
                messages.push(wire::ShardMessage { shard: shard.0, message: message.clone() });
            }
            messages.push(wire::ShardMessage { shard: shard.0, message });
        }
    }
    (!messages.is_empty()).then(|| wire::CommitFrame { format: petuum_net::FORMAT, number: 0, messages })
}

/// Opens a stream and carries on it until it breaks or stalls.
async fn carry(core: &Core, node: NodeId, first: wire::CommitFrame, patience: Duration) -> Result<Infallible, Error> {
    let options = core.cluster.options.clone();
    let channel = core.cluster.channel(Cluster::address(&core.map, node)?)?;
    let mut due = first.messages.len();
    let (frames, queued) = mpsc::channel(FRAMES_AHEAD);
    let mut number = 1;
    let send = |frames: &mpsc::Sender<wire::CommitFrame>, mut frame: wire::CommitFrame, number: &mut u64| {
        frame.number = *number;
        *number += 1;
        frames.try_send(frame).is_ok()
    };
    assert!(send(&frames, first, &mut number), "an empty queue has room");
    let mut client = DataClient::new(channel).max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
    let late = |what: &str| Error::new(ErrorKind::Unavailable, format!("{node} {what}"));
    let opening = client.commit(ReceiverStream::new(queued));
    let opened = timeout(options.stall_after, opening).await.map_err(|_| late("did not open a commit stream"))?;
    let mut replies: Streaming<wire::CommitReply> =
        opened.map_err(|s| petuum_net::status::from_status(&s))?.into_inner();
    let mut heard = Instant::now();
    loop {
        while frames.capacity() > 0 {
            let Some(frame) = collect(core, node) else { break };
            if due == 0 {
                heard = Instant::now();
            }
            due += frame.messages.len();
            if !send(&frames, frame, &mut number) {
                return Err(late("closed the commit stream"));
            }
        }
        let pause = next_due(core, node).unwrap_or(Duration::from_secs(5)).min(patience);
        tokio::select! {
            biased;
            reply = replies.message() => match reply {
                Ok(Some(_)) if clumsy(Buggify::StreamLost) => return Err(late("was given up")),
                Ok(Some(mut reply)) => {
                    if clumsy(Buggify::AnswersReversed) {
                        reply.replies.reverse();
                    }
                    reached(Failpoint::WorkerAfterAnswer);
                    heard = Instant::now();
                    due = due.saturating_sub(reply.replies.len());
                    reply.replies.iter().for_each(|r| core.on_reply(node, r));
                }
                Ok(None) => return Err(late("ended the commit stream")),
                Err(status) => {
                    let error = petuum_net::status::from_status(&status);
                    if error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::Incompatible {
                        core.end(error.clone());
                    }
                    return Err(error);
                }
            },
            () = core.woken(node) => {}
            () = tokio::time::sleep(pause) => {}
        }
        if due > 0 && heard.elapsed() > patience {
            let message = format!("{node} has not answered on the commit stream for {patience:?}");
            return Err(Error::new(ErrorKind::DeadlineExceeded, message));
        }
    }
}
