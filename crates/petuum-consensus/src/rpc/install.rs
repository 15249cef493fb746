//! The receiving end of a snapshot: pieces go to the store as they come, checked one by one; when all are there,
//! openraft installs them. Meanwhile the sender hears at least four times per its limit of silence that something is
//! going on, also while this waits for its turn or installs.
//!
//! All of it runs inside the answer's own stream: when the sender goes away, tonic drops that, and what was received
//! is removed. Only an install that began goes on.

use super::{check_call, unavailable};
use crate::log::durably;
use crate::node::Node;
use crate::peers::Envelope;
use crate::record::{Ballot, SnapshotHead};
use crate::runtime::Rt;
use crate::snapshot::{Snapshot, SnapshotData};
use crate::state::Raft;
use crate::supervisor::Replica;
use crate::types::Vote;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use openraft::async_runtime::WatchReceiver;
use petuum_chaos::{Buggify, clumsy};
use petuum_net::wire::{SnapshotFrame, SnapshotProgress};
use petuum_storage::SnapshotWriter;
use petuum_types::{checksum, codec};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

type Progress = mpsc::Sender<Result<SnapshotProgress, Status>>;

pub(super) fn serve(
    node: Arc<Node>,
    replica: Arc<Replica>,
    envelope: Envelope,
    frames: Streaming<SnapshotFrame>,
) -> BoxStream<'static, Result<SnapshotProgress, Status>> {
    let (progress, told) = mpsc::channel(4);
    let seed = node.seeds.next();
    let work = async move {
        let mut teller = Teller { progress, received: 0, every: node.settings.install_timeout / 4 };
        let outcome = receive(&node, &replica, &envelope, frames, &mut teller).await;
        let last = outcome.map(|vote| SnapshotProgress {
            received: teller.received,
            answer: Some(codec::encode(&Ballot::from(&vote)).into()),
        });
        // An error only means that the sender is gone.
        drop(teller.progress.send(last).await);
    };
    let work = stream::once(Rt::scope(seed, work)).filter_map(|()| std::future::ready(None));
    stream::select(ReceiverStream::new(told), work).boxed()
}

/// Tells the sender how far it is.
struct Teller {
    progress: Progress,
    received: u32,
    every: Duration,
}

impl Teller {
    fn message(&self) -> Result<SnapshotProgress, Status> {
        Ok(SnapshotProgress { received: self.received, answer: None })
    }

    /// Waits for something that takes its time.
    async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(self.every, work.as_mut()).await {
                Ok(done) => return done,
                Err(_) => drop(self.progress.send(self.message()).await),
            }
        }
    }

    /// One more piece is there. Not worth waiting for room: the next one says more.
    fn piece(&mut self) {
        self.received += 1;
        drop(self.progress.try_send(self.message()));
    }
}

async fn receive(
    node: &Node,
    replica: &Replica,
    envelope: &Envelope,
    mut frames: Streaming<SnapshotFrame>,
    teller: &mut Teller,
) -> Result<Vote, Status> {
    let _permit = teller.meanwhile(node.receives.acquire()).await.expect("never closed");
    let first = frames.next().await.ok_or_else(|| Status::invalid_argument("a snapshot without a header"))??;
    let call = first.header.ok_or_else(|| Status::invalid_argument("a snapshot's first frame without a header"))?;
    let head: SnapshotHead = check_call(envelope, &call).map_err(|status| *status)?;
    let meta = head.manifest.into_meta().map_err(Status::invalid_argument)?;
    let raft = replica.raft().map_err(unavailable)?;
    let vote = Vote::from(head.vote);
    if let Some(higher) = higher_vote(&raft, &vote) {
        // Not a word of it is of use: its leader was succeeded.
        return Ok(higher);
    }
    tracing::info!(?envelope, last = ?meta.last_log_id, "receiving a snapshot");
    let writer = replica.begin_snapshot().map_err(unavailable)?;
    let writer = receive_pieces(writer, &mut frames, teller).await?;
    let snapshot = Snapshot { meta, snapshot: SnapshotData::Received(writer) };
    let installing = raft.install_full_snapshot(vote, snapshot);
    let response = teller.meanwhile(installing).await.map_err(unavailable)?;
    // The leader takes this for a log that is durable up to the snapshot. openraft answers at once if the log holds all of
    // it already, although it may still be on its way to the disk.
    teller.meanwhile(durably(|done| node.store.sync(done))).await.map_err(unavailable)?;
    Ok(response.vote)
}

fn higher_vote(raft: &Raft, vote: &Vote) -> Option<Vote> {
    let mine = raft.metrics().borrow_watched().vote;
    (mine > *vote).then_some(mine)
}

async fn receive_pieces(
    mut writer: SnapshotWriter,
    frames: &mut (impl Stream<Item = Result<SnapshotFrame, Status>> + Unpin),
    teller: &mut Teller,
) -> Result<SnapshotWriter, Status> {
    while let Some(frame) = frames.next().await {
        let frame = frame?;
        if frame.number != teller.received {
            return Err(Status::invalid_argument(format!(
                "piece {} of a snapshot where piece {} belongs",
                frame.number, teller.received
            )));
        }
        if let Some(pieces) = frame.pieces {
            // The number was checked: all of them are there.
            return if pieces == teller.received {
                Ok(writer)
            } else {
                Err(Status::invalid_argument(format!("a snapshot of {pieces} pieces ended after {}", teller.received)))
            };
        }
        check_piece(frame.number, &frame.piece, frame.crc)?;
        if clumsy(Buggify::PieceSlow) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        writer.push(&frame.piece).map_err(unavailable)?;
        teller.piece();
    }
    Err(Status::aborted(format!("a snapshot was cut off after {} pieces", teller.received)))
}

fn check_piece(number: u32, piece: &Bytes, crc: u32) -> Result<(), Status> {
    let expected = checksum::crc(piece);
    if expected == crc {
        return Ok(());
    }
    Err(Status::data_loss(format!(
        "piece {number} of a snapshot has checksum {expected:08x}, but {crc:08x} was sent with it"
    )))
}
