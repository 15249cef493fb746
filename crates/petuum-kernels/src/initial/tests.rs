//! Golden initial values, their bounds, and their moments.

use super::*;
use petuum_types::{JobId, NonFinite, Staleness};
use proptest::prelude::*;

fn schema(value_type: ValueType, initial: Initial, width: u32) -> TableSchema {
    TableSchema {
        id: TableId(7),
        job: JobId(1),
        name: "weights".into(),
        width,
        value_type,
        initial,
        seed: 42,
        non_finite: NonFinite::Reject,
        staleness: Staleness(0),
    }
}

const fn f32_bits(value: f32) -> u64 {
    value.to_bits() as u64
}

fn f32_row(initial: Initial, width: u32, row: u64) -> Vec<f32> {
    initial_row(&schema(ValueType::F32, initial, width), RowId(row)).as_f32().unwrap().to_vec()
}

fn i64_row(low: i64, high: i64, width: u32) -> Vec<i64> {
    let initial = Initial::Uniform { low: low.cast_unsigned(), high: high.cast_unsigned() };
    initial_row(&schema(ValueType::I64, initial, width), RowId(3)).as_i64().unwrap().to_vec()
}

#[test]
fn golden_values_never_change() {
    let uniform = f32_row(Initial::Uniform { low: f32_bits(-1.0), high: f32_bits(1.0) }, 4, 3);
    assert_eq!(uniform.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), UNIFORM);
    let normal = f32_row(Initial::Normal { mean: f32_bits(0.0), deviation: f32_bits(1.0) }, 6, 3);
    assert_eq!(normal.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), NORMAL);
    assert_eq!(i64_row(-10, 10, 6), INTEGERS);
    assert_eq!(i64_row(i64::MIN, i64::MAX, 2), WIDE_INTEGERS);
}

const UNIFORM: [u32; 4] = [0xbe7b_b023, 0xbea1_8678, 0xbcbe_9994, 0xbe98_dfb3];
const NORMAL: [u32; 6] = [0xbf08_7188, 0xbf2f_4558, 0x3f23_b30e, 0x3fbc_e77b, 0xbf34_9595, 0xbf4f_8e69];
const INTEGERS: [i64; 6] = [-3, -3, 0, -3, -7, 10];
const WIDE_INTEGERS: [i64; 2] = [-2_267_004_297_845_548_332, -2_909_780_529_677_785_686];

#[test]
fn constants_and_zeros() {
    assert_eq!(f32_row(Initial::Zero, 3, 9), [0.0; 3]);
    assert_eq!(f32_row(Initial::Constant(f32_bits(-2.5)), 2, 9), [-2.5; 2]);
    let minus_one = schema(ValueType::I64, Initial::Constant(u64::MAX), 2);
    assert_eq!(initial_row(&minus_one, RowId(0)), Values::I64(vec![-1, -1]));
}

#[test]
fn rows_tables_and_seeds_differ_and_a_prefix_does_not_depend_on_the_width() {
    let initial = Initial::Uniform { low: f32_bits(0.0), high: f32_bits(1.0) };
    let base = schema(ValueType::F32, initial, 8);
    let values = |schema: &TableSchema, row| initial_row(schema, RowId(row));
    assert_ne!(values(&base, 1), values(&base, 2));
    assert_ne!(values(&base, 1), values(&TableSchema { id: TableId(8), ..base.clone() }, 1));
    assert_ne!(values(&base, 1), values(&TableSchema { seed: 43, ..base.clone() }, 1));
    assert_eq!(f32_row(initial, 8, 1)[..3], f32_row(initial, 3, 1));
}

#[test]
fn a_normal_has_its_moments() {
    let values = f32_row(Initial::Normal { mean: f32_bits(3.0), deviation: f32_bits(2.0) }, 200_000, 5);
    let n = values.len() as f64;
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let variance = values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / n;
    let within = values.iter().filter(|v| (f64::from(**v) - 3.0).abs() < 2.0).count() as f64 / n;
    assert!((mean - 3.0).abs() < 0.02 && (variance - 4.0).abs() < 0.06, "mean {mean}, variance {variance}");
    assert!((within - 0.6827).abs() < 0.005, "{within} within one deviation");
}

#[test]
fn the_ends_of_the_f32_range_stay_finite() {
    let wide = Initial::Uniform { low: f32_bits(f32::MIN), high: f32_bits(f32::MAX) };
    assert!(f32_row(wide, 10_000, 0).iter().all(|v| v.is_finite()));
    let wide = Initial::Normal { mean: f32_bits(0.0), deviation: f32_bits(f32::MAX) };
    assert!(f32_row(wide, 10_000, 0).iter().all(|v| v.is_finite()));
}

proptest! {
    #[test]
    fn uniform_values_stay_in_their_range(a in any::<f32>(), b in any::<f32>(), row in any::<u64>()) {
        prop_assume!(a.is_finite() && b.is_finite());
        let (low, high) = (a.min(b), a.max(b));
        for value in f32_row(Initial::Uniform { low: f32_bits(low), high: f32_bits(high) }, 32, row) {
            prop_assert!(low <= value && (value < high || low == high), "{value} in {low}..{high}");
        }
    }

    #[test]
    fn integers_stay_in_their_range(a in any::<i64>(), b in any::<i64>()) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(i64_row(low, high, 32).iter().all(|v| (low..=high).contains(v)));
    }
}
