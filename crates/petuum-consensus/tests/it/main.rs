//! Groups of real nodes over TCP. Tests are named for what they show; those of public reports carry the row's number.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod cluster;
mod faults;
mod machine;
mod net;
mod replication;
mod snapshots;
