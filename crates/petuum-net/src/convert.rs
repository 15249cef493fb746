//! Between wire types and the project's own. Everything from the wire is checked here.

use crate::wire;
use petuum_types::map::{ShardMap, ShardPlace};
use petuum_types::outcome::{Outcome, Reply};
use petuum_types::read::{Read, ReadAnswer};
use petuum_types::{
    Clock, ClusterId, Error, ErrorKind, Generation, Incarnation, Initial, JobId, LogIndex, MapEpoch, NodeId, NonFinite,
    RequestId, RowId, Sequence, ShardId, Staleness, TableId, TableSchema, ValueType, WorkerId, codec, limits,
};
use std::collections::BTreeMap;

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// 16 bytes of a request id.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another length.
pub fn request_id(bytes: &[u8]) -> Result<RequestId, Error> {
    let bytes: [u8; 16] =
        bytes.try_into().map_err(|_| invalid(format!("a request_id of {} bytes; expected 16", bytes.len())))?;
    Ok(RequestId(u128::from_be_bytes(bytes)))
}

/// The wire form of a request id.
#[must_use]
pub fn request_id_bytes(id: RequestId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

/// A cluster id of 32 hexadecimal digits.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for anything else.
pub fn cluster_id(text: &str) -> Result<ClusterId, Error> {
    u128::from_str_radix(text, 16)
        .ok()
        .filter(|_| text.len() == 32)
        .map(ClusterId)
        .ok_or_else(|| invalid(format!("cluster id {text:?}; expected 32 hexadecimal digits")))
}

/// The outcome of a reply on the wire.
#[must_use]
pub fn reply_to_wire(reply: &Reply, min_clock: Clock) -> wire::MessageReply {
    use wire::message_reply::Outcome as Wire;
    let detail = |message: String| wire::Detail { record: codec::encode(&reply.outcome).into(), message };
    let outcome = match &reply.outcome {
        Outcome::Accepted => Wire::Accepted(wire::Accepted {}),
        Outcome::Ticked => Wire::Ticked(wire::Accepted {}),
        Outcome::Refused(refusal) => Wire::Refused(detail(refusal.to_string())),
        Outcome::Retry(retry) => Wire::Retry(detail(retry.to_string())),
        Outcome::Fenced(fence) => Wire::Fenced(detail(fence.to_string())),
    };
    wire::MessageReply {
        shard: reply.shard.0,
        sequence: reply.sequence.0,
        outcome: Some(outcome),
        min_clock: min_clock.0,
    }
}

/// A reply from the wire, with the shard's min clock.
///
/// # Errors
/// [`ErrorKind::Incompatible`] for an outcome this version does not know.
pub fn reply_from_wire(reply: &wire::MessageReply) -> Result<(Reply, Clock), Error> {
    use wire::message_reply::Outcome as Wire;
    let unknown = |what: String| Error::new(ErrorKind::Incompatible, what);
    let outcome = match &reply.outcome {
        Some(Wire::Accepted(_)) => Outcome::Accepted,
        Some(Wire::Ticked(_)) => Outcome::Ticked,
        Some(Wire::Refused(d) | Wire::Retry(d) | Wire::Fenced(d)) => {
            codec::decode(&d.record).map_err(|e| unknown(format!("{} ({e})", d.message)))?
        }
        None => return Err(unknown(format!("shard {} answered an outcome unknown to this version", reply.shard))),
    };
    Ok((Reply { shard: ShardId(reply.shard), sequence: Sequence(reply.sequence), outcome }, Clock(reply.min_clock)))
}

/// A read request for one shard, of any replica.
#[must_use]
pub fn read_to_wire(shard: ShardId, read: &Read, wait_ms: u32) -> wire::ReadRequest {
    wire::ReadRequest {
        format: crate::FORMAT,
        shard: shard.0,
        job: read.job.0,
        generation: read.generation.0,
        epoch: read.epoch.0,
        reader: read.reader.map(|(worker, incarnation)| wire::Reader { worker: worker.0, incarnation: incarnation.0 }),
        table: read.table.0,
        rows: read.rows.iter().map(|row| row.0).collect(),
        min_clock: read.min_clock.0,
        own_clock: read.own_clock.0,
        min_index: read.min_index.0,
        wait_ms,
        latest: false,
    }
}

/// A read request from the wire.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for too many rows.
pub fn read_from_wire(request: &wire::ReadRequest) -> Result<(ShardId, Read), Error> {
    if request.rows.len() > limits::READ_ROWS_MAX {
        let got = request.rows.len();
        return Err(invalid(format!("a read of {got} rows; the limit is {} a request", limits::READ_ROWS_MAX)));
    }
    let read = Read {
        job: JobId(request.job),
        generation: Generation(request.generation),
        epoch: MapEpoch(request.epoch),
        reader: request.reader.map(|r| (WorkerId(r.worker), Incarnation(r.incarnation))),
        table: TableId(request.table),
        rows: request.rows.iter().map(|row| RowId(*row)).collect(),
        min_clock: Clock(request.min_clock),
        own_clock: Clock(request.own_clock),
        min_index: LogIndex(request.min_index),
    };
    Ok((ShardId(request.shard), read))
}

/// Cuts an answer into chunks of about `chunk_bytes`; at least one.
#[must_use]
pub fn chunks_of_answer(answer: &ReadAnswer, chunk_bytes: usize) -> Vec<wire::ReadChunk> {
    let empty = || wire::ReadChunk {
        index: answer.index.0,
        min_clock: answer.min_clock.0,
        own_clock: answer.own_clock.0,
        rows: Vec::new(),
    };
    let mut chunks = vec![empty()];
    let mut room = chunk_bytes;
    for row in &answer.rows {
        let size = row.values.value_type().bytes();
        let mut bytes = Vec::with_capacity(row.values.len() * size);
        row.values.write_le(&mut bytes);
        let mut bytes = bytes::Bytes::from(bytes);
        let mut column = 0usize;
        while !bytes.is_empty() {
            if room < size.max(64) {
                chunks.push(empty());
                room = chunk_bytes;
            }
            let take = bytes.len().min((room / size).max(1) * size);
            let piece = wire::RowChunk {
                row: row.row.0,
                changed: row.changed.0,
                first_column: u32::try_from(column).expect("a row has at most 1,000,000 columns"),
                values: bytes.split_to(take),
            };
            chunks.last_mut().expect("there is a chunk").rows.push(piece);
            room = room.saturating_sub(take + 24);
            column += take / size;
        }
    }
    chunks
}

/// A table's definition on the wire.
#[must_use]
pub fn table_to_wire(schema: &TableSchema, ready: bool) -> wire::TableInfo {
    wire::TableInfo {
        table: schema.id.0,
        job: schema.job.0,
        name: schema.name.clone(),
        width: schema.width,
        value_type: value_type_to_wire(schema.value_type) as i32,
        initial: initial_to_wire(schema.value_type, schema.initial),
        seed: schema.seed,
        non_finite: non_finite_to_wire(schema.non_finite) as i32,
        staleness: schema.staleness.0,
        ready,
    }
}

/// A table's definition from the wire.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for unknown types and impossible definitions.
pub fn table_from_wire(info: &wire::TableInfo) -> Result<TableSchema, Error> {
    let value_type = value_type_from_wire(info.value_type)?;
    let schema = TableSchema {
        id: TableId(info.table),
        job: JobId(info.job),
        name: info.name.clone(),
        width: info.width,
        value_type,
        initial: initial_from_wire(value_type, info.initial.as_ref())?,
        seed: info.seed,
        non_finite: non_finite_from_wire(info.non_finite)?,
        staleness: Staleness(info.staleness),
    };
    schema.validate().map_err(|e| invalid(format!("table {:?}: {e}", info.name)))?;
    Ok(schema)
}

/// A value type on the wire.
#[must_use]
pub const fn value_type_to_wire(value_type: ValueType) -> wire::ValueType {
    match value_type {
        ValueType::F32 => wire::ValueType::F32,
        ValueType::I64 => wire::ValueType::I64,
    }
}

/// A value type from the wire.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another number.
pub fn value_type_from_wire(number: i32) -> Result<ValueType, Error> {
    match wire::ValueType::try_from(number) {
        Ok(wire::ValueType::F32) => Ok(ValueType::F32),
        Ok(wire::ValueType::I64) => Ok(ValueType::I64),
        _ => Err(invalid(format!("value type {number}; expected 1 (f32) or 2 (i64)"))),
    }
}

/// A policy on the wire.
#[must_use]
pub const fn non_finite_to_wire(policy: NonFinite) -> wire::NonFinite {
    match policy {
        NonFinite::Reject => wire::NonFinite::Reject,
        NonFinite::Drop => wire::NonFinite::Drop,
        NonFinite::Accept => wire::NonFinite::Accept,
    }
}

/// A policy from the wire.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for another number.
pub fn non_finite_from_wire(number: i32) -> Result<NonFinite, Error> {
    match wire::NonFinite::try_from(number) {
        Ok(wire::NonFinite::Reject) => Ok(NonFinite::Reject),
        Ok(wire::NonFinite::Drop) => Ok(NonFinite::Drop),
        Ok(wire::NonFinite::Accept) => Ok(NonFinite::Accept),
        Err(_) => Err(invalid(format!("non-finite policy {number}; expected 0 (reject), 1 (drop) or 2 (accept)"))),
    }
}

fn f32_of(bits: u64) -> f64 {
    f64::from(f32::from_bits(u32::try_from(bits).unwrap_or(f32::NAN.to_bits())))
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is what is meant")]
fn bits_of(value: f64) -> u64 {
    u64::from((value as f32).to_bits())
}

/// Initial values on the wire; zeros are absent.
#[must_use]
pub fn initial_to_wire(value_type: ValueType, initial: Initial) -> Option<wire::Initial> {
    use wire::initial::Kind;
    let kind = match (value_type, initial) {
        (_, Initial::Zero) => return None,
        (ValueType::F32, Initial::Constant(v)) => Kind::ConstantF32(f32_of(v)),
        (ValueType::I64, Initial::Constant(v)) => Kind::ConstantI64(v.cast_signed()),
        (ValueType::F32, Initial::Uniform { low, high }) => {
            Kind::UniformF32(wire::UniformF32 { low: f32_of(low), high: f32_of(high) })
        }
        (ValueType::I64, Initial::Uniform { low, high }) => {
            Kind::UniformI64(wire::UniformI64 { low: low.cast_signed(), high: high.cast_signed() })
        }
        (_, Initial::Normal { mean, deviation }) => {
            Kind::NormalF32(wire::NormalF32 { mean: f32_of(mean), deviation: f32_of(deviation) })
        }
    };
    Some(wire::Initial { kind: Some(kind) })
}

/// Initial values from the wire; absent means zeros.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] if they are of another type than the table's.
pub fn initial_from_wire(value_type: ValueType, initial: Option<&wire::Initial>) -> Result<Initial, Error> {
    use wire::initial::Kind;
    let Some(kind) = initial.and_then(|i| i.kind.as_ref()) else { return Ok(Initial::Zero) };
    match (value_type, kind) {
        (ValueType::F32, Kind::ConstantF32(v)) => Ok(Initial::Constant(bits_of(*v))),
        (ValueType::I64, Kind::ConstantI64(v)) => Ok(Initial::Constant(v.cast_unsigned())),
        (ValueType::F32, Kind::UniformF32(u)) => Ok(Initial::Uniform { low: bits_of(u.low), high: bits_of(u.high) }),
        (ValueType::I64, Kind::UniformI64(u)) => {
            Ok(Initial::Uniform { low: u.low.cast_unsigned(), high: u.high.cast_unsigned() })
        }
        (ValueType::F32, Kind::NormalF32(n)) => {
            Ok(Initial::Normal { mean: bits_of(n.mean), deviation: bits_of(n.deviation) })
        }
        (value_type, kind) => Err(invalid(format!("initial values {kind:?} for a table of {value_type}"))),
    }
}

/// The shard map on the wire.
#[must_use]
pub fn map_to_wire(
    cluster: ClusterId,
    map: &ShardMap,
    control_leader: Option<NodeId>,
    leader_of: impl Fn(ShardId) -> Option<NodeId>,
) -> wire::ClusterMap {
    let number = |node: Option<NodeId>| node.map_or(0, |n| n.0);
    wire::ClusterMap {
        cluster: cluster.to_string(),
        epoch: map.epoch.0,
        nodes: map.nodes.iter().map(|(n, a)| wire::NodeAddress { node: n.0, address: a.clone() }).collect(),
        shards: map
            .shards
            .iter()
            .map(|(shard, place)| wire::ShardPlace {
                shard: shard.0,
                first_slot: u32::from(place.slots.start),
                end_slot: u32::from(place.slots.end),
                replicas: place.replicas.iter().map(|n| n.0).collect(),
                leader: number(leader_of(*shard)),
            })
            .collect(),
        control_leader: number(control_leader),
    }
}

/// A shard map from the wire, checked, with who leads what.
#[derive(Clone, Debug)]
pub struct KnownMap {
    /// The cluster.
    pub cluster: ClusterId,
    /// The map.
    pub map: ShardMap,
    /// Leaders the answering node knew.
    pub leaders: BTreeMap<ShardId, NodeId>,
    /// The control group's leader, if it knew one.
    pub control_leader: Option<NodeId>,
}

/// Reads a shard map.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a map with holes or unknown nodes.
pub fn map_from_wire(wire: &wire::ClusterMap) -> Result<KnownMap, Error> {
    let slot = |n: u32| u16::try_from(n).map_err(|_| invalid(format!("slot {n} in a shard map")));
    let mut shards = BTreeMap::new();
    let mut leaders = BTreeMap::new();
    for place in &wire.shards {
        let shard = ShardId(place.shard);
        let slots = slot(place.first_slot)?..slot(place.end_slot)?;
        shards.insert(shard, ShardPlace { slots, replicas: place.replicas.iter().map(|n| NodeId(*n)).collect() });
        if place.leader != 0 {
            leaders.insert(shard, NodeId(place.leader));
        }
    }
    let nodes = wire.nodes.iter().map(|n| (NodeId(n.node), n.address.clone())).collect();
    let map = ShardMap { epoch: MapEpoch(wire.epoch), nodes, shards };
    map.validate().map_err(|e| invalid(format!("a shard map from the server: {e}")))?;
    let control_leader = (wire.control_leader != 0).then_some(NodeId(wire.control_leader));
    Ok(KnownMap { cluster: cluster_id(&wire.cluster)?, map, leaders, control_leader })
}

#[cfg(test)]
mod tests;
