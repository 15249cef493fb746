//! Words, records and limits that every part of Petuum shares.
//!
//! This crate knows no network, no disk, no async and no clock. Reading order: [`ids`], [`slot`], [`map`], [`schema`],
//! [`part`] (the bytes of a clock's updates), [`message`] (what a worker sends to a shard), [`command`] (what the
//! control group sends to a shard), [`entry`] (what a shard's log holds), [`outcome`] (what a shard answers),
//! [`limits`], [`codec`], [`error`].

pub mod checksum;
pub mod codec;
pub mod command;
pub mod entry;
pub mod error;
pub mod ids;
pub mod limits;
pub mod map;
pub mod message;
pub mod outcome;
pub mod part;
pub mod read;
pub mod schema;
pub mod slot;
pub mod values;

pub use error::{Error, ErrorKind};
pub use ids::{
    Clock, ClusterId, Generation, GroupId, Incarnation, JobId, LogIndex, MapEpoch, NodeId, RequestId, RowId, Sequence,
    ShardId, Staleness, TableId, WorkerId,
};
pub use schema::{Initial, NonFinite, TableSchema, ValueType};
pub use slot::Slot;
pub use values::Values;
