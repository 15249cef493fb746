//! Raft groups: openraft over the shared log and the peers' connections.
//!
//! The only crate that names openraft. A group replicates a [`Machine`], of which this crate knows nothing else.
//!
//! ```text
//!          propose                                                       peers
//!             │                                                            ▲ two connections each,
//!             ▼                                                            │ shared by all groups
//!  Group ─► supervisor ─► openraft ─┬─► network: append · votes · transfer ┘
//!                           ▲       ├─► log ────────────┐
//!        peers ─► RaftRpc ──┘       └─► state ─► Machine │
//!                                        │ snapshot     ▼
//!                                        └──────────► petuum-storage (one WAL, one syncer for all groups)
//! ```
//!
//! What it promises beyond openraft: an entry's bytes are encoded once and stored and sent in that form (`frame`);
//! a group that openraft gave up is rebuilt ([`GroupStatus::failure`] says why, meanwhile); snapshots are moved by
//! progress, not against the clock; everything that waits is bounded. Nothing here reads wall time, and all randomness
//! comes from [`Parts::seed`], so the simulator runs exactly this.
//!
//! Reading order: [`machine`], `types`, `runtime`, `record` and `frame` (what is stored and sent), `log`, `recent`, `state`,
//! `snapshot`, `compaction`, `peers`, `network`, `rpc`, `supervisor`, [`Group`], [`Consensus`]. Tests: inline, openraft's
//! own conformance suite in `suite`, and clusters over TCP in `tests/`.

mod compaction;
mod consensus;
mod error;
mod frame;
mod group;
mod log;
pub mod machine;
mod network;
mod node;
mod peers;
mod recent;
mod record;
mod rpc;
mod runtime;
mod settings;
mod snapshot;
mod state;
mod status;
mod stored;
#[cfg(test)]
mod suite;
mod supervisor;
mod types;

pub use consensus::{Consensus, Parts};
pub use error::{Error, MachineError, ProposeError};
pub use group::Group;
pub use machine::{Machine, MachineFactory, SnapshotView};
pub use rpc::RaftRpc;
pub use settings::Settings;
pub use status::{GroupStatus, Role};
pub use stored::{StoredPosition, stored_position};
