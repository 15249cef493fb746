//! A row's values as little-endian bytes, without a copy where memory already is little endian.

use std::borrow::Cow;

/// The values' little-endian bytes, as hashed by checksums and written to snapshots.
#[must_use]
pub fn f32_le_bytes(values: &[f32]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        #[expect(unsafe_code, reason = "a view of plain values as bytes")]
        // SAFETY: the pointer and `size_of_val` bytes are exactly the slice, which outlives the result; f32 has no
        // padding; u8 has no alignment and takes every bit pattern.
        let view = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Cow::Borrowed(view)
    } else {
        Cow::Owned(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }
}

/// The same for i64.
#[must_use]
pub fn i64_le_bytes(values: &[i64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        #[expect(unsafe_code, reason = "a view of plain values as bytes")]
        // SAFETY: as in `f32_le_bytes`; i64 has no padding either.
        let view = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Cow::Borrowed(view)
    } else {
        Cow::Owned(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_the_little_endian_bytes() {
        let floats = [1.5f32, -0.0, f32::NAN, f32::MIN_POSITIVE];
        let expected: Vec<u8> = floats.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(f32_le_bytes(&floats).as_ref(), expected);
        assert_eq!(i64_le_bytes(&[1, -2]).as_ref(), [1i64.to_le_bytes(), (-2i64).to_le_bytes()].concat());
        assert!(f32_le_bytes(&[]).is_empty());
    }
}
