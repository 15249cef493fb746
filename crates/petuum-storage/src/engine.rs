//! The only file that calls RocksDB on an open database. Everything goes through [`Engine::read`], which refuses a
//! store that failed, and [`Engine::write`], one atomic batch.
//!
//! It knows families, keys and bytes; what they mean is its callers'.

use crate::Error;
use crate::keys::Family;
use crate::queue::Queue;
use bytes::Bytes;
use rocksdb::{ColumnFamily, DBWithThreadMode, FlushOptions, ReadOptions, SingleThreaded, WriteBatch, WriteOptions};
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

type Db = DBWithThreadMode<SingleThreaded>;

/// Up to here keys are deleted one by one; a range tombstone costs every later iterator more than these do.
const POINT_DELETES_MAX: u64 = 128;

/// The database, and the lock on its directory, which is let go after it.
struct Open {
    db: Db,
    _lock: Option<File>,
}

pub(crate) struct Engine {
    pub(crate) dir: Arc<str>,
    pub(crate) queue: Queue,
    /// `None` once closed.
    db: RwLock<Option<Open>>,
    /// The sequence number up to which the log is known to be durable; every write carries it (see `wal`).
    floor: AtomicU64,
}

impl Engine {
    pub(crate) fn new(dir: Arc<str>, db: Db, lock: Option<File>) -> Self {
        let open = Open { db, _lock: lock };
        Self { queue: Queue::new(dir.clone()), dir, db: RwLock::new(Some(open)), floor: AtomicU64::new(0) }
    }

    pub(crate) fn error(&self, doing: &'static str) -> impl FnOnce(rocksdb::Error) -> Error {
        let dir = self.dir.clone();
        move |error| Error::RocksDb { dir, doing, reason: error.into_string() }
    }

    fn with_db<T>(&self, call: impl FnOnce(&Db) -> Result<T, Error>) -> Result<T, Error> {
        // A panic under the read lock cannot leave RocksDB half done.
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let open = db.as_ref().ok_or_else(|| Error::Closed { dir: self.dir.clone() })?;
        call(&open.db)
    }

    fn read<T>(&self, call: impl FnOnce(&Db) -> Result<T, Error>) -> Result<T, Error> {
        self.queue.check()?;
        let found = self.with_db(call)?;
        // What was read may include rows that a sync failed to make durable meanwhile.
        self.queue.check()?;
        Ok(found)
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.read(|db| {
            let found = db.get_pinned_cf(handle(db, family), key).map_err(self.error("read a key"))?;
            Ok(found.map(|value| Bytes::copy_from_slice(&value)))
        })
    }

    /// Visits keys and values of `from..end` in order until told to stop.
    pub(crate) fn scan(
        &self,
        family: Family,
        (from, end): (&[u8], &[u8]),
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.read(|db| {
            let mut options = ReadOptions::default();
            options.set_iterate_upper_bound(end);
            let mut rows = db.raw_iterator_cf_opt(handle(db, family), options);
            rows.seek(from);
            while let Some((key, value)) = rows.item() {
                if visit(key, value)?.is_break() {
                    return Ok(());
                }
                rows.next();
            }
            rows.status().map_err(self.error("read a range"))
        })
    }

    /// The last key of `from..end`.
    pub(crate) fn last_key(&self, family: Family, (from, end): (&[u8], &[u8])) -> Result<Option<Vec<u8>>, Error> {
        self.read(|db| {
            let mut options = ReadOptions::default();
            options.set_iterate_lower_bound(from);
            options.set_iterate_upper_bound(end);
            let mut rows = db.raw_iterator_cf_opt(handle(db, family), options);
            rows.seek_to_last();
            let last = rows.key().map(<[u8]>::to_vec);
            rows.status().map_err(self.error("read a range backwards"))?;
            Ok(last)
        })
    }

    /// Writes one atomic batch: readable at return, durable after the next sync. If RocksDB refuses, the store has
    /// failed; the caller lets go of its locks and then calls [`Queue::finish`].
    pub(crate) fn write(&self, fill: impl FnOnce(&mut Batch<'_>) -> Result<(), Error>) -> Result<(), Error> {
        self.write_opt(fill, &WriteOptions::default())
    }

    /// The same, durable at return.
    pub(crate) fn write_durably(&self, fill: impl FnOnce(&mut Batch<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.write_opt(fill, &options)
    }

    fn write_opt(
        &self,
        fill: impl FnOnce(&mut Batch<'_>) -> Result<(), Error>,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        self.queue.check()?;
        self.with_db(|db| {
            let mut batch = Batch { db, batch: self.floor_only() };
            fill(&mut batch)?;
            if batch.batch.is_empty() {
                return Ok(());
            }
            db.write_opt(batch.batch, options).map_err(self.error("write")).inspect_err(|error| self.queue.fail(error))
        })
    }

    /// An empty batch that tells the log how much of it is durable. It takes no sequence number.
    fn floor_only(&self) -> WriteBatch {
        let mut batch = WriteBatch::default();
        batch.put_log_data(self.floor.load(Ordering::Acquire).to_le_bytes());
        batch
    }

    /// Makes everything durable that was written before the call. An error ends the store.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let sync = |db: &Db| {
            let written = db.latest_sequence_number();
            db.flush_wal(true).map_err(self.error("sync its log"))?;
            self.floor.fetch_max(written, Ordering::AcqRel);
            // Behind what was synced, so that damage to the last of it is noticed too.
            db.write(self.floor_only()).map_err(self.error("write"))
        };
        self.with_db(sync).inspect_err(|error| self.queue.fail(error))
    }

    /// Has a family's rows written to a table, in the background.
    pub(crate) fn begin_flush(&self, family: Family) -> Result<(), Error> {
        let mut options = FlushOptions::default();
        options.set_wait(false);
        let flush = |db: &Db| db.flush_cf_opt(handle(db, family), &options).map_err(self.error("flush"));
        self.with_db(flush).inspect_err(|error| self.queue.fail(error))
    }

    /// Closes RocksDB and frees the directory, once nobody is inside a call.
    pub(crate) fn release(&self) {
        let db = self.db.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(db);
    }
}

fn handle(db: &Db, family: Family) -> &ColumnFamily {
    db.cf_handle(family.name()).expect("the store was opened with every family")
}

/// Writes that take effect together.
pub(crate) struct Batch<'a> {
    db: &'a Db,
    batch: WriteBatch,
}

impl Batch<'_> {
    pub(crate) fn put(&mut self, family: Family, key: &[u8], value: &[u8]) {
        self.batch.put_cf(handle(self.db, family), key, value);
    }

    pub(crate) fn delete_range(&mut self, family: Family, (from, end): (&[u8], &[u8])) {
        self.batch.delete_range_cf(handle(self.db, family), from, end);
    }

    /// Deletes the keys of the numbers `first..=last`: one by one if they are few, else as a range.
    pub(crate) fn delete_span<K: AsRef<[u8]>>(
        &mut self,
        family: Family,
        (first, last): (u64, u64),
        key: impl Fn(u64) -> K,
    ) {
        if last - first < POINT_DELETES_MAX {
            (first..=last).for_each(|number| self.batch.delete_cf(handle(self.db, family), key(number)));
        } else {
            // The last key is deleted by itself, so that the range's open end needs no key behind it.
            self.delete_range(family, (key(first).as_ref(), key(last).as_ref()));
            self.batch.delete_cf(handle(self.db, family), key(last));
        }
    }
}
