//! Initial values as they are written on the command line: `zero`, `constant=X`, `uniform=LOW,HIGH`,
//! `normal=MEAN,DEVIATION`. What the numbers mean is known with the table's type; ranges are the server's to check (P13).

use petuum_types::{Initial, ValueType};
use std::str::FromStr;

const EXPECTED: &str = "expected zero, constant=X, uniform=LOW,HIGH or normal=MEAN,DEVIATION";

/// Initial values whose numbers are not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InitialValues {
    Zero,
    Constant(String),
    Uniform(String, String),
    Normal(String, String),
}

impl FromStr for InitialValues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, numbers) = text.split_once('=').unwrap_or((text, ""));
        let numbers: Vec<&str> = numbers.split(',').map(str::trim).filter(|number| !number.is_empty()).collect();
        match (kind, &numbers[..]) {
            ("zero", []) => Ok(Self::Zero),
            ("constant", [value]) => Ok(Self::Constant((*value).to_owned())),
            ("uniform", [low, high]) => Ok(Self::Uniform((*low).to_owned(), (*high).to_owned())),
            ("normal", [mean, deviation]) => Ok(Self::Normal((*mean).to_owned(), (*deviation).to_owned())),
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

impl InitialValues {
    /// The initial values of a table with values of this type.
    ///
    /// # Errors
    /// Which number is none of that type, or that normal values are for f32 only.
    pub(crate) fn of_type(&self, value_type: ValueType) -> Result<Initial, String> {
        let bits = |text: &str| bits(text, value_type);
        match self {
            Self::Zero => Ok(Initial::Zero),
            Self::Constant(value) => Ok(Initial::Constant(bits(value)?)),
            Self::Uniform(low, high) => Ok(Initial::Uniform { low: bits(low)?, high: bits(high)? }),
            Self::Normal(..) if value_type == ValueType::I64 => {
                Err("initial values: normal is for tables of f32; use uniform for i64".to_owned())
            }
            Self::Normal(mean, deviation) => Ok(Initial::Normal { mean: bits(mean)?, deviation: bits(deviation)? }),
        }
    }
}

fn bits(text: &str, value_type: ValueType) -> Result<u64, String> {
    let bits = match value_type {
        ValueType::F32 => text.parse().ok().filter(|v: &f32| v.is_finite()).map(|v| u64::from(v.to_bits())),
        ValueType::I64 => text.parse().ok().map(i64::cast_unsigned),
    };
    bits.ok_or_else(|| format!("initial values: {text:?} is no finite {value_type}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, value_type: ValueType) -> Result<Initial, String> {
        text.parse::<InitialValues>()?.of_type(value_type)
    }

    #[test]
    fn every_kind_is_read_in_the_table_s_type() {
        let f32 = |v: f32| u64::from(v.to_bits());
        let float = |text| parsed(text, ValueType::F32).unwrap();
        assert_eq!(float("zero"), Initial::Zero);
        assert_eq!(float("constant=-1.5"), Initial::Constant(f32(-1.5)));
        assert_eq!(float("uniform=-1, 1e-3"), Initial::Uniform { low: f32(-1.0), high: f32(0.001) });
        assert_eq!(float("normal=0,0.01"), Initial::Normal { mean: f32(0.0), deviation: f32(0.01) });
        let integer = |text| parsed(text, ValueType::I64).unwrap();
        assert_eq!(integer("constant=-7"), Initial::Constant((-7i64).cast_unsigned()));
        // Beyond what a float can hold.
        let high = i64::MAX;
        assert_eq!(
            integer(&format!("uniform=-2,{high}")),
            Initial::Uniform { low: u64::MAX - 1, high: high.cast_unsigned() }
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for text in ["", "one", "zero=1", "constant", "constant=1,2", "uniform=1", "normal=1,2,3", "Uniform=1,2"] {
            assert_eq!(text.parse::<InitialValues>().unwrap_err(), EXPECTED, "{text}");
        }
        for (text, value_type, named) in [
            ("constant=x", ValueType::F32, "\"x\""),
            ("constant=inf", ValueType::F32, "\"inf\""),
            ("uniform=0,1.5", ValueType::I64, "\"1.5\""),
            ("normal=0,1", ValueType::I64, "uniform"),
        ] {
            let error = parsed(text, value_type).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
