//! A model check of the commit protocol: the real state machines of shard, control group and session, under every order
//! of delayed, repeated, re-ordered and lost messages that the bounds allow.
//!
//! ```text
//!  session.rs  Committer ──Message──►            ┌──────────► Shard      replica.rs
//!                 ▲                  network     │              │
//!                 └───────Reply──────(world.rs)──┤◄─────────────┘
//!                                                │
//!  lease, restart ──Register, Evict──►           └──Errand── Driver ◄──► Control
//! ```
//! Two shards, two workers, one control group. A message that arrives at a shard is an entry of its log: a group of
//! replicas is one state machine here, and what is on its way may be on a wire or in a log. Each worker reads all rows
//! before each clock and adds to them what says which process of which worker made it in which clock.
//!
//! Checked in every state: G2 (each clock of each worker once, of one process, in all shards or none; nothing
//! acknowledged lost), G3 (clocks never go back and move only with their updates; a tick proves that every shard holds
//! its parts), G4 (what the min clock promises to a reader is in the rows, and nothing is added below it later), G7
//! (nothing of a fenced incarnation takes effect), that no driver's command or tick is refused, and that where nothing
//! more can happen everybody is done. Every step uses up something (a packet, a clock, a fault), so that every way ends
//! in such a state, and nobody is stuck for ever.
//!
//! What keeps the number of states down, and why nothing is lost by it, stands with each: `session` (a client sends at
//! once what it may send), `steps` (losses that are delays; packets nobody will look at), `replica` (log indices), and
//! `bounds` (answers that take no time, in some models). States are told apart by 64-bit fingerprints; at 10^7 states two
//! share one with a chance of 10^-6.
//!
//! Not here: replication, storage, snapshots (the simulator has them); refused parts and aborts (petuum-session's tests);
//! P24, P25.
//!
//! Reading order: `bounds`, `suites`, `world`, `steps`, `effects`, `oracle`, `check`; then `machines` with `results`,
//! `session`, `replica`, `job`, `packet`, `intern`.

mod bounds;
mod check;
mod effects;
mod intern;
mod job;
mod machines;
mod oracle;
mod packet;
mod replica;
mod results;
mod session;
mod steps;
mod suites;
#[cfg(test)]
mod tests;
mod world;

pub use bounds::{ATTEMPTS_MAX, Bounds, CLOCKS_MAX, Failover, Mutant, Predecessor};
pub use check::{ClusterModel, Counterexample, Report, check};
pub use oracle::Flaw;
pub use steps::Action;
pub use suites::ci;
pub use world::World;
