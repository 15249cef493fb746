//! The pure state machines behind consensus: each in a cell that services read and that apply changes.

mod control;
mod shard;

pub use control::{ControlCell, ControlMachine};
pub use shard::{ReadFailure, ShardCell, ShardMachine};
