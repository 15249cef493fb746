//! One group's log. Its records are in `record`, its snapshots in `snapshot`.
//!
//! The log is a run of entries without a hole, from behind the purged index (or from wherever it was begun) to its
//! last. What a group knows of the ends is kept in memory, so that a search never starts in front of the first live
//! entry, where deleted keys lie.

use crate::engine::{Batch, Engine};
use crate::keys::{self, Family};
use crate::{Error, Record, Store, SyncDone};
use bytes::Bytes;
use petuum_types::GroupId;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

/// The ends of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) purged: Option<u64>,
    /// First and last entry, both included.
    pub(crate) live: Option<(u64, u64)>,
}

impl Bounds {
    /// The least index that may be in the log.
    pub(crate) fn floor(&self) -> u64 {
        self.purged.map_or(0, |purged| purged.saturating_add(1))
    }

    /// The index of the next entry; an empty log that was never purged begins anywhere.
    fn next(&self) -> Option<u64> {
        match self.live {
            Some((_, last)) => Some(last.saturating_add(1)),
            None => self.purged.map(|_| self.floor()),
        }
    }
}

/// What all handles of a group share.
#[derive(Default)]
pub(crate) struct GroupState {
    /// Held while the group is written, so that its writes have one order.
    writer: Mutex<()>,
    /// Held for a moment. `None` until first needed.
    bounds: Mutex<Option<Bounds>>,
}

/// One group's part of a store: log, records, snapshots. Clones are handles to the same group.
#[derive(Clone)]
pub struct GroupStore {
    pub(crate) store: Store,
    pub(crate) group: GroupId,
    state: Arc<GroupState>,
}

impl GroupStore {
    pub(crate) fn new(store: Store, group: GroupId, state: Arc<GroupState>) -> Self {
        Self { store, group, state }
    }

    /// The group.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.group
    }

    /// The store this is a part of.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether the store may still be used; cheap enough for every call.
    ///
    /// # Errors
    /// [`Error::Poisoned`] with the first failure if a write or a sync ever failed (P22), [`Error::Closed`].
    pub fn check(&self) -> Result<(), Error> {
        self.engine().queue.check()
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.store.engine()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.state.writer.lock().expect("nothing panics while it is held")
    }

    fn bounds(&self) -> Result<Bounds, Error> {
        let mut bounds = self.state.bounds.lock().expect("nothing panics while it is held");
        if let Some(bounds) = *bounds {
            return Ok(bounds);
        }
        Ok(*bounds.insert(self.load_bounds()?))
    }

    fn load_bounds(&self) -> Result<Bounds, Error> {
        let purged = self.purged()?.map(|(index, _)| index);
        let mut bounds = Bounds { purged, live: None };
        let range = (&keys::log(self.group, bounds.floor())[..], &keys::log(self.group, u64::MAX)[..]);
        let mut first = None;
        self.engine().scan(Family::Log, range, |key, _| {
            first = Some(self.index(key)?);
            Ok(ControlFlow::Break(()))
        })?;
        let Some(first) = first else { return Ok(bounds) };
        if let Some(expected) = bounds.next().filter(|expected| *expected != first) {
            return Err(self.hole(expected, Some(first)));
        }
        let last = self.engine().last_key(Family::Log, range)?.map_or(Ok(first), |key| self.index(&key))?;
        bounds.live = Some((first, last));
        Ok(bounds)
    }

    /// Runs a write that changes the ends of the log; they are changed only if it succeeded.
    pub(crate) fn change(
        &self,
        done: Option<SyncDone>,
        write: impl FnOnce(&mut Batch<'_>, &mut Bounds) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let locked = || {
            let _writer = self.lock();
            let mut bounds = self.bounds()?;
            self.engine().write(|batch| write(batch, &mut bounds))?;
            *self.state.bounds.lock().expect("nothing panics while it is held") = Some(bounds);
            Ok(())
        };
        let outcome = locked();
        self.engine().queue.finish(outcome, done)
    }

    fn index(&self, key: &[u8]) -> Result<u64, Error> {
        keys::log_index(key).ok_or_else(|| self.damaged("the log", format!("a key of {} bytes", key.len())))
    }

    fn hole(&self, index: u64, found: Option<u64>) -> Error {
        Error::Hole { dir: self.engine().dir.clone(), group: self.group, index, found }
    }

    pub(crate) fn damaged(&self, what: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Damaged {
            dir: self.engine().dir.clone(),
            group: Some(self.group),
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// Appends entries, in order of their indices, in one atomic write. They are readable at return; `done` is called
    /// after the next sync.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if they do not follow the log's last (nothing is written), or the store failed. `done`
    /// has then been called with the error.
    pub fn append<B: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (u64, B)>,
        done: SyncDone,
    ) -> Result<(), Error> {
        self.change(Some(done), |batch, bounds| {
            for (index, entry) in entries {
                if let Some(expected) = bounds.next().filter(|expected| *expected != index) {
                    let dir = self.engine().dir.clone();
                    return Err(Error::OutOfOrder { dir, group: self.group, expected, got: index });
                }
                batch.put(Family::Log, &keys::log(self.group, index), entry.as_ref());
                bounds.live = Some((bounds.live.map_or(index, |(first, _)| first), index));
            }
            Ok(())
        })
    }

    /// Entries `from..end` that lie behind one another, at least one and then as many as stay within `max_bytes`;
    /// fewer if the log ends. Nothing for an empty range.
    ///
    /// # Errors
    /// [`Error::Hole`] if `from`, or an entry behind it that is not the log's end, is missing.
    pub fn read(&self, from: u64, end: u64, max_bytes: usize) -> Result<Vec<(u64, Bytes)>, Error> {
        let mut entries: Vec<(u64, Bytes)> = Vec::new();
        if from >= end {
            return Ok(entries);
        }
        let bounds = self.bounds()?;
        if from < bounds.floor() {
            return Err(self.hole(from, bounds.live.map(|(first, _)| first)));
        }
        let (mut next, mut bytes) = (from, 0usize);
        let range = (&keys::log(self.group, from)[..], &keys::log(self.group, end)[..]);
        self.engine().scan(Family::Log, range, |key, entry| {
            let index = self.index(key)?;
            if index != next {
                return Err(self.hole(next, Some(index)));
            }
            bytes = bytes.saturating_add(entry.len());
            if bytes > max_bytes && !entries.is_empty() {
                return Ok(ControlFlow::Break(()));
            }
            entries.push((index, Bytes::copy_from_slice(entry)));
            next += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        if entries.is_empty() { Err(self.hole(from, None)) } else { Ok(entries) }
    }

    /// The index of the first entry.
    ///
    /// # Errors
    /// If the store failed or the log has a hole at its beginning.
    pub fn first(&self) -> Result<Option<u64>, Error> {
        Ok(self.bounds()?.live.map(|(first, _)| first))
    }

    /// The last entry.
    ///
    /// # Errors
    /// If the store failed or the log has a hole at its beginning.
    pub fn last(&self) -> Result<Option<(u64, Bytes)>, Error> {
        loop {
            let bounds = self.bounds()?;
            let Some((_, last)) = bounds.live else { return Ok(None) };
            if let Some(entry) = self.engine().get(Family::Log, &keys::log(self.group, last))? {
                return Ok(Some((last, entry)));
            }
            // Purged or truncated between the two looks, or lost.
            if self.bounds()? == bounds {
                return Err(self.hole(last, None));
            }
        }
    }

    /// Removes every entry behind `last_kept`; `None` removes all. What is appended afterwards lies behind it in the
    /// one WAL, of which a crash leaves a prefix: the append never survives without the truncation, which therefore
    /// needs no sync of its own.
    ///
    /// # Errors
    /// If the store failed.
    pub fn truncate_after(&self, last_kept: Option<u64>) -> Result<(), Error> {
        self.change(None, |batch, bounds| {
            let Some((first, last)) = bounds.live else { return Ok(()) };
            let from = last_kept.map_or(0, |kept| kept.saturating_add(1)).max(first);
            if from <= last {
                batch.delete_span(Family::Log, (from, last), |index| keys::log(self.group, index));
                bounds.live = (from > first).then(|| (first, from - 1));
            }
            Ok(())
        })
    }

    /// Removes every entry up to and with `upto` and remembers that with the caller's marker, in one atomic write.
    /// The log may end before `upto`, as after a snapshot of a peer: it then goes on behind `upto`. A lower `upto`
    /// than before changes nothing.
    ///
    /// # Errors
    /// [`Error::Hole`] if the log begins behind `upto + 1`, or the store failed.
    pub fn purge(&self, upto: u64, marker: &[u8]) -> Result<(), Error> {
        self.change(None, |batch, bounds| {
            if bounds.purged.is_some_and(|purged| upto < purged) {
                return Ok(());
            }
            if let Some((first, _)) = bounds.live.filter(|(first, _)| first.saturating_sub(1) > upto) {
                return Err(self.hole(upto + 1, Some(first)));
            }
            let record = [&upto.to_be_bytes(), marker].concat();
            batch.put(Family::Meta, &keys::record(self.group, Record::Purged), &record);
            if let Some((first, last)) = bounds.live.filter(|(first, _)| *first <= upto) {
                batch.delete_span(Family::Log, (first, upto.min(last)), |index| keys::log(self.group, index));
                bounds.live = (upto < last).then(|| (upto + 1, last));
            }
            bounds.purged = Some(upto);
            Ok(())
        })
    }

    /// How far the log is purged, and the marker given then.
    ///
    /// # Errors
    /// If the store failed or the record is damaged.
    pub fn purged(&self) -> Result<Option<(u64, Bytes)>, Error> {
        let Some(record) = self.engine().get(Family::Meta, &keys::record(self.group, Record::Purged))? else {
            return Ok(None);
        };
        let upto = record.first_chunk().ok_or_else(|| self.damaged("the purge record", "shorter than 8 bytes"))?;
        Ok(Some((u64::from_be_bytes(*upto), record.slice(8..))))
    }
}
