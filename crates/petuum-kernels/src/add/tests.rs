//! Every kernel the CPU has against a definition written out per value, in bits.

use super::*;
use proptest::prelude::*;

/// Any bits, but mostly the awkward ones: NaNs with payloads, infinities, denormals, values whose sum overflows.
fn awkward() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        Just(0x7fc0_0000),
        Just(0xffc0_1234),
        Just(0x7f80_0001),
        Just(f32::INFINITY.to_bits()),
        Just(f32::NEG_INFINITY.to_bits()),
        Just(f32::MAX.to_bits()),
        Just(f32::MIN.to_bits()),
        Just((-0.0f32).to_bits()),
        1u32..0x0080_0000,
        (-4.0f32..4.0).prop_map(f32::to_bits),
    ]
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// The update's bytes at an odd address, as in a part.
fn unaligned(bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    std::iter::once(0xee).chain(bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_level_gives_the_same_f32_bits(pairs in prop::collection::vec((awkward(), awkward()), 0..70), skip in 0usize..9) {
        let skip = skip.min(pairs.len());
        let src = unaligned(pairs.iter().flat_map(|p| p.1.to_le_bytes()));
        let src = &src[1 + 4 * skip..];
        let before: Vec<f32> = pairs.iter().map(|p| f32::from_bits(p.0)).collect();
        let sums: Vec<f32> = pairs.iter().map(|p| f32::from_bits(p.0) + f32::from_bits(p.1)).collect();
        let added: Vec<u32> = sums.iter().map(|s| if s.is_nan() { 0x7fc0_0000 } else { s.to_bits() }).collect();
        let kept: Vec<u32> =
            sums.iter().zip(&before).map(|(s, b)| if s.is_finite() { s.to_bits() } else { b.to_bits() }).collect();
        let left = sums[skip..].iter().filter(|s| !s.is_finite()).count() as u64;
        let first = pairs[skip..].iter().position(|p| !f32::from_bits(p.1).is_finite());
        for level in Level::available() {
            let mut dst = before.clone();
            level.add_f32(&mut dst[skip..], src);
            prop_assert_eq!(&bits(&dst[skip..]), &added[skip..], "{:?}", level);
            let mut dst = before.clone();
            prop_assert_eq!(level.add_finite_f32(&mut dst[skip..], src), left, "{:?}", level);
            prop_assert_eq!(&bits(&dst[skip..]), &kept[skip..], "{:?}", level);
            prop_assert_eq!(level.first_non_finite_f32(src), first, "{:?}", level);
        }
    }

    #[test]
    fn every_level_gives_the_same_i64_bits(pairs in prop::collection::vec(any::<(i64, i64)>(), 0..40)) {
        let src = unaligned(pairs.iter().flat_map(|p| p.1.to_le_bytes()));
        let expected: Vec<i64> = pairs.iter().map(|p| p.0.wrapping_add(p.1)).collect();
        for level in Level::available() {
            let mut dst: Vec<i64> = pairs.iter().map(|p| p.0).collect();
            level.add_i64(&mut dst, &src[1..]);
            prop_assert_eq!(&dst, &expected, "{:?}", level);
        }
    }
}

#[test]
fn the_wide_level_is_tested_where_the_cpu_has_it() {
    #[cfg(target_arch = "x86_64")]
    assert_eq!(Level::available().contains(&Level::Avx2), std::arch::is_x86_feature_detected!("avx2"));
    assert_eq!(Level::available()[0], Level::Portable);
}

#[test]
fn denormals_are_not_flushed() {
    let tiny = f32::from_bits(1);
    let mut dst = [tiny; 9];
    add_f32(&mut dst, &[tiny.to_le_bytes(); 9].concat());
    assert_eq!(bits(&dst), [2; 9]);
}

#[test]
fn an_overflowing_sum_leaves_the_cell_and_counts() {
    let mut dst = [f32::MAX; 8];
    assert_eq!(add_finite_f32(&mut dst, &[f32::MAX.to_le_bytes(); 8].concat()), 8);
    assert_eq!(dst, [f32::MAX; 8]);
}

#[test]
#[should_panic(expected = "bytes of 2 values")]
fn a_wrong_length_is_a_defect() {
    add_f32(&mut [0.0; 2], &[0; 7]);
}
