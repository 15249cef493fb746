//! What a shard answers to a worker's message (P4): the whole list, so that no layer invents another.

use crate::{Clock, Generation, Incarnation, MapEpoch, NodeId, RowId, Sequence, ShardId, TableId, ValueType};
use serde::{Deserialize, Serialize};

/// A shard's answer to one worker message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Taken, now or before; its effect is durable.
    Accepted,
    /// The same incarnation has already ticked this clock here: go on to the remaining ticks.
    Ticked,
    /// Decided in apply: final, the sequence is consumed, and a repeat is refused again.
    Refused(Refusal),
    /// Not applied; the worker may send again as the reason says.
    Retry(Retry),
    /// Final for this incarnation: it never speaks again.
    Fenced(Fence),
}

/// Why a message was refused for good.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No such table.
    #[error("{table} is unknown: no such table was created")]
    UnknownTable {
        /// The table named by the part.
        table: TableId,
    },
    /// The table was dropped, or belongs to another job.
    #[error("{table} was dropped or belongs to another job")]
    ForeignTable {
        /// The table named by the part.
        table: TableId,
    },
    /// Values of the wrong type.
    #[error("{table}, {row}: expected values of type {expected}, got {got}")]
    WrongType {
        /// The table.
        table: TableId,
        /// The section's first row.
        row: RowId,
        /// The table's type.
        expected: ValueType,
        /// The part's type.
        got: ValueType,
    },
    /// Columns past the table's width.
    #[error("{table}, {row}: columns {first}..{end}; expected columns below the table's width {width}")]
    Column {
        /// The table.
        table: TableId,
        /// The section's first row.
        row: RowId,
        /// First column.
        first: u32,
        /// One past the last.
        end: u64,
        /// The table's width.
        width: u32,
    },
    /// A NaN or infinity under the policy `reject`.
    #[error("{table}, {row}, column {column}: a NaN or infinite update; the table rejects them")]
    NonFinite {
        /// The table.
        table: TableId,
        /// The row.
        row: RowId,
        /// The column.
        column: u32,
    },
    /// A row whose slot this shard does not own at this epoch.
    #[error("{table}, {row} does not belong to this shard at this map epoch")]
    WrongShard {
        /// The table.
        table: TableId,
        /// The row.
        row: RowId,
    },
    /// The payload is no part.
    #[error("a malformed part: {0}")]
    Malformed(String),
    /// More staged bytes than a worker may keep in a shard.
    #[error("staging {bytes} bytes in this shard; the limit is {limit} bytes per worker and shard")]
    StagedBytes {
        /// With this part.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A tick for a clock of which the shard does not hold as many parts as the tick says.
    #[error("a tick of {clock} names {expected} parts; {held} are staged here")]
    MissingParts {
        /// The clock.
        clock: Clock,
        /// As the tick says.
        expected: u32,
        /// As staged.
        held: u32,
    },
    /// A tick of another clock than the next.
    #[error("a tick of {got}; the next to tick here is {expected}")]
    ClockOrder {
        /// The worker's clock here.
        expected: Clock,
        /// The tick's.
        got: Clock,
    },
}

/// Why a message was not applied, and what makes it so.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Retry {
    /// This replica does not lead; send the same bytes to the leader.
    #[error("this replica does not lead{}", .leader.map(|n| format!("; {n} does")).unwrap_or_default())]
    NotLeader {
        /// Who does, if known.
        leader: Option<NodeId>,
    },
    /// The replica has not heard of the job or the incarnation yet; send the same bytes again.
    #[error("the worker's registration has not arrived here yet")]
    Unregistered,
    /// The shard's map is older than the message's; send the same bytes again.
    #[error("this shard is at {ours}; the message is of a later map")]
    ShardBehind {
        /// The shard's epoch.
        ours: MapEpoch,
    },
    /// The message's map is old; fetch the map and cut again (P25).
    #[error("this shard is at {ours}; the message is of an older map")]
    MapBehind {
        /// The shard's epoch.
        ours: MapEpoch,
    },
    /// Not the next sequence; go on from the expected one.
    #[error("expected {expected}")]
    Gap {
        /// The next sequence.
        expected: Sequence,
    },
    /// A limit, for now.
    #[error("over a limit, try again: {0}")]
    Busy(String),
    /// The proposal was given up after it was sent: it may or may not be applied; the same bytes find out.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
}

/// Why an incarnation may never speak again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Fence {
    /// Another process registered as the same worker.
    #[error("replaced: {by} has registered as this worker")]
    Replaced {
        /// The successor.
        by: Incarnation,
    },
    /// The worker was removed from the job.
    #[error("removed from the job at {at}")]
    Removed {
        /// Its clock everywhere.
        at: Clock,
    },
    /// The job was restored or rolled back.
    #[error("the job is at {current}")]
    OldGeneration {
        /// The job's generation.
        current: Generation,
    },
}

/// One message's answer as it travels back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The shard that answered.
    pub shard: ShardId,
    /// The message's sequence.
    pub sequence: Sequence,
    /// The answer.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    /// Answers are part of snapshots and of the wire: bytes of an older version must mean the same for ever.
    #[test]
    fn golden_bytes_of_every_outcome() {
        let (table, row) = (TableId(3), RowId(300));
        let refused = [
            Refusal::UnknownTable { table },
            Refusal::ForeignTable { table },
            Refusal::WrongType { table, row, expected: ValueType::F32, got: ValueType::I64 },
            Refusal::Column { table, row, first: 7, end: 12, width: 10 },
            Refusal::NonFinite { table, row, column: 4 },
            Refusal::WrongShard { table, row },
            Refusal::Malformed("short".to_owned()),
            Refusal::StagedBytes { bytes: 9, limit: 8 },
            Refusal::MissingParts { clock: Clock(5), expected: 2, held: 1 },
            Refusal::ClockOrder { expected: Clock(5), got: Clock(6) },
        ];
        let retried = [
            Retry::NotLeader { leader: None },
            Retry::NotLeader { leader: Some(NodeId(2)) },
            Retry::Unregistered,
            Retry::ShardBehind { ours: MapEpoch(1) },
            Retry::MapBehind { ours: MapEpoch(2) },
            Retry::Gap { expected: Sequence(9) },
            Retry::Busy("b".to_owned()),
            Retry::Unknown("u".to_owned()),
        ];
        let fenced = [
            Fence::Replaced { by: Incarnation(7) },
            Fence::Removed { at: Clock(8) },
            Fence::OldGeneration { current: Generation(2) },
        ];
        let outcomes = [Outcome::Accepted, Outcome::Ticked].into_iter();
        let outcomes = outcomes.chain(refused.map(Outcome::Refused)).chain(retried.map(Outcome::Retry));
        let outcomes: Vec<Outcome> = outcomes.chain(fenced.map(Outcome::Fenced)).collect();
        let hex = |outcome: &Outcome| codec::encode(outcome).iter().map(|b| format!("{b:02x}")).collect::<String>();
        let golden = [
            "0100",
            "0101",
            "01020003",
            "01020103",
            "01020203fb2c010001",
            "01020303fb2c01070c0a",
            "01020403fb2c0104",
            "01020503fb2c01",
            "0102060573686f7274",
            "0102070908",
            "010208050201",
            "0102090506",
            "01030000",
            "0103000102",
            "010301",
            "01030201",
            "01030302",
            "01030409",
            "0103050162",
            "0103060175",
            "01040007",
            "01040108",
            "01040202",
        ];
        assert_eq!(outcomes.iter().map(hex).collect::<Vec<_>>(), golden);
        for outcome in outcomes {
            assert_eq!(codec::decode::<Outcome>(&codec::encode(&outcome)).unwrap(), outcome);
        }
    }
}
