//! The shard's rules, one module per rule, and the schedules of events the rules exist for.

#![expect(clippy::unwrap_used, reason = "in a test, nothing there is a failure")]

mod checksums;
mod p10_p12_p13_reads;
mod p11_parked;
mod p15_membership;
mod p2_stage;
mod p3_tick;
mod p4_dedup;
mod p5_takeover;
mod properties;
mod schedules;
mod snapshots;
mod support;
