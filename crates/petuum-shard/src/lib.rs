//! The shard state machine: tables, staging, clocks, sessions and reads of one shard, as one replica has them.
//!
//! ```text
//!   log entry ──▶ Shard::apply ──▶ answers            read ──▶ Shard::read ──▶ rows │ wait │ refusal
//!                    │                                              ▲                  │
//!                    ├─ messages: admission ▶ stage ▶ tick ▶ table  │   ParkedReads ◀──┘  looked at again after
//!                    └─ commands: command, transition               └───────┘             every change (P11)
//!   Shard::view ──▶ View::pieces ──▶ bytes ──▶ Restore ──▶ an equal Shard
//! ```
//!
//! Pure: no async, no I/O, no clock, no randomness; `Clone + Hash + Eq`, so that a model checker can drive it. What is
//! not here: who leads, what an entry costs on disk, and which commands are sent when (petuum-control decides that).
//!
//! Invariants:
//! * Replicas that applied the same entries are equal bit by bit, whatever each was restored from (G6).
//! * A min clock never falls, and a worker's clock advances only together with all its updates of that clock (G3).
//! * Reads change nothing (P13). No input panics: what a client or driver sends wrong is answered.
//!
//! Reading order: [`shard`] (what can be asked), `job` and `member` (what a shard keeps of a worker), `admission` (who may
//! speak, and in which order: P4), `stage` (P2), `tick` (P3), `transition` (P5, P15), `command`, `table`, [`read`] (P10),
//! [`parked`] (P11), [`checksum`] and [`marks`] (G6), [`snapshot`], [`status`]. Tests of rules and schedules are in `tests/it`.

mod admission;
pub mod checksum;
mod command;
mod defect;
mod job;
pub mod marks;
mod member;
pub mod parked;
pub mod read;
pub mod settings;
pub mod shard;
pub mod snapshot;
mod stage;
pub mod status;
mod table;
mod tick;
mod transition;

pub use checksum::Checksums;
pub use marks::MARK_INTERVAL;
pub use parked::{Full, ParkLimit, ParkedReads};
pub use read::ReadOutcome;
pub use settings::Settings;
pub use shard::{Applied, Shard};
pub use snapshot::{Damaged, Restore, View};
pub use status::{TableStatus, WorkerStatus};
