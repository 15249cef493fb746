//! Real processes: nodes of the built binary on loopback, killed and started again; clients in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod cluster;
mod commands;
mod errors;
mod failover;
mod load;
mod oracle;
mod pauses;
mod signals;
mod sizes;
mod train;
