//! How a store is opened, and what that means for RocksDB. Not a settings file: the server fills this in.

use crate::Error;
use crate::files::{LogFiles, SystemFiles};
use crate::keys::Family;
use rocksdb::{ColumnFamilyDescriptor, DBCompressionType, DBRecoveryMode, Env, LogLevel, Options};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;

/// Says how many bytes are free for a directory.
pub type FreeBytes = Arc<dyn Fn(&Path) -> std::io::Result<u64> + Send + Sync>;

/// The store's own lock, beside RocksDB's `LOCK`.
const LOCK: &str = "STORE-LOCK";

const KIB: u64 = 1024;
const MIB: usize = 1024 * 1024;
/// Small records only: votes, marks, manifests.
const META_WRITE_BUFFER_BYTES: usize = 4 * MIB;
/// A value from this size on is kept beside the table of its key, in a blob file, and not written again when tables are
/// merged. Entries are large and soon purged: with their values in the tables, merging took as much processor time as
/// all other work of the store.
const BLOB_BYTES_MIN: u64 = KIB;

/// How a store is opened.
#[derive(Clone)]
pub struct StoreOptions {
    /// The file system. `None`: the operating system's. The simulator gives its own disk; the bindings still make the
    /// (then empty) directory on the real one, so its paths belong below a temporary directory. Its files must be
    /// able to sync while they are written (`IsSyncThreadSafe`), which RocksDB's `mem_env` alone is not.
    pub env: Option<Env>,
    /// Memory that the log, and likewise snapshots, may fill before it is written to a table file; at least 64 KiB.
    /// Smaller means more and smaller files.
    pub write_buffer_bytes: usize,
    /// Size of all write-ahead logs at which the oldest is made superfluous by flushing what it covers, so that a
    /// seldom written column family does not keep them for ever. Larger means a longer start after a crash.
    pub max_wal_bytes: u64,
    /// Threads for flushes and compactions.
    pub background_jobs: u16,
    /// RocksDB writes its own text log (file `LOG`). Off in the simulator: it contains the time of day.
    pub text_log: bool,
    /// Source of [`Store::free_bytes`](crate::Store::free_bytes).
    pub free_bytes: FreeBytes,
    /// How RocksDB's log files are looked at, and their torn ends cut off, before RocksDB reads them (G9). Whoever gives
    /// an `env` gives this too, for the same files.
    pub files: Arc<dyn LogFiles>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            env: None,
            write_buffer_bytes: 64 * MIB,
            max_wal_bytes: 512 * MIB as u64,
            background_jobs: 2,
            text_log: true,
            free_bytes: Arc::new(file_system_free_bytes),
            files: Arc::new(SystemFiles),
        }
    }
}

impl StoreOptions {
    /// Options for a simulated disk: nothing that depends on the time of day or runs without being asked.
    #[must_use]
    pub fn simulated(env: Env, files: Arc<dyn LogFiles>) -> Self {
        // A simulated disk has no size of its own unless its owner gives it one.
        let free_bytes: FreeBytes = Arc::new(|_| Ok(u64::MAX));
        Self { env: Some(env), background_jobs: 1, text_log: false, free_bytes, files, ..Self::default() }
    }

    /// For a database in `path`. `chained`: whether each write-ahead log tells of its predecessor, and RocksDB verifies it.
    pub(crate) fn database(&self, path: &Path, chained: bool) -> Options {
        // The bindings have no setter for this one, so it goes through RocksDB's own text form.
        let text = format!("track_and_verify_wals={chained}");
        let options = Options::default().get_options_from_string(text);
        let mut options = options.expect("RocksDB 11.8, the version that is linked, has this option");
        if let Some(env) = &self.env {
            options.set_env(env);
        }
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_paranoid_checks(true);
        // A crash leaves a torn tail, which was never acknowledged: take what is before it. `AbsoluteConsistency`
        // would refuse to start after an ordinary crash; the other modes skip over damage.
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        // A lost or shortened log file that is not the last one is then noticed at open (G9).
        options.set_track_and_verify_wals_in_manifest(true);
        // Old records in a reused file could be taken for new ones.
        options.set_recycle_log_file_num(0);
        // Every write reaches the operating system at once, so that a killed process loses nothing; the syncer sees
        // to the disk.
        options.set_manual_wal_flush(false);
        options.set_max_total_wal_size(self.max_wal_bytes);
        options.set_max_background_jobs(i32::from(self.background_jobs.max(1)));
        // Table files reach the disk as they are written, so that a flush does not hold up the log's fsync.
        options.set_bytes_per_sync(MIB as u64);
        // What was just written is read again from memory or not at all: in the page cache it would only cost copies, and
        // push out what others read.
        options.set_use_direct_io_for_flush_and_compaction(self.env.is_none() && takes_direct_writes(path));
        options.set_stats_dump_period_sec(0);
        options.set_stats_persist_period_sec(0);
        if self.text_log {
            options.set_log_level(LogLevel::Warn);
            options.set_keep_log_file_num(2);
            options.set_max_log_file_size(16 * MIB);
        } else {
            // Without a size that it rolls over at: a simulated disk's text log has none.
            options.set_log_level(LogLevel::Fatal);
        }
        options
    }

    pub(crate) fn families(&self) -> impl Iterator<Item = ColumnFamilyDescriptor> {
        Family::ALL.into_iter().map(|family| {
            let mut options = Options::default();
            let (buffer, compression) = match family {
                // Entries are tensors and soon purged: compression would cost more than it saves.
                Family::Log => (self.write_buffer_bytes, DBCompressionType::None),
                Family::Meta => (self.write_buffer_bytes.min(META_WRITE_BUFFER_BYTES), DBCompressionType::None),
                Family::State => (self.write_buffer_bytes, DBCompressionType::Lz4),
            };
            if family != Family::Meta {
                options.set_enable_blob_files(true);
                options.set_min_blob_size(BLOB_BYTES_MIN);
                options.set_blob_compression_type(compression);
            }
            options.set_write_buffer_size(buffer);
            options.set_compression_type(compression);
            ColumnFamilyDescriptor::new(family.name(), options)
        })
    }
}

fn file_system_free_bytes(dir: &Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(dir)?;
    // What an ordinary user may use, not what is kept for root.
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Held while a store is open or being opened. RocksDB's own lock comes too late: what an open mends must not be a log
/// that another process writes.
pub(crate) fn lock_directory(path: &Path, dir: &Arc<str>) -> Result<File, Error> {
    let failed = |source| Error::Io { dir: dir.clone(), doing: "lock it", source: Arc::new(source) };
    let path = path.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { dir: dir.clone(), reason: path.display().to_string() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Whether the file system of a directory lets files be written past the page cache; some kept in memory do not.
fn takes_direct_writes(path: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path.join(LOCK), OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).is_ok()
}

/// Makes the directory and lets its parent remember it: RocksDB syncs what is in the directory only.
pub(crate) fn create_directory(path: &Path, dir: &Arc<str>) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let failed = |doing| {
        let dir = dir.clone();
        move |source| Error::Io { dir, doing, source: Arc::new(source) }
    };
    std::fs::create_dir_all(path).map_err(failed("create the data directory"))?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let parent = File::open(parent).map_err(failed("open the parent directory"))?;
        parent.sync_all().map_err(failed("sync the parent directory"))?;
    }
    Ok(())
}
