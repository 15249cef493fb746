//! The whole state as bytes: what a member sends to one that is behind, and starts from.
//!
//! ```text
//! version u8 = 1 | CRC-32C of the record, u32 little endian | record of the state
//! ```
//! [`crate::limits`] bounds the record.

use crate::state::Control;
use petuum_types::{checksum, codec};

/// The first byte.
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 5;

/// Why bytes are no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Shorter than its header.
    #[error("a control snapshot of {0} bytes; expected at least {HEADER_BYTES}")]
    Short(usize),
    /// Written by another version.
    #[error("a control snapshot of version {0}; this version reads {VERSION}: use the version that wrote it")]
    Version(u8),
    /// Damaged (G9).
    #[error("a control snapshot of {bytes} bytes is damaged: checksum {got:08x}, expected {expected:08x}")]
    Checksum {
        /// Of the whole snapshot.
        bytes: usize,
        /// As it says.
        expected: u32,
        /// As computed.
        got: u32,
    },
    /// The record does not decode although its checksum is right.
    #[error(transparent)]
    Record(#[from] codec::Error),
}

impl Control {
    /// The snapshot's bytes; equal for equal states.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let record = codec::encode(self);
        let mut out = Vec::with_capacity(HEADER_BYTES + record.len());
        out.push(VERSION);
        out.extend_from_slice(&checksum::crc(&record).to_le_bytes());
        out.extend_from_slice(&record);
        out
    }

    /// The state of a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError`], never a panic, whatever the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let Some(([version, crc @ ..], record)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(SnapshotError::Short(bytes.len()));
        };
        if *version != VERSION {
            return Err(SnapshotError::Version(*version));
        }
        let (expected, got) = (u32::from_le_bytes(*crc), checksum::crc(record));
        if expected != got {
            return Err(SnapshotError::Checksum { bytes: bytes.len(), expected, got });
        }
        Ok(codec::decode(record)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{ControlCommand, JobSettings};
    use petuum_types::map::ShardMap;
    use petuum_types::{ClusterId, JobId, LogIndex, NodeId, RequestId, WorkerId};

    fn example() -> Control {
        let mut state = Control::new();
        let nodes = [(NodeId(1), "a:1".to_owned())].into_iter().collect();
        let map = ShardMap::spread(nodes, 1, 1).unwrap();
        state.apply(LogIndex(1), &ControlCommand::Form { cluster: ClusterId(9), map });
        let settings = JobSettings::default();
        let job = ControlCommand::CreateJob { request: RequestId(1), name: "j".into(), workers: 2, settings };
        state.apply(LogIndex(2), &job);
        let register =
            ControlCommand::Register { request: RequestId(2), job: JobId(1), worker: WorkerId(1), rejoin: false };
        state.apply(LogIndex(3), &register);
        state
    }

    #[test]
    fn golden_bytes() {
        let hex: String = example().encode().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, GOLDEN);
    }

    const GOLDEN: &str = concat!(
        "01080a83a1",
        "01030109010101",
        "03613a31",
        "010000fb001001010001010",
        "16a0102fb1027000001010100000100010201000000010001",
        "0001010101fd04000f1dae71b17a010101",
    );

    #[test]
    fn round_trip_and_damage_is_found() {
        let state = example();
        let bytes = state.encode();
        assert_eq!(Control::decode(&bytes).unwrap(), state);
        for end in 0..bytes.len() {
            assert!(Control::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Control::decode(&damaged).is_err(), "byte {at} flipped");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = example().encode();
        bytes[0] = 2;
        assert_eq!(Control::decode(&bytes), Err(SnapshotError::Version(2)));
    }
}
