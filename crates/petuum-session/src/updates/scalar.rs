//! One value and a borrowed run of values of either type, and the arithmetic that buffers need of them.
//!
//! Not a numeric library. Invariant: [`Number::IDENTITY`] changes no bit of anything it is added to.

use petuum_types::{ValueType, Values};

/// One value to add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// To a column of an f32 table.
    F32(f32),
    /// To a column of an i64 table.
    I64(i64),
}

impl From<f32> for Scalar {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

/// Consecutive columns to add, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValuesRef<'a> {
    /// To a row of an f32 table.
    F32(&'a [f32]),
    /// To a row of an i64 table.
    I64(&'a [i64]),
}

impl ValuesRef<'_> {
    /// The values' type.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::F32(_) => ValueType::F32,
            Self::I64(_) => ValueType::I64,
        }
    }

    /// How many columns.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::I64(v) => v.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [f32]> for ValuesRef<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a [i64]> for ValuesRef<'a> {
    fn from(values: &'a [i64]) -> Self {
        Self::I64(values)
    }
}

impl<'a> From<&'a Values> for ValuesRef<'a> {
    fn from(values: &'a Values) -> Self {
        match values {
            Values::F32(v) => Self::F32(v),
            Values::I64(v) => Self::I64(v),
        }
    }
}

impl<'a> From<&'a Scalar> for ValuesRef<'a> {
    fn from(value: &'a Scalar) -> Self {
        match value {
            Scalar::F32(v) => Self::F32(std::slice::from_ref(v)),
            Scalar::I64(v) => Self::I64(std::slice::from_ref(v)),
        }
    }
}

/// What a buffer needs of a value type.
pub(super) trait Number: Copy + std::fmt::Debug + std::fmt::Display {
    /// Added to any value, it leaves every bit as it was: what an untouched column of a buffer holds.
    const IDENTITY: Self;
    /// The sum as a shard computes it.
    fn plus(self, other: Self) -> Self;
    /// Whether this is the identity, bit for bit.
    fn is_identity(self) -> bool;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
    /// Appends the little-endian bytes of each.
    fn write_le(values: &[Self], out: &mut Vec<u8>);
}

/// Appends what `bytes` makes of each value.
fn write_all<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N], out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + N * values.len(), 0);
    let (places, _) = out[begin..].as_chunks_mut();
    places.iter_mut().zip(values).for_each(|(place, value)| *place = bytes(*value));
}

impl Number for f32 {
    /// Minus zero: 0 + 0 would turn a stored -0 into 0, -0 + -0 does not.
    const IDENTITY: Self = -0.0;

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn is_identity(self) -> bool {
        self.to_bits() == Self::IDENTITY.to_bits()
    }

    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn write_le(values: &[Self], out: &mut Vec<u8>) {
        write_all(values, Self::to_le_bytes, out);
    }
}

impl Number for i64 {
    const IDENTITY: Self = 0;

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn is_identity(self) -> bool {
        self == Self::IDENTITY
    }

    fn is_finite(self) -> bool {
        true
    }

    fn write_le(values: &[Self], out: &mut Vec<u8>) {
        write_all(values, Self::to_le_bytes, out);
    }
}
