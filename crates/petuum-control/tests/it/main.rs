//! Stories of the control group by rule: the real state machine and driver against shards that are simple maps.
//!
//! Not here: the real shards (the model check drives both). Golden bytes stand with their records.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod bounds;
mod harness;
mod overlap;
mod p05_takeover;
mod p15_join;
mod p16_leases;
mod p17_requests;
mod p18_jobs;
mod random;
mod shard;
