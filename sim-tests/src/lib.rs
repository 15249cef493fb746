//! Checks that need more than one crate: the model check of the protocol's state machines, and scenarios on a simulated
//! cluster.
//!
//! Not here: how each machine behaves by itself; that is tested in its own crate.

pub mod model;
pub mod scenarios;
