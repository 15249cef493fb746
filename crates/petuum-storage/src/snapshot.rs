//! Snapshots of a group as numbered pieces: reading them, and deleting them when nobody does; writing them is
//! `snapshot_writer`'s. A later storage may publish checkpoints of tables instead; callers see
//! pieces all the same.
//!
//! ```text
//! write    push, push, push      pieces of a new number: nobody reads them; a crash here leaves what `open` removes
//! publish  one small batch       the record "number 7 is current: pieces, bytes, CRC-32C, manifest"
//! synced   callback              the old snapshot's pieces are deleted, when its last reader is gone
//! ```
//!
//! Invariants: a published snapshot has all its pieces; a snapshot is not deleted while a [`Snapshot`] of it exists,
//! nor before its successor is durable; a number is never reused while the store is open.

use crate::engine::Engine;
use crate::keys::{self, Family};
use crate::store::Shared;
use crate::{Error, GroupStore};
use bytes::Bytes;
use petuum_types::{GroupId, codec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Before each piece.
pub(crate) const CRC_BYTES: usize = 4;

/// The record of the current snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Current {
    pub(crate) number: u64,
    pub(crate) pieces: u32,
    pub(crate) bytes: u64,
    /// CRC-32C of all pieces, one behind the other.
    pub(crate) crc: u32,
    pub(crate) manifest: Vec<u8>,
}

/// The record of a group's current snapshot.
pub(crate) fn current(engine: &Engine, group: GroupId) -> Result<Option<Current>, Error> {
    let Some(record) = engine.get(Family::Meta, &keys::current_snapshot(group))? else { return Ok(None) };
    codec::decode(&record).map(Some).map_err(|error| Error::Damaged {
        dir: engine.dir.clone(),
        group: Some(group),
        what: "the record of the current snapshot".to_owned(),
        reason: error.to_string(),
    })
}

/// Who reads which snapshot, and which go when nobody does.
#[derive(Default)]
pub(crate) struct Snapshots {
    groups: Mutex<BTreeMap<GroupId, Group>>,
}

#[derive(Default)]
struct Group {
    /// Above every number given out since the store was opened.
    next: u64,
    readers: BTreeMap<u64, usize>,
    /// Replaced but still read: number and pieces.
    retired: BTreeMap<u64, u32>,
}

impl Snapshots {
    fn with<T>(&self, group: GroupId, call: impl FnOnce(&mut Group) -> T) -> T {
        let mut groups = self.groups.lock().expect("nothing panics while it is held");
        call(groups.entry(group).or_default())
    }

    /// A number that was not given out since the store was opened, and at least `least`.
    pub(crate) fn number(&self, group: GroupId, least: u64) -> u64 {
        self.with(group, |group| {
            let number = group.next.max(least);
            group.next = number + 1;
            number
        })
    }

    /// Numbers stay used: a reader of a destroyed group must not find another's pieces under its number.
    pub(crate) fn forget(&self, group: GroupId) {
        self.with(group, |group| group.retired.clear());
    }
}

impl Shared {
    /// Deletes a replaced snapshot, now or when its last reader goes.
    pub(crate) fn retire(&self, group: GroupId, number: u64, pieces: u32) {
        let deferred = self.snapshots.with(group, |group| {
            let read = group.readers.contains_key(&number);
            if read {
                group.retired.insert(number, pieces);
            }
            read
        });
        if !deferred {
            self.delete_pieces(group, number, pieces);
        }
    }

    fn unpin(&self, group: GroupId, number: u64) {
        let retired = self.snapshots.with(group, |group| {
            let readers = group.readers.get_mut(&number).expect("it was pinned");
            *readers -= 1;
            if *readers > 0 {
                return None;
            }
            group.readers.remove(&number);
            group.retired.remove(&number)
        });
        if let Some(pieces) = retired {
            self.delete_pieces(group, number, pieces);
        }
    }

    pub(crate) fn delete_pieces(&self, group: GroupId, number: u64, pieces: u32) {
        let outcome = self.engine.write(|batch| {
            if let Some(last) = pieces.checked_sub(1) {
                let key = |piece| keys::piece(group, number, u32::try_from(piece).expect("below `pieces`"));
                batch.delete_span(Family::State, (0, u64::from(last)), key);
            }
            Ok(())
        });
        // Not lost if it failed: whoever waits on a failed store is told, and the next open removes the pieces.
        let _told = self.engine.queue.finish(outcome, None);
    }
}

impl GroupStore {
    /// The snapshot published last. It stays readable, whatever is published meanwhile, until it is dropped.
    ///
    /// # Errors
    /// If the store failed or the record is damaged.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        let shared = self.store.shared();
        // Pinned under the lock that deleting looks at, so that what was just read is not deleted in between.
        let found = shared.snapshots.with(self.group, |group| {
            let found = current(&shared.engine, self.group)?;
            if let Some(current) = &found {
                *group.readers.entry(current.number).or_default() += 1;
            }
            Ok(found)
        })?;
        Ok(found.map(|current| Snapshot { pin: Arc::new(Pin { store: self.clone(), current }) }))
    }
}

/// The key is summed too, so that a piece in another's place is noticed.
pub(crate) fn piece_crc(key: &[u8], piece: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), piece)
}

struct Pin {
    store: GroupStore,
    current: Current,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.store.store.shared().unpin(self.store.group, self.current.number);
    }
}

/// A published snapshot. Clones are handles to the same.
#[derive(Clone)]
pub struct Snapshot {
    pin: Arc<Pin>,
}

impl Snapshot {
    /// What was given to [`SnapshotWriter::publish`](crate::SnapshotWriter::publish).
    #[must_use]
    pub fn manifest(&self) -> &[u8] {
        &self.pin.current.manifest
    }

    /// How many pieces it has.
    #[must_use]
    pub fn piece_count(&self) -> u32 {
        self.pin.current.pieces
    }

    /// Bytes of all pieces.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pin.current.bytes
    }

    /// CRC-32C of all pieces, one behind the other.
    #[must_use]
    pub fn crc(&self) -> u32 {
        self.pin.current.crc
    }

    /// One piece, checked; `number` is below [`Snapshot::piece_count`].
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is missing or not what was written, or the store failed.
    pub fn piece(&self, number: u32) -> Result<Bytes, Error> {
        let Pin { store, current } = &*self.pin;
        let what = || format!("piece {number} of {} of snapshot {}", current.pieces, current.number);
        let key = keys::piece(store.group, current.number, number);
        let value = store.store.engine().get(Family::State, &key)?;
        let mut value = value.ok_or_else(|| store.damaged(what(), "it is missing"))?;
        if value.len() < CRC_BYTES {
            return Err(store.damaged(what(), format!("{} bytes are too few", value.len())));
        }
        let piece = value.split_off(CRC_BYTES);
        let (expected, got) = (piece_crc(&key, &piece).to_be_bytes(), value);
        if got[..] != expected {
            return Err(store.damaged(what(), format!("its CRC is {expected:02x?}, but {:02x?} was written", &got[..])));
        }
        Ok(piece)
    }

    /// All pieces in order, checked one by one and, at the end, together. Ends with the first error.
    #[must_use]
    pub fn pieces(&self) -> Pieces {
        Pieces { snapshot: self.clone(), next: 0, crc: 0 }
    }
}

/// Iterator over a snapshot's pieces; it keeps the snapshot.
pub struct Pieces {
    snapshot: Snapshot,
    next: u32,
    crc: u32,
}

impl Iterator for Pieces {
    type Item = Result<Bytes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Pin { store, current } = &*self.snapshot.pin;
        if self.next == current.pieces {
            return None;
        }
        let piece = self.snapshot.piece(self.next).and_then(|piece| {
            self.crc = crc32c::crc32c_append(self.crc, &piece);
            let last = self.next + 1 == current.pieces;
            if last && self.crc != current.crc {
                let reason = format!("the pieces' CRC is {:08x}, but {:08x} was published", self.crc, current.crc);
                return Err(store.damaged(format!("snapshot {}", current.number), reason));
            }
            Ok(piece)
        });
        self.next = if piece.is_ok() { self.next + 1 } else { current.pieces };
        Some(piece)
    }
}
