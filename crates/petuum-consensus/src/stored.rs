//! What a store says of a group before the group is started: a node shows it to its peers at each boot (P21).

use crate::record::Ballot;
use petuum_storage::{Record, Store};
use petuum_types::{Error, ErrorKind, GroupId, codec};

/// A group's position on this node's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredPosition {
    /// The last entry of its log, 0 for none. Not monotone: a follower's tail may be cut.
    pub last_index: u64,
    /// The term of its vote, 0 for none. Only grows on one disk.
    pub term: u64,
}

/// Reads a group's position.
///
/// # Errors
/// [`ErrorKind::Storage`] if the store cannot be read or holds something else.
pub fn stored_position(store: &Store, group: GroupId) -> Result<StoredPosition, Error> {
    let records = store.group(group);
    let last_index = records.last()?.map_or(0, |(index, _)| index);
    let damaged = |e: codec::Error| Error::new(ErrorKind::Storage, format!("{group}: its vote: {e}"));
    let ballot: Option<Ballot> =
        records.get_record(Record::Vote)?.map(|bytes| codec::decode(&bytes)).transpose().map_err(damaged)?;
    Ok(StoredPosition { last_index, term: ballot.map_or(0, |ballot| ballot.term) })
}
