//! One group's small records, and its end.

use crate::group::Bounds;
use crate::keys::{self, Family};
use crate::{Error, GroupStore, Record, SyncDone};
use bytes::Bytes;

impl GroupStore {
    /// Writes a record, readable at return. `done` is called after the next sync.
    ///
    /// # Errors
    /// If the store failed; `done` has then been called with the error.
    ///
    /// # Panics
    /// On [`Record::Purged`], which only [`GroupStore::purge`] writes.
    pub fn put_record(&self, record: Record, bytes: &[u8], done: Option<SyncDone>) -> Result<(), Error> {
        assert!(record != Record::Purged, "the purge record is written together with the entries it speaks of");
        self.change(done, |batch, _| {
            batch.put(Family::Meta, &keys::record(self.group, record), bytes);
            Ok(())
        })
    }

    /// A record, if it was ever written.
    ///
    /// # Errors
    /// If the store failed.
    pub fn get_record(&self, record: Record) -> Result<Option<Bytes>, Error> {
        match record {
            Record::Purged => Ok(self.purged()?.map(|(_, marker)| marker)),
            record => self.engine().get(Family::Meta, &keys::record(self.group, record)),
        }
    }

    /// Removes log, records and snapshots of the group in one atomic write. Readers of its snapshots get errors.
    /// Nobody else may be writing to the group.
    ///
    /// # Errors
    /// If the store failed.
    pub fn destroy(&self) -> Result<(), Error> {
        let outcome = self.change(None, |batch, bounds| {
            let (first, last) = (keys::log(self.group, bounds.floor()), keys::log(self.group, u64::MAX));
            batch.delete_range(Family::Log, (&first, &last));
            let (first, last) = keys::records(self.group);
            batch.delete_range(Family::Meta, (&first, &last));
            let (first, last) = (keys::piece(self.group, 0, 0), keys::piece(self.group, u64::MAX, u32::MAX));
            batch.delete_range(Family::State, (&first, &last));
            *bounds = Bounds { purged: None, live: None };
            Ok(())
        });
        if outcome.is_ok() {
            self.store.shared().snapshots.forget(self.group);
        }
        outcome
    }
}
