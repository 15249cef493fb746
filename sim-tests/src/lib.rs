//! Checks that need more than one crate: the model check of the protocol's state machines.
//!
//! Not here: how each machine behaves by itself; that is tested in its own crate.

pub mod model;
