//! A node: services, placement, admission limits.
//!
//! ```text
//!            Data.Commit ──▶ gather (one per shard) ──▶ Group::submit ─▶ Raft ─▶ fsync ─▶ ShardMachine::apply
//!  worker ─┤                                                                                │ wakes
//!            Data.Read ────▶ ShardCell::read ◀── parked reads ◀─────────────────────────────┘
//!  worker, operator ─▶ Session, Admin ─▶ control group ─▶ ControlMachine::apply ─▶ driver ─▶ Peer.Propose ─▶ shards
//! ```
//!
//! Reading order: [`settings`], [`node`] (start and stop), [`identity`], `formation` (init, adopt, hello: P21), [`groups`] (the
//! replicas a node holds), [`machine`] (the pure state machines behind consensus), `gather` (P8), `driver` (what
//! the control group's leader does in the shards), `errand`, `services`, `ending`. No rule of the protocol is decided here: those live in
//! petuum-shard and petuum-control.

mod driver;
mod ending;
mod errand;
mod formation;
mod gather;
pub mod groups;
pub mod identity;
mod leases;
pub mod machine;
pub mod node;
mod peers;
mod services;
pub mod settings;
mod shared;
mod watermark;

pub use ending::Stopped;
pub use node::{Node, Parts, SyncMode};
pub use settings::NodeSettings;
