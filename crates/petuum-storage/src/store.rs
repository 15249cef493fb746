//! Opening and closing a node's store, and what a handle to it can do. Not here: the log and records of a group
//! (`group`), snapshots (`snapshot`), records of the node (`node`), the syncer (`syncer`).

use crate::engine::Engine;
use crate::group::{GroupState, GroupStore};
use crate::keys::Family;
use crate::options::create_directory;
use crate::snapshot::Snapshots;
use crate::wal::Walk;
use crate::{Error, StoreOptions, keys, node};
use petuum_types::GroupId;
use rocksdb::{DBWithThreadMode, Options, SingleThreaded};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Db = DBWithThreadMode<SingleThreaded>;

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
        if options.env.is_none() {
            create_directory(dir, &name)?;
        }
        let engine = Engine::new(name.clone(), open_database(dir, &name, &options)?);
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

fn open_database(path: &Path, dir: &Arc<str>, options: &StoreOptions) -> Result<Db, Error> {
    let database = options.database();
    check_families(path, dir, &database)?;
    check_wals(path, dir, options, &database)?;
    Db::open_cf_descriptors(&database, path, options.families()).map_err(|error| {
        let reason = error.to_string();
        // RocksDB has no kind of its own for this; the lock file's name is the only mark.
        if error.kind() == rocksdb::ErrorKind::IOError && reason.contains("/LOCK") {
            Error::Locked { dir: dir.clone(), reason }
        } else {
            Error::RocksDb { dir: dir.clone(), doing: "open", reason }
        }
    })
}

/// RocksDB does not open a database without all its families, so a later version's are named before it tries.
fn check_families(path: &Path, dir: &Arc<str>, database: &Options) -> Result<(), Error> {
    // An error means that there is no database yet, or none that can be opened; opening it tells.
    let Ok(found) = Db::list_cf(database, path) else { return Ok(()) };
    let known = |name: &str| name == "default" || Family::ALL.iter().any(|family| family.name() == name);
    match found.into_iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => {
            Err(Error::Format { dir: dir.clone(), found: format!("a column family `{name}`"), supported: node::FORMAT })
        }
    }
}

/// Refuses a log that lost acknowledged writes in its middle, before RocksDB mends it by cutting it off there.
fn check_wals(path: &Path, dir: &Arc<str>, options: &StoreOptions, database: &Options) -> Result<(), Error> {
    let io = |doing| move |source| Error::Io { dir: dir.clone(), doing, source: Arc::new(source) };
    let walk = (options.read_wals)(path).and_then(Walk::through).map_err(io("read its write-ahead logs"))?;
    if !walk.endless.is_empty() {
        // RocksDB cannot be asked what it would recover.
        lost(dir, walk.floor, walk.whole)?;
        for cut in &walk.endless {
            (options.cut_wal)(path, cut.log, cut.keep).map_err(io("cut the torn end off a write-ahead log"))?;
        }
        return Ok(());
    }
    if !walk.goes_on_behind_damage {
        return Ok(());
    }
    // Seldom, so that the log may be replayed once more: read only, it is left as it is for the next attempt.
    let families = Family::ALL.map(Family::name);
    let recovered = Db::open_cf_for_read_only(database, path, families, false).map_err(|error| Error::RocksDb {
        dir: dir.clone(),
        doing: "read its damaged write-ahead log",
        reason: error.into_string(),
    })?;
    lost(dir, walk.floor, recovered.latest_sequence_number())
}

/// An error if what can be recovered ends before what was durable.
fn lost(dir: &Arc<str>, durable: u64, recoverable: u64) -> Result<(), Error> {
    if durable <= recoverable {
        return Ok(());
    }
    Err(Error::Damaged {
        dir: dir.clone(),
        group: None,
        what: "the write-ahead log".to_owned(),
        reason: format!("writes up to number {durable} were durable, but only {recoverable} can be read"),
    })
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
