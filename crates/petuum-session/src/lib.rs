//! A worker's half of the protocol: what it buffers, what it sends in which order, what it may show to a reader.
//!
//! Pure: no network, no async, no clock, no randomness. The client wraps these machines in tasks; a model checker drives
//! the [`Committer`] together with the shards' state machine.
//!
//! ```text
//!  inc ──► UpdateBuffer (one per thread) ──take──► ClockUpdates ──merge──► cut ──► parts per shard       P1
//!                    └────────────┐                     │                            │
//!  get ──► Workspace::lookup ◄────┴─ own writes ◄───────┘                            ▼
//!             ▲         └─ miss ─► requirement ─► read      Committer: one lane per shard               P2-P6
//!             └────────── receive ◄── answer                    next_message ─► shard ─► on_outcome
//! ```
//!
//! Reading order: [`updates`] (buffers, merging, cutting into parts), [`commit`] (sequences, stages, ticks, aborts),
//! [`reads`] (cache, own writes, threads' clocks), [`gate`] (how far a worker may run ahead). Each module has its tests
//! beside it; the properties drive the committer against shards with lost, doubled and late messages, and the workspace
//! against a plain model of a job.

pub mod commit;
pub mod gate;
pub mod reads;
pub mod updates;

pub use commit::{Committer, Counters, Event, SessionStart, Settings, Waiting, WaitingFor};
pub use gate::{MinClocks, may_start};
pub use reads::{CacheSettings, Requirement, RowCache, ThreadClocks, Workspace};
pub use updates::{ClockUpdates, Scalar, UpdateBuffer, ValuesRef, cut};
