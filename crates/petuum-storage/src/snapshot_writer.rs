//! Writing a snapshot, piece by piece, and making it the current one. How it is kept is told in `snapshot`.

use crate::keys::{self, Family};
use crate::snapshot::{CRC_BYTES, Current, current, piece_crc};
use crate::{Error, GroupStore, SyncDone};
use petuum_types::codec;
use std::sync::Arc;

impl GroupStore {
    /// Begins a snapshot. It is seen by nobody before [`SnapshotWriter::publish`] and gone if that is never called.
    ///
    /// # Errors
    /// If the store failed.
    pub fn begin_snapshot(&self) -> Result<SnapshotWriter, Error> {
        let shared = self.store.shared();
        let least = current(&shared.engine, self.group)?.map_or(1, |current| current.number + 1);
        let number = shared.snapshots.number(self.group, least);
        Ok(SnapshotWriter { store: self.clone(), number, pieces: 0, bytes: 0, crc: 0, published: false })
    }
}

/// A snapshot being written. Dropped without [`SnapshotWriter::publish`], it removes its pieces.
pub struct SnapshotWriter {
    store: GroupStore,
    number: u64,
    pieces: u32,
    bytes: u64,
    crc: u32,
    published: bool,
}

impl SnapshotWriter {
    /// Adds a piece. Small ones (1 MiB) keep votes and acknowledgements of other groups flowing.
    ///
    /// # Errors
    /// If the store failed.
    ///
    /// # Panics
    /// After 2^32 - 1 pieces.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        let key = keys::piece(self.store.group, self.number, self.pieces);
        let next = self.pieces.checked_add(1).expect("a snapshot has fewer than 2^32 pieces");
        let mut value = Vec::with_capacity(CRC_BYTES + piece.len());
        value.extend_from_slice(&piece_crc(&key, piece).to_be_bytes());
        value.extend_from_slice(piece);
        let engine = self.store.store.engine();
        let outcome = engine.write(|batch| {
            batch.put(Family::State, &key, &value);
            Ok(())
        });
        engine.queue.finish(outcome, None)?;
        self.pieces = next;
        self.bytes += piece.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, piece);
        Ok(())
    }

    /// Makes this the group's current snapshot, with the caller's manifest, in one small write; `done` is called
    /// when it is durable. The snapshot before it is then deleted.
    ///
    /// # Errors
    /// If the store failed; `done` has then been called with the error.
    pub fn publish(mut self, manifest: &[u8], done: SyncDone) -> Result<(), Error> {
        let shared = self.store.store.shared();
        let record = Current {
            number: self.number,
            pieces: self.pieces,
            bytes: self.bytes,
            crc: self.crc,
            manifest: manifest.to_vec(),
        };
        let write = || {
            let _writer = self.store.lock();
            let replaced = current(&shared.engine, self.store.group)?;
            shared.engine.write(|batch| {
                batch.put(Family::Meta, &keys::current_snapshot(self.store.group), &codec::encode(&record));
                Ok(())
            })?;
            Ok(replaced)
        };
        let (outcome, replaced) = match write() {
            Ok(replaced) => (Ok(()), replaced),
            Err(error) => (Err(error), None),
        };
        self.published = outcome.is_ok();
        // Weak: the queue must not keep the store open.
        let (weak, group) = (Arc::downgrade(shared), self.store.group);
        let retire_and_tell: SyncDone = Box::new(move |outcome: Result<(), Error>| {
            if let (Ok(()), Some(old), Some(shared)) = (&outcome, replaced, weak.upgrade()) {
                shared.retire(group, old.number, old.pieces);
            }
            done(outcome);
        });
        shared.engine.queue.finish(outcome, Some(retire_and_tell))
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.published {
            self.store.store.shared().delete_pieces(self.store.group, self.number, self.pieces);
        }
    }
}
