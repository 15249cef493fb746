//! One courier per node: a commit stream that carries the messages of all shards the node is believed to lead.

use super::core::Core;
use super::silence::Silence;
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
/// A courier with nothing to do looks again after this.
const IDLE: Duration = Duration::from_secs(5);

/// Carries for as long as the session lives; aborted with it.
pub(super) async fn run(core: Arc<Core>, node: NodeId) {
    let mut silence = Silence::new(core.cluster.options.stall_after);
    loop {
        let Some(frame) = collect(&core, node) else {
            idle(&core, node).await;
            continue;
        };
        let Err(error) = carry(&core, node, frame, &mut silence).await;
        silence.ended();
        tracing::debug!(%node, %error, "a commit stream ended");
        core.on_lost(node);
    }
}

/// Waits for something to send.
async fn idle(core: &Core, node: NodeId) {
    let pause = next_due(core, node).unwrap_or(IDLE);
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
    // A session that has ended has nothing more to say.
    state.check().ok()?;
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
            reached(Failpoint::MessageBeforeSend);
            bytes += message.len();
            if clumsy(Buggify::MessageDoubled) {
                messages.push(wire::ShardMessage { shard: shard.0, message: message.clone() });
            }
            messages.push(wire::ShardMessage { shard: shard.0, message });
            if let [.., before, last] = &mut messages[..]
                && clumsy(Buggify::MessagesSwapped)
            {
                std::mem::swap(before, last);
            }
        }
    }
    (!messages.is_empty()).then(|| wire::CommitFrame { format: petuum_net::FORMAT, number: 0, messages })
}

/// Opens a stream and carries on it until it breaks or nobody answers on it.
async fn carry(
    core: &Core,
    node: NodeId,
    first: wire::CommitFrame,
    silence: &mut Silence,
) -> Result<Infallible, Error> {
    let options = core.cluster.options.clone();
    let channel = core.cluster.channel(Cluster::address(&core.map, node)?)?;
    let (frames, queued) = mpsc::channel(FRAMES_AHEAD);
    let mut number = 1;
    let mut send = |silence: &mut Silence, mut frame: wire::CommitFrame| {
        frame.number = number;
        number += 1;
        frame.messages.iter().for_each(|message| silence.sent(ShardId(message.shard)));
        frames.try_send(frame).is_ok()
    };
    assert!(send(silence, first), "an empty queue has room");
    let mut client = DataClient::new(channel).max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
    let late = |what: &str| Error::new(ErrorKind::Unavailable, format!("{node} {what}"));
    let opening = client.commit(ReceiverStream::new(queued));
    let opened = timeout(options.stall_after, opening).await.map_err(|_| late("did not open a commit stream"))?;
    let mut replies: Streaming<wire::CommitReply> =
        opened.map_err(|s| petuum_net::status::from_status(&s))?.into_inner();
    loop {
        while frames.capacity() > 0 {
            let Some(frame) = collect(core, node) else { break };
            if !send(silence, frame) {
                return Err(late("closed the commit stream"));
            }
        }
        let stall = silence.next_end().map(|end| end.saturating_duration_since(Instant::now()));
        let pause = next_due(core, node).into_iter().chain(stall).min().unwrap_or(IDLE);
        tokio::select! {
            biased;
            reply = replies.message() => match reply {
                Ok(Some(_)) if clumsy(Buggify::StreamLost) => return Err(late("was given up")),
                Ok(Some(mut reply)) => {
                    if clumsy(Buggify::AnswersReversed) {
                        reply.replies.reverse();
                    }
                    reached(Failpoint::MessageAfterAnswer);
                    for reply in &reply.replies {
                        silence.heard(ShardId(reply.shard));
                        core.on_reply(node, reply);
                    }
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
        let silent = silence.give_up();
        if !silent.is_empty() && !silence.is_due() {
            // Nobody who should answers: the connection itself may be dead.
            let message =
                format!("{node} has not answered on the commit stream for {:?} or longer", options.stall_after);
            return Err(Error::new(ErrorKind::DeadlineExceeded, message));
        }
        silent.into_iter().for_each(|shard| core.on_stalled(node, shard));
    }
}
