//! What a table is.

use crate::{JobId, Staleness, TableId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a table's values. Discriminants are the wire and disk format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum ValueType {
    /// IEEE 754 single precision.
    F32 = 1,
    /// Two's complement; sums wrap, because only wrapping addition gives the same sum in every order.
    I64 = 2,
}

impl ValueType {
    /// Bytes of one value.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    /// The type of a wire or disk byte; 3 (f64) and 4 (i32) are reserved.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::F32),
            2 => Some(Self::I64),
            _ => None,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::I64 => "i64",
        })
    }
}

/// The value of a row that nobody has changed: a pure function of (table seed, row, column), P13.
///
/// Parameters are kept as bits so that schemas compare and hash exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Initial {
    /// All zero.
    Zero,
    /// One f32 (as bits) or i64 everywhere.
    Constant(u64),
    /// f32 uniform in `low..high` (f32 bits); for i64 tables an integer in `low..=high` (i64 bits).
    Uniform {
        /// Least value.
        low: u64,
        /// Bound above.
        high: u64,
    },
    /// f32 normal (f32 bits); only for f32 tables.
    Normal {
        /// Mean.
        mean: u64,
        /// Standard deviation, at least 0.
        deviation: u64,
    },
}

/// What a shard does with NaN and infinities among updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum NonFinite {
    /// Refuse the part, and with it the clock.
    #[default]
    Reject = 0,
    /// Leave those cells unchanged and count them.
    Drop = 1,
    /// Add them like any other value.
    Accept = 2,
}

/// A table's definition, the same on every replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TableSchema {
    /// Given by the control group, never reused.
    pub id: TableId,
    /// The job the table belongs to.
    pub job: JobId,
    /// Unique among the job's tables.
    pub name: String,
    /// Columns of every row, `1..=limits::ROW_COLUMNS_MAX`.
    pub width: u32,
    /// Type of every value.
    pub value_type: ValueType,
    /// What an untouched row holds.
    pub initial: Initial,
    /// Seed of `initial`.
    pub seed: u64,
    /// What to do with NaN and infinities.
    pub non_finite: NonFinite,
    /// Staleness of reads.
    pub staleness: Staleness,
}

impl TableSchema {
    /// Bytes of one row's values.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        self.width as usize * self.value_type.bytes()
    }

    /// Checks widths, names and initial values.
    ///
    /// # Errors
    /// A sentence with what was expected and what came.
    pub fn validate(&self) -> Result<(), String> {
        use crate::limits::{NAME_BYTES_MAX, ROW_COLUMNS_MAX};
        if self.width == 0 || self.width > ROW_COLUMNS_MAX {
            return Err(format!("width {}; expected 1 to {ROW_COLUMNS_MAX} columns", self.width));
        }
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX {
            return Err(format!("a name of {} bytes; expected 1 to {NAME_BYTES_MAX}", self.name.len()));
        }
        let finite = |bits: u64| u32::try_from(bits).is_ok_and(|b| f32::from_bits(b).is_finite());
        let low_word = |bits: u64| f32::from_bits(u32::try_from(bits).unwrap_or(f32::NAN.to_bits()));
        match (self.value_type, self.initial) {
            (_, Initial::Zero) | (ValueType::I64, Initial::Constant(_)) => Ok(()),
            (ValueType::F32, Initial::Constant(v)) if finite(v) => Ok(()),
            (ValueType::F32, Initial::Uniform { low, high })
                if finite(low) && finite(high) && low_word(low) <= low_word(high) =>
            {
                Ok(())
            }
            (ValueType::I64, Initial::Uniform { low, high }) if low.cast_signed() <= high.cast_signed() => Ok(()),
            (ValueType::F32, Initial::Normal { mean, deviation })
                if finite(mean) && finite(deviation) && low_word(deviation) >= 0.0 =>
            {
                Ok(())
            }
            (value_type, initial) => Err(format!(
                "initial values {initial:?} for {value_type}; expected finite parameters of that type, low <= high, \
                 deviation >= 0, and normal only for f32"
            )),
        }
    }
}
