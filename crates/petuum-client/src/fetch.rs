//! Rows of one shard from its replicas: first the one believed to lead, then, if it does not answer soon, the others too.
//!
//! A read that any replica may answer (P10) goes to whichever is first; the latest rows (P12) come from the leader alone,
//! and a replica that does not lead names it.

use crate::cluster::Cluster;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petuum_chaos::{Buggify, clumsy};
use petuum_net::candidates::Candidates;
use petuum_net::convert;
use petuum_net::status::{from_status, leader_hint};
use petuum_net::wire;
use petuum_net::wire::data_client::DataClient;
use petuum_types::map::ShardMap;
use petuum_types::read::{Read, ReadAnswer, RowAnswer};
use petuum_types::{Clock, Error, ErrorKind, LogIndex, NodeId, RowId, ShardId, TableSchema, ValueType, Values, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The longest one replica is asked to hold a read; a replica that died silently is left after it.
const HELD_MAX: Duration = Duration::from_secs(10);

/// What is asked of a shard.
pub(crate) struct Ask<'a> {
    pub(crate) shard: ShardId,
    pub(crate) read: &'a Read,
    /// Type of the rows' values.
    pub(crate) value_type: ValueType,
    /// Only the leader may answer, with everything acknowledged before it was asked (P12).
    pub(crate) latest: bool,
}

/// How many rows of a table one request may ask for. Only what one request asks for is of one applied index (P12).
pub(crate) fn rows_per_request(schema: &TableSchema) -> usize {
    (limits::READ_BYTES_MAX / (schema.row_bytes() + 64)).clamp(1, limits::READ_ROWS_MAX)
}

/// The answer of whichever replica gives one first, and which that was. `believed` is asked first.
///
/// # Errors
/// What the state says ([`ErrorKind::NotFound`], fences), or [`ErrorKind::DeadlineExceeded`] naming the shard and what the
/// last replica said.
pub(crate) async fn fetch(
    cluster: &Cluster,
    map: &ShardMap,
    believed: Option<NodeId>,
    ask: &Ask<'_>,
) -> Result<(ReadAnswer, NodeId), Error> {
    let begin = Instant::now();
    let deadline = cluster.options.deadline;
    let mut believed = believed;
    loop {
        let held = deadline.saturating_sub(begin.elapsed()).min(HELD_MAX);
        let replicas = &map.shards[&ask.shard].replicas;
        let elsewhere = || replicas.iter().copied().rev().find(|node| Some(*node) != believed);
        let first = if clumsy(Buggify::ReadElsewhere) { elsewhere() } else { believed };
        let mut order = Candidates::new(replicas.iter().copied(), first);
        match round(cluster, map, &mut order, ask, held).await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) if begin.elapsed() >= deadline => {
                let waited = begin.elapsed();
                let message = format!("waited {waited:.1?} for {} to answer a read; last: {error}", ask.shard);
                return Err(Error::new(ErrorKind::DeadlineExceeded, message));
            }
            Err(_) => tokio::time::sleep(cluster.pause()).await,
        }
        believed = order.named().or(believed);
    }
}

/// Whether no replica can answer otherwise. A replica that lost its disk or fails in itself speaks for itself only.
const fn is_final(error: &Error) -> bool {
    let own = matches!(error.kind(), ErrorKind::NotInitialized | ErrorKind::Storage | ErrorKind::Internal);
    !error.is_retryable() && !own
}

/// Asks every replica once, the next as soon as one fails or the hedge is due; the first answer counts.
async fn round(
    cluster: &Cluster,
    map: &ShardMap,
    order: &mut Candidates,
    ask: &Ask<'_>,
    held: Duration,
) -> Result<(ReadAnswer, NodeId), Error> {
    let mut asked = FuturesUnordered::new();
    let mut last = Error::new(ErrorKind::Unavailable, format!("{} has no replica", ask.shard));
    asked.extend(order.take().map(|first| ask_one(cluster, map, first, ask, held)));
    while !asked.is_empty() {
        let hedge = timeout(cluster.options.hedge_after, asked.next());
        let answer = if order.is_empty() { asked.next().await } else { hedge.await.ok().flatten() };
        match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err((error, _))) if is_final(&error) => return Err(error),
            Some(Err((error, hint))) => {
                last = error;
                if let Some(leader) = hint.filter(|_| ask.latest) {
                    order.name(leader);
                }
            }
            None => {}
        }
        asked.extend(order.take().map(|node| ask_one(cluster, map, node, ask, held)));
    }
    Err(last)
}

/// What one replica answers, or why it does not and whom it takes for the leader.
async fn ask_one(
    cluster: &Cluster,
    map: &ShardMap,
    node: NodeId,
    ask: &Ask<'_>,
    held: Duration,
) -> Result<(ReadAnswer, NodeId), (Error, Option<NodeId>)> {
    let own = |error: Error| (error.context(node), None);
    let channel = Cluster::address(map, node).and_then(|address| cluster.channel(address)).map_err(own)?;
    let mut client = DataClient::new(channel).max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
    let wait_ms = u32::try_from(held.as_millis()).unwrap_or(u32::MAX);
    let request = wire::ReadRequest { latest: ask.latest, ..convert::read_to_wire(ask.shard, ask.read, wait_ms) };
    let refused = |status| (from_status(&status).context(node), leader_hint(&status).map(|hint| hint.node));
    let answer = async {
        let mut chunks = client.read(request).await.map_err(refused)?.into_inner();
        let mut assembly = Assembly::new(ask.read, ask.value_type);
        while let Some(chunk) = chunks.message().await.map_err(refused)? {
            assembly.push(&chunk).map_err(own)?;
        }
        Ok((assembly.finish().map_err(own)?, node))
    };
    match timeout(held + Duration::from_secs(1), answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let message = format!("{node} did not answer a read within {held:?}");
            Err((Error::new(ErrorKind::Unavailable, message), None))
        }
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

pub(crate) fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Incompatible, format!("a server answered a read with {what}"))
}
