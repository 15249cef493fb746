//! Opening and closing a node's store, and what a handle to it can do. Not here: the log and records of a group
//! (`group`), snapshots (`snapshot`), records of the node (`node`), the syncer (`syncer`).

use crate::engine::Engine;
use crate::group::{GroupState, GroupStore};
use crate::keys::Family;
use crate::options::{create_directory, lock_directory};
use crate::snapshot::Snapshots;
use crate::{Error, StoreOptions, SyncDone, keys, node, recovery};
use petuum_types::GroupId;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What handles and the syncer share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) snapshots: Snapshots,
    groups: Mutex<BTreeMap<GroupId, Arc<GroupState>>>,
    path: PathBuf,
    free_bytes: crate::FreeBytes,
}

/// The last handle that goes away closes the store. Apart from [`Shared`], which the syncer holds too.
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        close(&self.0);
    }
}

fn close(shared: &Shared) {
    let syncer_will = shared.engine.queue.close();
    if !syncer_will {
        shared.engine.release();
    }
}

/// A node's storage. Clones are handles to the same store.
#[derive(Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

impl Store {
    /// Opens the store in a directory, which is created if need be, as a crash or a clean end left it. Pieces of
    /// snapshots that were never published are removed.
    ///
    /// # Errors
    /// [`Error::Locked`] if it is open elsewhere, [`Error::Format`] if another version or another program wrote it,
    /// [`Error::Damaged`], [`Error::Io`] or [`Error::RocksDb`] if it cannot be read or written.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, Error> {
        let name: Arc<str> = dir.to_string_lossy().into();
        let mut lock = None;
        if options.env.is_none() {
            create_directory(dir, &name)?;
            lock = Some(lock_directory(dir, &name)?);
        }
        let engine = Engine::new(name.clone(), recovery::open_database(dir, &name, &options)?, lock);
        node::check_format(&engine)?;
        sweep_snapshots(&engine)?;
        let shared = Shared {
            engine,
            snapshots: Snapshots::default(),
            groups: Mutex::default(),
            path: dir.to_owned(),
            free_bytes: options.free_bytes,
        };
        Ok(Self { handle: Arc::new(Handle(Arc::new(shared))) })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.0
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.handle.0.engine
    }

    /// The part of a group, which need not exist yet.
    #[must_use]
    pub fn group(&self, group: GroupId) -> GroupStore {
        let mut groups = self.shared().groups.lock().expect("nothing panics while it is held");
        let state = groups.entry(group).or_default().clone();
        drop(groups);
        GroupStore::new(self.clone(), group, state)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.shared().path
    }

    /// Bytes free for this directory; admission compares it with its watermark (P22).
    ///
    /// # Errors
    /// [`Error::Io`]. The store goes on.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        (self.shared().free_bytes)(self.dir()).map_err(|source| Error::Io {
            dir: self.engine().dir.clone(),
            doing: "find its free space",
            source: Arc::new(source),
        })
    }

    /// Calls `done` when everything that was written before this call is durable, or with the reason why it is not.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Closed`]; `done` has been called with the same.
    pub fn sync(&self, done: SyncDone) -> Result<(), Error> {
        self.engine().queue.finish(Ok(()), Some(done))
    }

    /// [`Error::Poisoned`] with the first failure, if a write or a sync ever failed.
    #[must_use]
    pub fn poisoned(&self) -> Option<Error> {
        self.engine().queue.poisoned()
    }

    /// Calls `watcher` with [`Error::Poisoned`] if a write or a sync fails, at once if one has. It runs in the thread
    /// that met the failure, after everybody who waited for a sync has been told.
    pub fn on_poison(&self, watcher: Box<dyn Fn(&Error) + Send + Sync>) {
        self.engine().queue.on_poison(watcher.into());
    }

    /// Refuses everything from now on. The syncer, if there is one, completes what is queued and closes RocksDB when
    /// it is dropped; without one, what is queued is completed with [`Error::Closed`] and RocksDB is closed here.
    /// Dropping the last handle does the same.
    pub fn close(&self) {
        close(self.shared());
    }
}

/// Removes pieces that no published snapshot owns: of writers that a crash cut off, and of old snapshots.
fn sweep_snapshots(engine: &Engine) -> Result<(), Error> {
    let mut from = keys::piece(GroupId(0), 0, 0);
    loop {
        let mut found = None;
        let end = [0xff; 17];
        engine.scan(Family::State, (&from, &end), |key, _| {
            found = Some(keys::piece_owner(key));
            Ok(ControlFlow::Break(()))
        })?;
        let Some(owner) = found else { return Ok(()) };
        let (group, number) = owner.ok_or_else(|| Error::Damaged {
            dir: engine.dir.clone(),
            group: None,
            what: "the table of snapshot pieces".to_owned(),
            reason: "a key that is not 16 bytes long".to_owned(),
        })?;
        let Some(next) = number.checked_add(1) else { return Ok(()) };
        let behind = keys::piece(group, next, 0);
        let current = crate::snapshot::current(engine, group)?;
        if current.is_none_or(|current| current.number != number) {
            let range = (&keys::piece(group, number, 0)[..], &behind[..]);
            engine.write(|batch| {
                batch.delete_range(Family::State, range);
                Ok(())
            })?;
        }
        from = behind;
    }
}
