//! Sends a snapshot: a header, then checksummed pieces, then their number. The receiver answers with its progress,
//! also while it waits or installs, so the only deadline is one of silence: a transfer that takes hours is none that
//! failed, and an install that takes long is learnt as the success it is.

use super::{Network, decode};
use crate::peers::Traffic;
use crate::record::{Ballot, Manifest, SnapshotHead};
use crate::snapshot::{Snapshot, SnapshotData};
use crate::types::{Types, Vote};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use openraft::errors::{ErrorSource, NetworkError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{NetSnapshot, RPCOption};
use openraft::raft::SnapshotResponse;
use openraft::{OptionalSend, RPCTypes, StorageError};
use petuum_net::wire::{RaftCall, SnapshotFrame};
use petuum_types::checksum;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};

/// What went wrong with the pieces, if anything: a stream of frames cannot say so itself.
type Broken = Arc<Mutex<Option<petuum_storage::Error>>>;

impl NetSnapshot<Types> for Network {
    type SnapshotData = SnapshotData;

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let (cancel, sending) = (pin!(cancel), pin!(self.send_snapshot(vote, snapshot)));
        match futures::future::select(cancel, sending).await {
            futures::future::Either::Left((closed, _)) => Err(closed.into()),
            futures::future::Either::Right((outcome, _)) => outcome,
        }
    }
}

impl Network {
    async fn send_snapshot(
        &self,
        vote: Vote,
        snapshot: Snapshot,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let SnapshotData::Stored(stored) = snapshot.snapshot else {
            unreachable!("what is sent was read from the store");
        };
        let last = snapshot.meta.last_log_id.map_or(0, |id| id.index);
        // The receiver needs the log from here on, however long this takes.
        let _hold = self.compaction.hold(last);
        let _permit = self.node.sends.acquire().await.expect("never closed");
        tracing::info!(envelope = ?self.envelope, last, bytes = stored.bytes(), "sending a snapshot");
        let head = SnapshotHead { vote: Ballot::from(&vote), manifest: Manifest::from(&snapshot.meta) };
        let broken = Broken::default();
        let frames = frames(self.call(&head), stored, broken.clone());
        let answer = self.exchange(frames).await;
        if let Some(error) = broken.lock().expect("nothing panics while it is held").take() {
            // Ours, not the peer's: what is stored here is damaged.
            let source = ErrorSource::from_error(&error);
            return Err(StorageError::read_snapshot(Some(snapshot.meta.signature()), source).into());
        }
        let vote: Ballot = decode(&answer?)?;
        Ok(SnapshotResponse::new(vote.into()))
    }

    async fn exchange(
        &self,
        frames: impl Stream<Item = SnapshotFrame> + Send + 'static,
    ) -> Result<Bytes, StreamingError<Types>> {
        let unreachable = |reason: String| StreamingError::Unreachable(Unreachable::from_string(reason));
        let silence = self.node.settings.install_timeout;
        let too_silent = |_| StreamingError::Timeout(self.timeout(RPCTypes::InstallSnapshot, silence));
        let mut client = self.client(Traffic::Log).map_err(unreachable)?;
        let opening = client.install_snapshot(self.envelope.request(frames));
        let response = tokio::time::timeout(silence, opening).await.map_err(too_silent)?;
        let mut progress = response.map_err(|status| unreachable(status.to_string()))?.into_inner();
        loop {
            match tokio::time::timeout(silence, progress.next()).await.map_err(too_silent)? {
                Some(Ok(message)) => {
                    if let Some(answer) = message.answer {
                        return Ok(answer);
                    }
                }
                Some(Err(status)) => return Err(unreachable(status.to_string())),
                None => {
                    return Err(NetworkError::from_string("the peer ended a snapshot transfer unanswered").into());
                }
            }
        }
    }
}

fn frame(number: u32, piece: Bytes) -> SnapshotFrame {
    SnapshotFrame { header: None, number, crc: checksum::crc(&piece), piece, pieces: None }
}

/// Header, pieces, end. Pieces are read as the connection takes them; at the first that cannot be read the stream
/// ends without its last frame, which the receiver refuses.
fn frames(
    header: RaftCall,
    stored: petuum_storage::Snapshot,
    broken: Broken,
) -> impl Stream<Item = SnapshotFrame> + Send + 'static {
    let first = SnapshotFrame { header: Some(header), ..frame(0, Bytes::new()) };
    let last = SnapshotFrame { pieces: Some(stored.piece_count()), ..frame(stored.piece_count(), Bytes::new()) };
    let failed = broken.clone();
    let pieces = (0u32..).zip(stored.pieces()).map_while(move |(number, piece)| match piece {
        Ok(piece) => Some(frame(number, piece)),
        Err(error) => {
            *failed.lock().expect("nothing panics while it is held") = Some(error);
            None
        }
    });
    let end = stream::once(async move {
        let whole = broken.lock().expect("nothing panics while it is held").is_none();
        whole.then_some(last)
    });
    stream::iter([first].into_iter().chain(pieces)).chain(end.filter_map(std::future::ready))
}
