//! The client: sessions, cache, reads, commits and reconnection, async and blocking.

pub mod worker;

pub use worker::{Delta, Deltas, Table, Worker};
