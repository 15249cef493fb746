//! Reads from any replica (P10): first the one believed to lead, then, if it does not answer soon, the others too.

use super::core::Core;
use crate::cluster::Cluster;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petuum_net::convert;
use petuum_net::status::from_status;
use petuum_net::wire;
use petuum_net::wire::data_client::DataClient;
use petuum_types::read::{Read, ReadAnswer, RowAnswer};
use petuum_types::{Clock, Error, ErrorKind, LogIndex, NodeId, RowId, ShardId, TableId, ValueType, Values, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The longest one replica is asked to hold a read; a replica that died silently is left after it.
const HELD_MAX: Duration = Duration::from_secs(10);

/// One shard's part of a read, from whichever replica answers first.
///
/// # Errors
/// What the state says ([`ErrorKind::NotFound`], fences), or [`ErrorKind::DeadlineExceeded`] naming the shard and what the
/// last replica said.
pub(super) async fn read(core: &Core, shard: ShardId, read: &Read, value_type: ValueType) -> Result<ReadAnswer, Error> {
    let begin = Instant::now();
    let options = &core.cluster.options;
    loop {
        let left = options.deadline.saturating_sub(begin.elapsed());
        match round(core, shard, read, value_type, left.min(HELD_MAX)).await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) if begin.elapsed() >= options.deadline => {
                let waited = begin.elapsed();
                let message = format!("waited {waited:.1?} for {shard} to answer a read; last: {error}");
                return Err(Error::new(ErrorKind::DeadlineExceeded, message));
            }
            Err(_) => tokio::time::sleep(core.cluster.pause()).await,
        }
    }
}

/// Whether no replica can answer otherwise. A replica that lost its disk or fails in itself speaks for itself only.
const fn is_final(error: &Error) -> bool {
    let own = matches!(error.kind(), ErrorKind::NotInitialized | ErrorKind::Storage | ErrorKind::Internal);
    !error.is_retryable() && !own
}

/// Asks every replica once, the next as soon as one fails or the hedge is due; the first answer counts.
async fn round(
    core: &Core,
    shard: ShardId,
    read: &Read,
    value_type: ValueType,
    held: Duration,
) -> Result<ReadAnswer, Error> {
    let mut next = replicas(core, shard).into_iter();
    let mut asked = FuturesUnordered::new();
    let mut last = Error::new(ErrorKind::Unavailable, format!("{shard} has no replica"));
    if let Some(first) = next.next() {
        asked.push(ask(core, first, shard, read, value_type, held));
    }
    while !asked.is_empty() {
        let hedge = timeout(core.cluster.options.hedge_after, asked.next());
        let answer = if next.len() > 0 { hedge.await.ok().flatten() } else { asked.next().await };
        match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) if is_final(&error) => return Err(error),
            Some(Err(error)) => last = error,
            None => {}
        }
        if let Some(node) = next.next() {
            asked.push(ask(core, node, shard, read, value_type, held));
        }
    }
    Err(last)
}

/// The replicas of a shard, the believed leader first.
fn replicas(core: &Core, shard: ShardId) -> Vec<NodeId> {
    let leader = core.lock().routes[&shard].node;
    let mut nodes = core.map.shards[&shard].replicas.clone();
    nodes.sort_by_key(|node| *node != leader);
    nodes
}

async fn ask(
    core: &Core,
    node: NodeId,
    shard: ShardId,
    read: &Read,
    value_type: ValueType,
    held: Duration,
) -> Result<ReadAnswer, Error> {
    let channel = core.cluster.channel(Cluster::address(&core.map, node)?)?;
    let mut client = DataClient::new(channel).max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
    let wait_ms = u32::try_from(held.as_millis()).unwrap_or(u32::MAX);
    let request = convert::read_to_wire(shard, read, wait_ms);
    let answer = async {
        let mut chunks = client.read(request).await.map_err(|s| from_status(&s))?.into_inner();
        let mut assembly = Assembly::new(read, value_type);
        while let Some(chunk) = chunks.message().await.map_err(|s| from_status(&s))? {
            assembly.push(&chunk)?;
        }
        assembly.finish()
    };
    match timeout(held + Duration::from_secs(1), answer).await {
        Ok(answer) => answer.map_err(|e| e.context(node)),
        Err(_) => Err(Error::new(ErrorKind::Unavailable, format!("{node} did not answer a read within {held:?}"))),
    }
}

/// Puts an answer together from its chunks; nothing in them is believed before it fits.
struct Assembly<'a> {
    read: &'a Read,
    value_type: ValueType,
    head: Option<(LogIndex, Clock, Clock)>,
    rows: Vec<(RowId, LogIndex, Vec<u8>)>,
}

impl<'a> Assembly<'a> {
    const fn new(read: &'a Read, value_type: ValueType) -> Self {
        Self { read, value_type, head: None, rows: Vec::new() }
    }

    fn push(&mut self, chunk: &wire::ReadChunk) -> Result<(), Error> {
        let head = (LogIndex(chunk.index), Clock(chunk.min_clock), Clock(chunk.own_clock));
        if *self.head.get_or_insert(head) != head {
            return Err(malformed("chunks of different log indices"));
        }
        for piece in &chunk.rows {
            let row = RowId(piece.row);
            let size = self.value_type.bytes();
            match self.rows.last_mut() {
                Some((last, _, bytes)) if *last == row && piece.first_column as usize * size == bytes.len() => {
                    bytes.extend_from_slice(&piece.values);
                }
                _ if piece.first_column == 0 => {
                    self.rows.push((row, LogIndex(piece.changed), piece.values.to_vec()));
                }
                _ => return Err(malformed("a piece of a row without the columns before it")),
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<ReadAnswer, Error> {
        let (index, min_clock, own_clock) = self.head.ok_or_else(|| malformed("no chunk"))?;
        let asked = self.read.rows.iter().copied();
        if !asked.eq(self.rows.iter().map(|(row, _, _)| *row)) {
            return Err(malformed("other rows than were asked for"));
        }
        let rows = self.rows.into_iter().map(|(row, changed, bytes)| {
            let values = Values::read_le(self.value_type, &bytes).ok_or_else(|| malformed("a broken value"))?;
            Ok(RowAnswer { row, changed, values: Arc::new(values) })
        });
        Ok(ReadAnswer { index, min_clock, own_clock, rows: rows.collect::<Result<_, Error>>()? })
    }
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Incompatible, format!("a server answered a read with {what}"))
}

/// Waits until a shard's min clock has reached `clock`, and notes it.
pub(super) async fn min_clock(core: &Core, shard: ShardId, clock: Clock) -> Result<(), Error> {
    let wait = Read {
        job: core.job,
        generation: core.registration.generation,
        epoch: core.map.epoch,
        reader: Some((core.registration.worker, core.registration.incarnation)),
        table: TableId(0),
        rows: Vec::new(),
        min_clock: clock,
        own_clock: Clock::ZERO,
        min_index: LogIndex(0),
    };
    let answer = read(core, shard, &wait, ValueType::I64).await?;
    core.lock().min_clocks.note_min_clock(shard, answer.min_clock);
    Ok(())
}
