//! A row's values, owned.

use crate::ValueType;
use std::hash::{Hash, Hasher};

/// The values of a row or of a range of its columns.
///
/// Compares and hashes by bits: two NaNs of the same bits are equal, 0 and -0 are not.
#[derive(Clone, Debug)]
pub enum Values {
    /// Of an f32 table.
    F32(Vec<f32>),
    /// Of an i64 table.
    I64(Vec<i64>),
}

impl Values {
    /// `width` zeros.
    #[must_use]
    pub fn zeros(value_type: ValueType, width: usize) -> Self {
        match value_type {
            ValueType::F32 => Self::F32(vec![0.0; width]),
            ValueType::I64 => Self::I64(vec![0; width]),
        }
    }

    /// The values' type.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::F32(_) => ValueType::F32,
            Self::I64(_) => ValueType::I64,
        }
    }

    /// How many values.
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

    /// Appends the values' little-endian bytes.
    pub fn write_le(&self, out: &mut Vec<u8>) {
        match self {
            Self::F32(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
            Self::I64(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
        }
    }

    /// Values from little-endian bytes; `None` if the length is no multiple of a value's.
    #[must_use]
    pub fn read_le(value_type: ValueType, bytes: &[u8]) -> Option<Self> {
        match value_type {
            ValueType::F32 => {
                let (chunks, rest) = bytes.as_chunks::<4>();
                rest.is_empty().then(|| Self::F32(chunks.iter().map(|c| f32::from_le_bytes(*c)).collect()))
            }
            ValueType::I64 => {
                let (chunks, rest) = bytes.as_chunks::<8>();
                rest.is_empty().then(|| Self::I64(chunks.iter().map(|c| i64::from_le_bytes(*c)).collect()))
            }
        }
    }

    /// The f32 values, or `None` for another type.
    #[must_use]
    pub fn as_f32(&self) -> Option<&[f32]> {
        match self {
            Self::F32(v) => Some(v),
            Self::I64(_) => None,
        }
    }

    /// The i64 values, or `None` for another type.
    #[must_use]
    pub fn as_i64(&self) -> Option<&[i64]> {
        match self {
            Self::I64(v) => Some(v),
            Self::F32(_) => None,
        }
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F32(a), Self::F32(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
            }
            (Self::I64(a), Self::I64(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Values {}

impl Hash for Values {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::F32(v) => v.iter().for_each(|x| x.to_bits().hash(state)),
            Self::I64(v) => v.hash(state),
        }
    }
}
