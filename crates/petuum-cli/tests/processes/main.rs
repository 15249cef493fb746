//! Real processes: nodes of the built binary on loopback, killed and started again; clients in this process.

#![expect(clippy::disallowed_methods, reason = "real processes run in real time")]

mod cluster;
mod commands;
mod errors;
mod failover;
mod oracle;
mod sizes;
