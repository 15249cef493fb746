//! The kernels in plain Rust: what every other implementation must equal bit by bit.
//!
//! Callers (`add`) have checked that lengths agree.

use crate::CANONICAL_NAN;

const EXPONENT: u32 = 0x7f80_0000;

pub(crate) fn add_f32(dst: &mut [f32], src: &[u8]) {
    for (d, s) in dst.iter_mut().zip(src.as_chunks::<4>().0) {
        let sum = *d + f32::from_le_bytes(*s);
        *d = if sum.is_nan() { CANONICAL_NAN } else { sum };
    }
}

pub(crate) fn add_finite_f32(dst: &mut [f32], src: &[u8]) -> u64 {
    let mut left = 0;
    for (d, s) in dst.iter_mut().zip(src.as_chunks::<4>().0) {
        let sum = *d + f32::from_le_bytes(*s);
        if sum.is_finite() {
            *d = sum;
        } else {
            left += 1;
        }
    }
    left
}

pub(crate) fn add_i64(dst: &mut [i64], src: &[u8]) {
    for (d, s) in dst.iter_mut().zip(src.as_chunks::<8>().0) {
        *d = d.wrapping_add(i64::from_le_bytes(*s));
    }
}

pub(crate) fn first_non_finite_f32(src: &[u8]) -> Option<usize> {
    src.as_chunks::<4>().0.iter().position(|s| u32::from_le_bytes(*s) & EXPONENT == EXPONENT)
}
