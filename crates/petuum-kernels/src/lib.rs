//! Numeric kernels: adding updates to rows, finding values that are not finite, and initial values.
//!
//! Not here: which row gets which update (petuum-shard), and optimiser rules (P9).
//!
//! Invariants:
//! * Same input, same bits, on every CPU: element-wise IEEE 754 operations only, no contraction, no reordering; every
//!   NaN that leaves a kernel is the canonical one. Wider kernels are chosen at run time and a test compares them all.
//! * No allocation and no branch per element in the adding kernels.
//!
//! Reading order: [`add`] (what callers use, and the choice of a kernel), `portable` (the definition), `avx2` (the same
//! eight values at a time; all the reasoning about `unsafe`), [`initial`], [`bytes`].

pub mod add;
#[cfg(target_arch = "x86_64")]
mod avx2;
pub mod bytes;
pub mod initial;
mod portable;

pub use add::{CANONICAL_NAN, add_f32, add_finite_f32, add_i64, first_non_finite_f32};
pub use bytes::{f32_le_bytes, i64_le_bytes};
pub use initial::initial_row;
