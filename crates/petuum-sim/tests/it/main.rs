//! The simulator's parts together: a store on a simulated disk behind a simulated network, its deaths, and its trace.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panic")]

mod meta;
mod scenario;
mod simulation;
