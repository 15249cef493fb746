//! Scenarios: programs on a simulated cluster, faults from a seed, and what must be true meanwhile and in the end.
//!
//! ```text
//!   first.rs   one seed's run: a cluster, its workers, every fault once, convergence, the last checks
//!   worker.rs  what a worker computes, and where it can be stopped inside a clock
//!   faults.rs  which faults happen when, and what heals them
//!   stage.rs   the cluster, its workers and the watch, stepped together
//!   watch.rs   what must be true of replicas at any time (G3, G6)
//!   report.rs  what a run has done, and whether that was enough
//!   cli.rs     the commands: one seed, many, one twice
//! ```

pub mod cli;
mod faults;
pub mod first;
mod report;
mod stage;
mod watch;
mod worker;
