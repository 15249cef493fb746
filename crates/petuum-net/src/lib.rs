//! Wire types, conversions and the seams for listeners and connectors.
//!
//! Wire types stop here: above, everybody speaks `petuum_types`. Reading order: [`transport`] (how bytes come and go,
//! in production and in the simulator), [`wire`] (generated from `proto/`), [`convert`], [`status`] (the one place
//! that maps errors to gRPC), [`candidates`].

pub mod candidates;
pub mod convert;
pub mod status;
pub mod transport;
pub mod wire;

/// The protocol's version; every request carries it.
pub const FORMAT: u32 = 1;
