//! The kernels eight f32 or four i64 at a time, for x86-64 with AVX2.
//!
//! Every function is safe code but for unaligned loads and stores through pointers, and may be called only on a CPU with
//! AVX2. The rest that fills no vector goes to `portable`. Bit-equal to `portable` because `vaddps` rounds each lane
//! like a scalar addition (MXCSR is never changed: no flush to zero), and NaNs are replaced in both.
#![expect(unsafe_code, reason = "vector loads and stores take raw pointers; each states why it is in bounds")]

use crate::{CANONICAL_NAN, portable};
use std::arch::x86_64::{
    __m256, __m256i, _CMP_LT_OQ, _CMP_UNORD_Q, _mm256_add_epi64, _mm256_add_ps, _mm256_andnot_ps, _mm256_blendv_ps,
    _mm256_cmp_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_movemask_ps, _mm256_set1_ps, _mm256_storeu_ps,
    _mm256_storeu_si256,
};

const ALL_LANES: i32 = 0xff;

#[target_feature(enable = "avx2")]
pub(crate) fn add_f32(dst: &mut [f32], src: &[u8]) {
    let canonical = _mm256_set1_ps(CANONICAL_NAN);
    let (dst_vectors, dst_rest) = dst.as_chunks_mut::<8>();
    let (src_vectors, src_rest) = src.as_chunks::<32>();
    for (d, s) in dst_vectors.iter_mut().zip(src_vectors) {
        let sum = _mm256_add_ps(load_f32(d), load_bytes(s));
        let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum);
        store_f32(d, _mm256_blendv_ps(sum, canonical, nan));
    }
    portable::add_f32(dst_rest, src_rest);
}

#[target_feature(enable = "avx2")]
pub(crate) fn add_finite_f32(dst: &mut [f32], src: &[u8]) -> u64 {
    let (dst_vectors, dst_rest) = dst.as_chunks_mut::<8>();
    let (src_vectors, src_rest) = src.as_chunks::<32>();
    let mut left = 0;
    for (d, s) in dst_vectors.iter_mut().zip(src_vectors) {
        let before = load_f32(d);
        let sum = _mm256_add_ps(before, load_bytes(s));
        let is_finite = finite(sum);
        store_f32(d, _mm256_blendv_ps(before, sum, is_finite));
        left += u64::from((!_mm256_movemask_ps(is_finite) & ALL_LANES).count_ones());
    }
    left + portable::add_finite_f32(dst_rest, src_rest)
}

#[target_feature(enable = "avx2")]
pub(crate) fn add_i64(dst: &mut [i64], src: &[u8]) {
    let (dst_vectors, dst_rest) = dst.as_chunks_mut::<4>();
    let (src_vectors, src_rest) = src.as_chunks::<32>();
    for (d, s) in dst_vectors.iter_mut().zip(src_vectors) {
        let at = d.as_mut_ptr().cast::<__m256i>();
        // SAFETY: `d` is 4 i64 and `s` 32 bytes, so 32 bytes can be read at each; loadu needs no alignment.
        let (a, b) = unsafe { (_mm256_loadu_si256(at), _mm256_loadu_si256(s.as_ptr().cast())) };
        // SAFETY: `at` comes from the exclusive borrow `d` of 32 bytes; storeu needs no alignment.
        unsafe { _mm256_storeu_si256(at, _mm256_add_epi64(a, b)) };
    }
    portable::add_i64(dst_rest, src_rest);
}

#[target_feature(enable = "avx2")]
pub(crate) fn first_non_finite_f32(src: &[u8]) -> Option<usize> {
    let (vectors, rest) = src.as_chunks::<32>();
    for (i, s) in vectors.iter().enumerate() {
        let bad = !_mm256_movemask_ps(finite(load_bytes(s))) & ALL_LANES;
        if bad != 0 {
            return Some(i * 8 + bad.trailing_zeros() as usize);
        }
    }
    portable::first_non_finite_f32(rest).map(|at| vectors.len() * 8 + at)
}

/// All ones in every lane whose value is finite: |x| < infinity, which is false for a NaN.
#[target_feature(enable = "avx2")]
fn finite(x: __m256) -> __m256 {
    let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
    _mm256_cmp_ps::<_CMP_LT_OQ>(magnitude, _mm256_set1_ps(f32::INFINITY))
}

#[target_feature(enable = "avx2")]
fn load_f32(from: &[f32; 8]) -> __m256 {
    // SAFETY: 8 f32 are 32 readable bytes; loadu needs no alignment.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

#[target_feature(enable = "avx2")]
fn load_bytes(from: &[u8; 32]) -> __m256 {
    // SAFETY: 32 readable bytes; loadu needs no alignment, and every bit pattern is an f32. x86 is little endian.
    unsafe { _mm256_loadu_ps(from.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn store_f32(to: &mut [f32; 8], values: __m256) {
    // SAFETY: 8 f32 are 32 writable bytes, borrowed exclusively; storeu needs no alignment.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), values) }
}
