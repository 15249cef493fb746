//! Element-wise addition of little-endian updates, and the choice of the widest kernel the CPU has.
//!
//! Updates are the bytes of a part as they came from the wire, unaligned: nothing is decoded before it is added.

use crate::portable;

/// The one NaN that tables store: positive, quiet, no payload. CPUs differ in which NaN a sum of NaNs gives, and replicas
/// compare bits (G6).
pub const CANONICAL_NAN: f32 = f32::from_bits(0x7fc0_0000);

/// One implementation of every kernel. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Plain Rust; the definition of what each kernel gives.
    Portable,
    /// 256-bit integer and float operations of x86-64.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    /// Every level this CPU can run, the widest last.
    #[must_use]
    pub fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return &[Self::Portable, Self::Avx2];
        }
        &[Self::Portable]
    }

    fn widest() -> Self {
        Self::available().last().copied().expect("the portable level is always there")
    }

    /// [`add_f32`] at this level. Falls back to the portable one where the CPU lacks the level.
    pub fn add_f32(self, dst: &mut [f32], src_le: &[u8]) {
        check(dst.len(), 4, src_le);
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2_or(dst, src_le, crate::avx2::add_f32, portable::add_f32),
            Self::Portable => portable::add_f32(dst, src_le),
        }
    }

    /// [`add_finite_f32`] at this level. Falls back as [`Level::add_f32`].
    pub fn add_finite_f32(self, dst: &mut [f32], src_le: &[u8]) -> u64 {
        check(dst.len(), 4, src_le);
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2_or(dst, src_le, crate::avx2::add_finite_f32, portable::add_finite_f32),
            Self::Portable => portable::add_finite_f32(dst, src_le),
        }
    }

    /// [`add_i64`] at this level. Falls back as [`Level::add_f32`].
    pub fn add_i64(self, dst: &mut [i64], src_le: &[u8]) {
        check(dst.len(), 8, src_le);
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2_or(dst, src_le, crate::avx2::add_i64, portable::add_i64),
            Self::Portable => portable::add_i64(dst, src_le),
        }
    }

    /// [`first_non_finite_f32`] at this level. Falls back as [`Level::add_f32`].
    #[must_use]
    pub fn first_non_finite_f32(self, src_le: &[u8]) -> Option<usize> {
        assert_eq!(src_le.len() % 4, 0, "whole f32 values");
        match self {
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calling a function compiled for a CPU feature")]
            // SAFETY: the kernel's only requirement is that the CPU has AVX2, which the guard checked.
            Self::Avx2 if std::arch::is_x86_feature_detected!("avx2") => unsafe {
                crate::avx2::first_non_finite_f32(src_le)
            },
            _ => portable::first_non_finite_f32(src_le),
        }
    }
}

/// Adds `src_le`, f32 values in little-endian bytes, to `dst`; sums that are NaN become [`CANONICAL_NAN`].
///
/// # Panics
/// If `src_le` is not `4 * dst.len()` bytes.
pub fn add_f32(dst: &mut [f32], src_le: &[u8]) {
    Level::widest().add_f32(dst, src_le);
}

/// Adds as [`add_f32`], but leaves every cell whose sum would not be finite as it was, and returns how many those are.
/// A cell that was finite stays so, whether the update was infinite, a NaN, or only too large.
///
/// # Panics
/// If `src_le` is not `4 * dst.len()` bytes.
pub fn add_finite_f32(dst: &mut [f32], src_le: &[u8]) -> u64 {
    Level::widest().add_finite_f32(dst, src_le)
}

/// Adds `src_le`, i64 values in little-endian bytes, to `dst`. Sums wrap: only then is the order of additions free.
///
/// # Panics
/// If `src_le` is not `8 * dst.len()` bytes.
pub fn add_i64(dst: &mut [i64], src_le: &[u8]) {
    Level::widest().add_i64(dst, src_le);
}

/// The position (in values) of the first NaN or infinity among f32 values in little-endian bytes.
///
/// # Panics
/// If `src_le` is no whole number of values.
#[must_use]
pub fn first_non_finite_f32(src_le: &[u8]) -> Option<usize> {
    Level::widest().first_non_finite_f32(src_le)
}

fn check(values: usize, value_bytes: usize, src_le: &[u8]) {
    assert_eq!(src_le.len(), values * value_bytes, "bytes of {values} values of {value_bytes} bytes");
}

/// A kernel that adds bytes to a row; `unsafe` because it may be compiled for a CPU feature.
#[cfg(target_arch = "x86_64")]
type Adding<T, R> = unsafe fn(&mut [T], &[u8]) -> R;

/// Calls the AVX2 kernel if this CPU has AVX2 and the portable one otherwise.
#[cfg(target_arch = "x86_64")]
fn avx2_or<T, R>(dst: &mut [T], src: &[u8], avx2: Adding<T, R>, portable: fn(&mut [T], &[u8]) -> R) -> R {
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "calling a function compiled for a CPU feature")]
        // SAFETY: the only requirement of the kernels in `avx2` is that the CPU has AVX2, which the line above checked.
        unsafe {
            avx2(dst, src)
        }
    } else {
        portable(dst, src)
    }
}

#[cfg(test)]
mod tests;
