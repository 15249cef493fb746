//! The values of a row that nobody has changed: a pure function of (seed, table, row, column), P13.
//!
//! Random bits come from integers alone: a SplitMix64 sequence (Steele, Lea, Flood 2014) whose start is a mix of seed,
//! table and row, read at a position given by the column, so that any column can be computed by itself. Normal values
//! are Box-Muller over the `libm` crate, which computes ln and cos in software, alike on every CPU; the platform's own
//! differ in the last bit. Golden values in the tests pin all of it: it is part of the data format.

use petuum_types::{Initial, RowId, TableId, TableSchema, ValueType, Values};

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A row's initial values, all `schema.width` of them.
///
/// # Panics
/// If the schema is one that [`TableSchema::validate`] refuses: a normal initial value for integers.
#[must_use]
pub fn initial_row(schema: &TableSchema, row: RowId) -> Values {
    let draws = Draws::new(schema.seed, schema.id, row);
    let columns = 0..u64::from(schema.width);
    match schema.value_type {
        ValueType::F32 => Values::F32(f32_row(schema.initial, draws, columns)),
        ValueType::I64 => Values::I64(i64_row(schema.initial, draws, columns)),
    }
}

fn f32_row(initial: Initial, draws: Draws, columns: impl Iterator<Item = u64>) -> Vec<f32> {
    match initial {
        Initial::Zero => columns.map(|_| 0.0).collect(),
        Initial::Constant(bits) => columns.map(|_| f32_of(bits)).collect(),
        Initial::Uniform { low, high } => columns.map(|c| draws.uniform(c, f32_of(low), f32_of(high))).collect(),
        Initial::Normal { mean, deviation } => {
            columns.map(|c| draws.normal(c, f32_of(mean), f32_of(deviation))).collect()
        }
    }
}

fn i64_row(initial: Initial, draws: Draws, columns: impl Iterator<Item = u64>) -> Vec<i64> {
    match initial {
        Initial::Zero => columns.map(|_| 0).collect(),
        Initial::Constant(bits) => columns.map(|_| bits.cast_signed()).collect(),
        Initial::Uniform { low, high } => columns.map(|c| draws.integer(c, low, high).cast_signed()).collect(),
        Initial::Normal { .. } => panic!("a normal initial value needs f32 values; schemas are validated on creation"),
    }
}

/// Schemas keep f32 parameters in the low half of 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the high half is zero, as validate checks")]
const fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// A row's random bits.
#[derive(Clone, Copy)]
struct Draws {
    start: u64,
}

impl Draws {
    const fn new(seed: u64, table: TableId, row: RowId) -> Self {
        let table = mix(mix(seed ^ GOLDEN_GAMMA) ^ table.0 as u64);
        Self { start: mix(table.wrapping_add(GOLDEN_GAMMA) ^ row.0) }
    }

    const fn bits(self, n: u64) -> u64 {
        mix(self.start.wrapping_add(n.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
    }

    /// In 0..1, a multiple of 2^-53.
    fn unit(self, n: u64) -> f64 {
        (self.bits(n) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// In `low..high`, or `low` if they are equal. Computed in f64, where `high - low` cannot overflow.
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the point")]
    fn uniform(self, column: u64, low: f32, high: f32) -> f32 {
        let value = f64::from(low) + (f64::from(high) - f64::from(low)) * self.unit(column);
        // Rounding to f32 may reach `high`, which is excluded.
        (value as f32).min(high.next_down()).max(low)
    }

    /// Box-Muller, one value of each pair. Finite even where `deviation` is near the end of the f32 range.
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the point")]
    fn normal(self, column: u64, mean: f32, deviation: f32) -> f32 {
        // 1 - unit is in (0, 1], exactly: ln never sees 0.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit(2 * column)));
        let angle = std::f64::consts::TAU * self.unit(2 * column + 1);
        let value = f64::from(mean) + f64::from(deviation) * (radius * libm::cos(angle));
        (value as f32).clamp(f32::MIN, f32::MAX)
    }

    /// In `low..=high` (as i64 bits), by multiplication and shift (Lemire 2019) without its rejection step: the bias is
    /// below 2^-64 times the range, and a fixed number of draws per column matters more.
    const fn integer(self, column: u64, low: u64, high: u64) -> u64 {
        let span = high.wrapping_sub(low) as u128 + 1;
        let offset = ((self.bits(column) as u128 * span) >> 64) as u64;
        low.wrapping_add(offset)
    }
}

const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
