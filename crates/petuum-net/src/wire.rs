//! Generated from `proto/petuum/v1`.

#![allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    clippy::large_futures,
    unused_qualifications,
    unreachable_pub,
    reason = "generated code"
)]

tonic::include_proto!("petuum.v1");

/// Descriptors of the public services (data and admin), for reflection.
pub const PUBLIC_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/public.bin"));
