//! Scenarios: programs on a simulated cluster, faults from a seed, and what must be true meanwhile and in the end.
//!
//! ```text
//!   run.rs     one seed's run: shape and plan, faults, peace, figures
//!   first.rs   a plan: five kinds of faults, each once
//!   swarm.rs   a plan: any kinds at any rate, every setting drawn anew
//!   plan.rs    what a seed comes to
//!   setup.rs   the cluster, its job and its workers
//!   made.rs    its job and table, as found out
//!   shared.rs  what workers and their runner share
//!   worker.rs  what a worker computes, and where it can be stopped inside a clock
//!   reader.rs  somebody without a session who looks at the latest rows
//!   faults/    which faults happen when, and what heals them
//!   stage.rs   the cluster, its workers and the invariants, stepped together
//!   invariants/  what must be true at any time, a file for each (G2, G3, G6, P11, P16, Raft's own)
//!   peace.rs   what must come true when the faults are over
//!   report.rs  what a run has done, and whether that was enough
//!   seed.rs    a seed in a process of its own
//!   sweep.rs   many seeds, and whether they have shown enough
//!   named.rs   runs with fixed seeds, each for a bug
//!   reports.rs the same, each playing a public report
//!   mutants.rs defects planted on purpose
//!   cli.rs     the commands
//! ```

pub mod cli;
pub mod faults;
mod first;
mod invariants;
mod made;
mod mutants;
mod named;
mod peace;
mod plan;
mod reader;
mod report;
mod reports;
mod run;
mod seed;
mod setup;
mod shared;
mod stage;
mod swarm;
mod sweep;
mod worker;

pub use report::Report;
pub use run::{Outcome, Scenario, Settings, run};
