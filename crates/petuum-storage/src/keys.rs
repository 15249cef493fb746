//! Every key of the store, and nothing else that knows their bytes. Integers are big endian, so that keys sort as the
//! numbers do. Tags are frozen: a new record gets a new number.
//!
//! ```text
//! log    0      4                12
//!        │group │ index          │                     → the entry, as it was appended
//!
//! meta   0  1      5  6
//!        │1 │group │tag│                                 → record of a group (see `Record`)
//!        0  1   2
//!        │0 │tag│                                        → record of the node (see `NodeRecord`)
//!        0  1   2                10
//!        │0 │tag│ node id        │                       → record of the node about a peer
//!
//! state  0      4                12      16
//!        │group │ snapshot number│ piece │               → CRC-32C of (key, piece) u32 BE, piece
//! ```
//!
//! The `purged` record is the last purged index (u64 BE) and the caller's marker; all others are the caller's bytes,
//! except those of `Format`, `Boot` and `Snapshot`, which are `petuum_types::codec` records.

use petuum_types::{GroupId, NodeId};

/// A column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Entries.
    Log,
    /// Small records.
    Meta,
    /// Snapshots' pieces.
    State,
}

impl Family {
    /// Every family of ours.
    pub(crate) const ALL: [Self; 3] = [Self::Log, Self::Meta, Self::State];

    /// Its name in RocksDB.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Meta => "meta",
            Self::State => "state",
        }
    }
}

/// A small record of one group. One each, overwritten in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Record {
    /// The group's vote.
    Vote,
    /// How far the group is known to be committed.
    Committed,
    /// How far the log is purged: the marker given to [`GroupStore::purge`](crate::GroupStore::purge), which alone
    /// writes it.
    Purged,
    /// What the node keeps about the group itself: members, placement.
    Group,
    /// A record whose meaning the caller gives; 256 of them.
    Extra(u8),
}

/// A small record of the node. One each, overwritten in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeRecord {
    /// Cluster, node id and whatever else names this directory (P21).
    Identity,
    /// What this node durably remembers of a peer's boots, logs and votes (P21).
    Peer(NodeId),
    /// A record whose meaning the caller gives; 256 of them.
    Extra(u8),
}

const NODE: u8 = 0;
const GROUP: u8 = 1;

/// The snapshot that is current in a group.
const SNAPSHOT: u8 = 5;
const EXTRA: u8 = 0xff;

/// The format of the whole store.
pub(crate) const FORMAT_KEY: [u8; 2] = [NODE, 1];
/// The number and nonce of the last start.
pub(crate) const BOOT_KEY: [u8; 2] = [NODE, 3];

/// `log`: an entry.
pub(crate) fn log(group: GroupId, index: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&group.0.to_be_bytes());
    key[4..].copy_from_slice(&index.to_be_bytes());
    key
}

/// The index in a key of `log`, or `None` if it is not one.
pub(crate) fn log_index(key: &[u8]) -> Option<u64> {
    let key: &[u8; 12] = key.try_into().ok()?;
    Some(u64::from_be_bytes(key[4..].try_into().expect("8 of 12 bytes")))
}

/// `meta`: a record of a group.
pub(crate) fn record(group: GroupId, record: Record) -> Vec<u8> {
    match record {
        Record::Vote => group_key(group, &[1]),
        Record::Committed => group_key(group, &[2]),
        Record::Purged => group_key(group, &[3]),
        Record::Group => group_key(group, &[4]),
        Record::Extra(number) => group_key(group, &[EXTRA, number]),
    }
}

/// `meta`: the snapshot that is current in a group.
pub(crate) fn current_snapshot(group: GroupId) -> Vec<u8> {
    group_key(group, &[SNAPSHOT])
}

/// `meta`: all records of a group, as a half-open range.
pub(crate) fn records(group: GroupId) -> (Vec<u8>, Vec<u8>) {
    // No tag is followed by more than one byte, so three bytes of 0xff are behind every record.
    (group_key(group, &[]), group_key(group, &[0xff; 3]))
}

fn group_key(group: GroupId, tail: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(8);
    key.push(GROUP);
    key.extend_from_slice(&group.0.to_be_bytes());
    key.extend_from_slice(tail);
    key
}

/// `meta`: a record of the node.
pub(crate) fn node_record(record: NodeRecord) -> Vec<u8> {
    match record {
        NodeRecord::Identity => vec![NODE, 2],
        NodeRecord::Peer(node) => {
            let mut key = vec![NODE, 4];
            key.extend_from_slice(&node.0.to_be_bytes());
            key
        }
        NodeRecord::Extra(number) => vec![NODE, EXTRA, number],
    }
}

/// `meta`: all records about peers, as a half-open range.
pub(crate) fn peers() -> ([u8; 2], [u8; 2]) {
    ([NODE, 4], [NODE, 5])
}

/// The peer in a key of `meta`, or `None` if it is not a record about one.
pub(crate) fn peer(key: &[u8]) -> Option<NodeId> {
    let key: &[u8; 10] = key.try_into().ok()?;
    (key[..2] == [NODE, 4]).then(|| NodeId(u64::from_be_bytes(key[2..].try_into().expect("8 of 10 bytes"))))
}

/// `state`: a piece of a snapshot.
pub(crate) fn piece(group: GroupId, snapshot: u64, piece: u32) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&group.0.to_be_bytes());
    key[4..12].copy_from_slice(&snapshot.to_be_bytes());
    key[12..].copy_from_slice(&piece.to_be_bytes());
    key
}

/// Group and snapshot number in a key of `state`, or `None` if it is not one.
pub(crate) fn piece_owner(key: &[u8]) -> Option<(GroupId, u64)> {
    let key: &[u8; 16] = key.try_into().ok()?;
    let group = u32::from_be_bytes(key[..4].try_into().expect("4 of 16 bytes"));
    Some((GroupId(group), u64::from_be_bytes(key[4..12].try_into().expect("8 of 16 bytes"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn golden() {
        let group = GroupId(0x0102_0304);
        assert_eq!(hex(&log(group, 0x0a0b)), "010203040000000000000a0b");
        assert_eq!(hex(&piece(group, 7, 9)), "01020304000000000000000700000009");
        assert_eq!(hex(&record(group, Record::Vote)), "010102030401");
        assert_eq!(hex(&record(group, Record::Committed)), "010102030402");
        assert_eq!(hex(&record(group, Record::Purged)), "010102030403");
        assert_eq!(hex(&record(group, Record::Group)), "010102030404");
        assert_eq!(hex(&current_snapshot(group)), "010102030405");
        assert_eq!(hex(&record(group, Record::Extra(8))), "0101020304ff08");
        assert_eq!(hex(&FORMAT_KEY), "0001");
        assert_eq!(hex(&node_record(NodeRecord::Identity)), "0002");
        assert_eq!(hex(&BOOT_KEY), "0003");
        assert_eq!(hex(&node_record(NodeRecord::Peer(NodeId(5)))), "00040000000000000005");
        assert_eq!(hex(&node_record(NodeRecord::Extra(1))), "00ff01");
        assert_eq!(Family::ALL.map(Family::name), ["log", "meta", "state"]);
    }

    #[test]
    fn keys_sort_as_their_numbers_and_read_back() {
        let ends = [0, 1, 255, 256, u32::MAX];
        for low in ends {
            for high in ends.into_iter().filter(|high| *high > low) {
                assert!(log(GroupId(low), u64::MAX) < log(GroupId(high), 0));
                assert!(log(GroupId(1), u64::from(low)) < log(GroupId(1), u64::from(high)));
                assert!(piece(GroupId(low), u64::MAX, u32::MAX) < piece(GroupId(high), 0, 0));
                assert!(piece(GroupId(1), u64::from(low), u32::MAX) < piece(GroupId(1), u64::from(high), 0));
            }
            assert_eq!(log_index(&log(GroupId(low), 77)), Some(77));
            assert_eq!(piece_owner(&piece(GroupId(low), 77, 3)), Some((GroupId(low), 77)));
        }
        assert_eq!(log_index(b"short"), None);
        assert_eq!(piece_owner(b"short"), None);
        assert_eq!(peer(&node_record(NodeRecord::Peer(NodeId(300)))), Some(NodeId(300)));
        assert_eq!(peer(&node_record(NodeRecord::Identity)), None);
    }

    #[test]
    fn a_groups_records_lie_in_its_range_and_in_no_other() {
        let all =
            [Record::Vote, Record::Committed, Record::Purged, Record::Group, Record::Extra(0), Record::Extra(255)];
        for group in [0, 1, 255, u32::MAX] {
            let (from, end) = records(GroupId(group));
            let (next, _) = records(GroupId(group.wrapping_add(1)));
            assert!(group == u32::MAX || end < next);
            for key in all.map(|r| record(GroupId(group), r)).into_iter().chain([current_snapshot(GroupId(group))]) {
                assert!(from < key && key < end, "{}", hex(&key));
            }
        }
    }
}
