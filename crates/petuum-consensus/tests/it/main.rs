//! Groups of real nodes over TCP. Tests are named for what they show.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod cluster;
mod faults;
mod machine;
mod net;
mod replication;
mod snapshots;
