//! The one place that names bincode: small internal records, behind a format byte, with golden bytes in tests.

use serde::{Serialize, de::DeserializeOwned};

/// The first byte of every record.
pub const FORMAT: u8 = 1;

/// Why bytes are not the record they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There was nothing.
    #[error("an empty record of {0}; expected a format byte")]
    Empty(&'static str),
    /// Written by another version.
    #[error("a record of {what} has format {got}; this version reads {FORMAT}: use the version that wrote it")]
    Format {
        /// The record's type.
        what: &'static str,
        /// The format byte found.
        got: u8,
    },
    /// Cut short, too long or garbage.
    #[error("a damaged record of {what}, {bytes} bytes: {reason}")]
    Damaged {
        /// The record's type.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// What the decoder said.
        reason: String,
    },
}

fn config() -> impl bincode::config::Config {
    // A bound on what one record may allocate: no length prefix from a disk or a peer is believed beyond it.
    bincode::config::standard().with_limit::<{ 64 * 1024 * 1024 }>()
}

/// The record's bytes.
///
/// # Panics
/// Only if a type's `Serialize` fails, which none of ours does, or a record passes 64 MiB.
#[must_use]
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut out = vec![FORMAT];
    bincode::serde::encode_into_std_write(record, &mut out, config()).expect("our records always encode");
    out
}

/// The record of these bytes; all of them must belong to it.
///
/// # Errors
/// [`Error`], never a panic, whatever the bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let what = std::any::type_name::<T>();
    let (&format, body) = bytes.split_first().ok_or(Error::Empty(what))?;
    if format != FORMAT {
        return Err(Error::Format { what, got: format });
    }
    let damaged = |reason: String| Error::Damaged { what, bytes: bytes.len(), reason };
    let (record, used) = bincode::serde::decode_from_slice(body, config()).map_err(|e| damaged(e.to_string()))?;
    if used != body.len() {
        return Err(damaged(format!("{} bytes left over", body.len() - used)));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_every_prefix_is_refused() {
        let record = (7u64, String::from("weights"), vec![1u32, 2, 300]);
        let bytes = encode(&record);
        assert_eq!(decode::<(u64, String, Vec<u32>)>(&bytes).unwrap(), record);
        for cut in 0..bytes.len() {
            assert!(decode::<(u64, String, Vec<u32>)>(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn other_formats_and_trailing_bytes_are_named() {
        let mut bytes = encode(&5u32);
        bytes.push(0);
        assert!(matches!(decode::<u32>(&bytes), Err(Error::Damaged { .. })));
        bytes[0] = 9;
        assert!(matches!(decode::<u32>(&bytes), Err(Error::Format { got: 9, .. })));
    }
}
