//! The client: sessions, cache, reads, commits and reconnection, async and blocking.
//!
//! ```text
//!  program ─ Worker trait ─┬─ WorkerThread (async) ─┐                 ┌─ courier per node ─ Data.Commit stream
//!                          └─ blocking::Worker ─────┴─▶ session Core ─┼─ fetch (hedged)   ─ Data.Read, any replica
//!                                                       (pure machines └─ heartbeat        ─ Session.Heartbeat
//!                                                        behind a lock)
//!  reader ─── Job::read ─ fetch (hedged) ─ Data.Read: any replica, or the leader for the latest rows
//!  operator ─ Client ─ cluster (who leads the control group) ─ Admin, Session
//! ```
//!
//! The protocol's rules are not here: they are in `petuum_session`. This crate moves messages, keeps deadlines and finds
//! its way back after failures. It starts tasks on the caller's runtime and no threads; the blocking facade brings a
//! runtime of its own.
//!
//! Reading order: [`worker`] (what programs are written against), [`options`], [`client`], `cluster`, [`session`],
//! `fetch`, [`reads`], [`blocking`].

pub mod blocking;
pub mod client;
mod cluster;
mod fetch;
pub mod options;
pub mod reads;
pub mod session;
pub mod worker;

pub use client::{Client, Job, TableDefinition};
pub use options::{Options, WorkerOptions};
pub use reads::{ReadFrom, RowRead};
pub use session::{Session, SessionReport, WorkerThread};
pub use worker::{Delta, Deltas, Table, Worker};
