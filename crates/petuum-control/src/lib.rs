//! The control group's state machine and its drivers' decisions.
//!
//! ```text
//!  clients, operators ──┐                        ┌── Driver::proposals ◄── Driver::answer ◄── shards' answers
//!  Leases::expired ─────┤                        │                                              ▲
//!                       ▼                        ▼                                              │
//!                 control group's log ──► Control::apply ──► duties(&Control) ──► Driver::step ──► errands
//! ```
//!
//! [`Control`] is what the group agrees on: the shard map, jobs, tables and each worker's phase. [`duties`] reads from it
//! alone what the shards still have to be told, so that any later leader finishes what an earlier one began (P5).
//! [`Driver`] and [`Leases`] are a leader's soft state: losing them costs repeats and full leases, nothing else.
//!
//! This crate does no I/O, knows no clock, no randomness and no async: time and answers come as arguments. It does not
//! know Raft, gRPC or RocksDB.
//!
//! Reading order: [`command`], [`state`], [`worker`], [`apply`] (with `decision`, `calls`, `membership`),
//! [`answers`], [`status`], [`duty`], [`driver`], [`lease`], [`placement`], [`snapshot`].
//! Tests of one module stand in it; whole stories by rule are in `tests/it`.

pub mod answers;
pub mod apply;
mod calls;
pub mod command;
mod decision;
pub mod driver;
pub mod duty;
pub mod lease;
pub mod limits;
mod membership;
pub mod placement;
pub mod snapshot;
pub mod state;
pub mod status;
pub mod worker;

pub use calls::check_map;
pub use command::{ControlAnswer, ControlCommand, EvictReason, JobSettings};
pub use driver::{Driver, Errand, ErrandId};
pub use duty::{Duty, DutyId, duties};
pub use lease::Leases;
pub use placement::control_members;
pub use snapshot::SnapshotError;
pub use state::{Control, Job, Table, TablePhase};
pub use status::{RegistrationStatus, Standing};
pub use worker::{Phase, Transition, TransitionKind, Worker};
