//! Tests of the committer: golden traces per rule, and random worlds that lose, double and re-order.

mod abort;
mod fake;
mod rules;
mod world;

use super::*;
use bytes::Bytes;
use petuum_types::message::WorkerMessage;
use petuum_types::{Clock, Generation, Incarnation, JobId, MapEpoch, ShardId, Staleness, WorkerId};
use std::collections::BTreeMap;

fn session(shards: u32, start: u64) -> SessionStart {
    SessionStart {
        job: JobId(1),
        generation: Generation(1),
        worker: WorkerId(2),
        incarnation: Incarnation(3),
        epoch: MapEpoch(1),
        shards: (0..shards).map(ShardId).collect(),
        start: Clock(start),
    }
}

fn committer(shards: u32, staleness: u32) -> Committer {
    Committer::new(session(shards, 0), Settings::new(Staleness(staleness)))
}

/// Parts of `bytes` bytes each, so many per shard.
fn parts(counts: &[(u32, usize)]) -> BTreeMap<ShardId, Vec<Bytes>> {
    sized(counts, 4)
}

fn sized(counts: &[(u32, usize)], bytes: usize) -> BTreeMap<ShardId, Vec<Bytes>> {
    counts.iter().map(|(shard, count)| (ShardId(*shard), vec![Bytes::from(vec![b'p'; bytes]); *count])).collect()
}

fn line(shard: ShardId, message: &WorkerMessage) -> String {
    let WorkerMessage { kind, sequence, clock, count, acked_below, .. } = message;
    format!("{} #{} {kind:?} c{} n{count} <{}", shard.0, sequence.0, clock.0, acked_below.0)
}

/// All messages that can be sent now, shard by shard.
fn drain(committer: &mut Committer) -> Vec<String> {
    let shards = committer.start.shards.clone();
    let mut lines = Vec::new();
    for shard in shards {
        while let Some(message) = committer.next_message(shard) {
            lines.push(line(shard, &message));
        }
    }
    lines
}
