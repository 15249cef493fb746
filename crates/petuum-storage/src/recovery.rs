//! Opening a database after whatever happened to its disk: what a power failure may leave is mended, and what it cannot
//! leave is refused (G9).
//!
//! A disk keeps each file's bytes up to its last sync, and of the bytes behind it whatever it likes, file by file. The
//! store promises more: that what is left is a *prefix* of everything that was written, over all groups. Between the two
//! stand, in this order:
//!
//! 1. The manifest's torn end is cut off. RocksDB would refuse to open with noise there, or read it for ever.
//! 2. Records that RocksDB would read for ever are made such as it only refuses (see `blocks`).
//! 3. If the logs prove that acknowledged writes are lost, the store is refused, the same way each time.
//! 4. What cannot be read at the end of a log is cut off: RocksDB passes over zeros to the next block, and would take
//!    what a later page holds.
//! 5. RocksDB replays the logs and ends at the first that is not whole: each names its predecessor's length and last write
//!    (`track_and_verify_wals`). Without that, a log that lost its unsynced end exactly between two records is not told
//!    from a whole one, and the next log, of which more may have survived, is replayed behind the hole: a truncation
//!    lost, the append that followed it there.
//! 6. If RocksDB has replayed less than the logs held, it has read wrongly what was read rightly before, and the logs are
//!    gone by now: the store is refused for good. For the same reason nothing is cut off before it was read twice, and
//!    what the logs hold is made durable and written down before RocksDB replays them (see `replay`): a process that dies
//!    between the two is followed by one that knows.

use crate::blocks::{self, Damage, Found, KIND_AT, NEVER_WRITTEN};
use crate::keys::Family;
use crate::replay::{self, Held};
use crate::wal::{self, Log};
use crate::{Error, StoreOptions, keys, node};
use rocksdb::{DBWithThreadMode, Options, SingleThreaded, properties};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

type Db = DBWithThreadMode<SingleThreaded>;

/// There if the store was refused for good; says why.
const REFUSED: &str = "REFUSED";
/// Names the manifest in use.
const CURRENT: &str = "CURRENT";

/// A directory whose database is not open yet.
struct Closed<'a> {
    path: &'a Path,
    dir: &'a Arc<str>,
    options: &'a StoreOptions,
}

/// Opens the database.
pub(crate) fn open_database(path: &Path, dir: &Arc<str>, options: &StoreOptions) -> Result<Db, Error> {
    let closed = Closed { path, dir, options };
    let files = options.files.list(path).map_err(closed.io("list its directory"))?;
    if files.iter().any(|name| name == REFUSED) {
        return Err(closed.refused());
    }
    let exists = files.iter().any(|name| name == CURRENT);
    let unfinished = closed.unfinished(&files)?;
    let suspect = exists && closed.mend_manifest(&files)?;
    let mut logs: Vec<(u64, String)> = files.into_iter().filter_map(|name| Some((wal::number(&name)?, name))).collect();
    logs.sort();
    let (database, had_logs) = (options.database(path, true), !logs.is_empty());
    closed.check_families(&database)?;
    let held = closed.check_logs(&logs, suspect, &database)?;
    // What an opening before this one had found: it may have let the logs go.
    let held: Vec<Held> = unfinished.into_iter().chain(had_logs.then_some(held)).collect();
    closed.begin_replay(&logs, &held)?;
    if exists && !had_logs {
        // RocksDB refuses a database without logs if it is to verify them; opened once without, it has one.
        let lax = options.database(path, false);
        closed.check_unborn(&lax)?;
        drop(closed.open(&lax)?);
    }
    let opened = closed.open(&database)?;
    closed.end_replay(&opened, &held)?;
    Ok(opened)
}

impl Closed<'_> {
    fn io(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let dir = self.dir.clone();
        move |source| Error::Io { dir, doing, source: Arc::new(source) }
    }

    fn damaged(&self, what: &str, reason: String) -> Error {
        Error::Damaged { dir: self.dir.clone(), group: None, what: what.to_owned(), reason }
    }

    fn open(&self, database: &Options) -> Result<Db, Error> {
        Db::open_cf_descriptors(database, self.path, self.options.families()).map_err(|error| {
            let reason = error.to_string();
            // RocksDB has no kind of its own for this; the lock file's name is the only mark.
            if error.kind() == rocksdb::ErrorKind::IOError && reason.contains("/LOCK") {
                Error::Locked { dir: self.dir.clone(), reason }
            } else {
                Error::RocksDb { dir: self.dir.clone(), doing: "open", reason }
            }
        })
    }

    /// Cuts off what cannot be read at the manifest's end; whether there was anything. Damage with a record behind it is
    /// no torn end: RocksDB refuses it, if it can.
    fn mend_manifest(&self, files: &[String]) -> Result<bool, Error> {
        const READ: &str = "read its manifest";
        let mut name = String::new();
        let current = self.options.files.open(self.path, CURRENT).map_err(self.io(READ))?;
        current.take(1024).read_to_string(&mut name).map_err(self.io(READ))?;
        let name = name.trim_end();
        if !files.iter().any(|file| file == name) {
            return Ok(false);
        }
        let look = || {
            let mut file = self.options.files.open(self.path, name)?;
            let (mut first, mut endless, mut torn) = (None, false, false);
            let bytes = blocks::walk(&mut *file, |found| match found {
                Found::Damage(damage) => {
                    first.get_or_insert(damage.at);
                    (endless, torn) = (endless || damage.endless, true);
                }
                Found::Record { .. } => torn = false,
            })?;
            Ok((first, endless, torn, bytes))
        };
        let found = look().map_err(self.io(READ))?;
        let (first, endless, torn, _) = found;
        if torn && look().map_err(self.io(READ))? != found {
            return Err(self.reads_differ(name));
        }
        match first {
            Some(at) if torn => {
                tracing::warn!(dir = %self.dir, name, at, "the manifest ends in bytes that are no record; cut off");
                self.options.files.cut(self.path, name, at).map_err(self.io("cut the torn end off its manifest"))?;
                Ok(true)
            }
            Some(at) if endless => {
                Err(self
                    .damaged("the manifest", format!("{name} cannot be read from byte {at} on, and goes on behind it")))
            }
            _ => Ok(false),
        }
    }

    /// A database without logs is one whose very first open was cut off, or it has lost them all. The first thing a store
    /// writes is its format, into a table too.
    fn check_unborn(&self, database: &Options) -> Result<(), Error> {
        let failed = |error: rocksdb::Error| Error::RocksDb {
            dir: self.dir.clone(),
            doing: "read a database without logs",
            reason: error.into_string(),
        };
        let families = Db::list_cf(database, self.path).map_err(failed)?;
        let found = Db::open_cf_for_read_only(database, self.path, families, false).map_err(failed)?;
        let Some(meta) = found.cf_handle(Family::Meta.name()) else { return Ok(()) };
        match found.get_pinned_cf(meta, keys::FORMAT_KEY).map_err(failed)? {
            None => Ok(()),
            Some(_) => Err(self.damaged("the write-ahead log", "all its files are missing".to_owned())),
        }
    }

    /// RocksDB does not open a database without all its families, so a later version's are named before it tries.
    fn check_families(&self, database: &Options) -> Result<(), Error> {
        // An error means that there is no database yet, or none that can be opened; opening it tells.
        let Ok(found) = Db::list_cf(database, self.path) else { return Ok(()) };
        let known = |name: &str| name == "default" || Family::ALL.iter().any(|family| family.name() == name);
        match found.into_iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let found = format!("a column family `{name}`");
                Err(Error::Format { dir: self.dir.clone(), found, supported: node::FORMAT })
            }
        }
    }

    fn read_log(&self, number: u64, name: &str) -> Result<Log, Error> {
        let doing = "read its write-ahead logs";
        let mut file = self.options.files.open(self.path, name).map_err(self.io(doing))?;
        Log::read(name.to_owned(), number, &mut *file).map_err(self.io(doing))
    }

    /// Refuses logs that lost acknowledged writes, and makes the others such as RocksDB reads them rightly.
    fn check_logs(&self, names: &[(u64, String)], suspect: bool, database: &Options) -> Result<Held, Error> {
        let mut logs = Vec::new();
        for (number, name) in names {
            let log = self.read_log(*number, name)?;
            // Only what is wrong twice is wrong on the disk.
            if !log.damages.is_empty() && self.read_log(*number, name)? != log {
                return Err(self.reads_differ(name));
            }
            logs.push(log);
        }
        self.defuse(&logs)?;
        let durable = wal::durable(&logs);
        if suspect || wal::replayable(&logs).unwrap_or(0) < durable {
            self.ask_rocksdb(&logs, durable, database)?;
        }
        for log in &logs {
            if let Some(Damage { at, .. }) = log.damages.first() {
                let cut = self.options.files.cut(self.path, &log.name, *at);
                cut.map_err(self.io("cut the torn end off a write-ahead log"))?;
            }
        }
        Ok(Held { durable, chain: wal::chain(&logs) })
    }

    fn reads_differ(&self, name: &str) -> Error {
        let reason =
            format!("{name} reads otherwise each time; nothing was changed: start again, and look at the disk");
        self.damaged("a file", reason)
    }

    /// What an opening that did not come to its end had found in the logs.
    fn unfinished(&self, files: &[String]) -> Result<Option<Held>, Error> {
        if !files.iter().any(|name| name == replay::NAME) {
            return Ok(None);
        }
        let found = replay::unfinished(&*self.options.files, self.path);
        found.map_err(self.io("read what an opening before this one had found in its logs"))
    }

    /// Makes durable what was read of the logs, and writes it down. What is written down already stays: if it differs, the
    /// logs have lost something since, and this opening ends with it.
    fn begin_replay(&self, logs: &[(u64, String)], held: &[Held]) -> Result<(), Error> {
        let doing = "make its logs durable before they are replayed";
        let [only] = held else { return Ok(()) };
        logs.iter().try_for_each(|(_, name)| self.options.files.sync(self.path, name)).map_err(self.io(doing))?;
        replay::begin(&*self.options.files, self.path, only).map_err(self.io(doing))
    }

    /// Refuses the store for good if RocksDB has replayed less than there was: it has let the logs go.
    fn end_replay(&self, opened: &Db, held: &[Held]) -> Result<(), Error> {
        let latest = opened.latest_sequence_number();
        let Some(last) = held.iter().filter_map(|held| held.missed_by(latest)).max() else {
            return match held {
                [] => Ok(()),
                _ => replay::end(&*self.options.files, self.path).map_err(self.io("end the replay of its logs")),
            };
        };
        let reason =
            format!("its logs held writes up to number {last}; of them RocksDB has read those up to {latest} only");
        let marked = self.options.files.create(self.path, REFUSED, reason.as_bytes());
        marked.map_err(self.io("write down that it has lost writes"))?;
        Err(self.damaged("the write-ahead log", reason))
    }

    /// Why the store was refused for good.
    fn refused(&self) -> Error {
        let mut reason = String::new();
        let read =
            self.options.files.open(self.path, REFUSED).and_then(|file| file.take(1024).read_to_string(&mut reason));
        match read {
            Ok(_) => self.damaged("the write-ahead log", reason),
            Err(error) => self.io("read why it was refused")(error),
        }
    }

    /// Makes records that RocksDB would read for ever such as it only refuses. What they held cannot be read anyway, and
    /// what lies behind them, which may prove a loss, stays.
    fn defuse(&self, logs: &[Log]) -> Result<(), Error> {
        for log in logs {
            for damage in log.damages.iter().filter(|damage| damage.endless) {
                let changed = self.options.files.overwrite(self.path, &log.name, damage.at + KIND_AT, NEVER_WRITTEN);
                changed.map_err(self.io("mark a torn record in a write-ahead log"))?;
            }
        }
        Ok(())
    }

    /// The logs alone do not hold all that was durable. Some of it is in tables, and logs that are no longer needed may
    /// be there or not; RocksDB knows which. Seldom, so that the logs may be replayed once more: read only, they are left
    /// as they are for the next attempt.
    fn ask_rocksdb(&self, logs: &[Log], durable: u64, database: &Options) -> Result<(), Error> {
        let failed = |error: rocksdb::Error| Error::RocksDb {
            dir: self.dir.clone(),
            doing: "read its damaged write-ahead log",
            reason: error.into_string(),
        };
        // Not all of ours are there if the very first open was cut off.
        let families = Db::list_cf(database, self.path).map_err(failed)?;
        let recovered = Db::open_cf_for_read_only(database, self.path, families, false).map_err(failed)?;
        let needed = recovered.property_int_value(properties::MIN_LOG_NUMBER_TO_KEEP).map_err(failed)?.unwrap_or(0);
        let needed: Vec<Log> = logs.iter().filter(|log| log.number >= needed).cloned().collect();
        let recoverable = wal::replayable(&needed).unwrap_or_else(|| recovered.latest_sequence_number());
        if durable <= recoverable {
            return Ok(());
        }
        let reason = format!("writes up to number {durable} were durable, but only {recoverable} can be read");
        Err(self.damaged("the write-ahead log", reason))
    }
}
