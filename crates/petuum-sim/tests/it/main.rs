//! The simulator's parts together: clusters, a store on a simulated disk behind a simulated network, deaths, traces.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panic")]

mod cluster;
mod control;
mod durability;
mod faults;
mod jobs;
mod meta;
mod reads;
mod scenario;
mod simulation;
mod store;
mod support;
