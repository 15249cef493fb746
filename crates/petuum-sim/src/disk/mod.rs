//! A disk in memory for RocksDB that knows what a power failure would leave of it, and fails where it is told to.
//!
//! RocksDB's own files go through [`Disk::env`]; nothing else does, so a node on this disk keeps all its durable state
//! in RocksDB. It is not a model of time: latency of syncs is added by the caller. Deterministic: no clock, no names
//! or contents from outside, and chance only from the seed of [`Disk::power_on`].
//!
//! A power failure has three steps, because a process cannot die between two instructions of this one:
//! 1. [`Disk::power_off`]: from here on every operation fails, as for a process that is dead but does not know.
//! 2. The caller drops the database (in turmoil, crashing the host does).
//! 3. [`Disk::power_on`]: what was not durable is gone, and the disk works again.
//!
//! ```text
//!   rocksdb::DB ── Env ── shim.cc ── DiskOps (ffi.rs) ── Mutex<Model> (model/) ── Rules (rules.rs)
//!   the store, before it opens ───── LogFiles (files.rs) ──────┘
//!                   └ runs background jobs at once, or between steps only
//! ```
//!
//! Database paths: the Rust bindings create the database's folder in the *real* file system before they open it. Use
//! [`Disk::ROOT`], which exists everywhere, or a path in a temporary directory.

mod ffi;
mod files;
mod model;
mod rules;

use std::sync::{Arc, Mutex, MutexGuard};

pub use rules::{Fault, FileKind, Op, Rule};

/// One simulated disk; a clone is another handle to the same disk.
#[derive(Clone)]
pub struct Disk {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<ffi::Shared>,
    env: rocksdb::Env,
    jobs: ffi::Jobs,
    held: Mutex<Option<Held>>,
}

/// How long background jobs are held back.
struct Held {
    random: fastrand::Rng,
    one_in: u32,
}

/// Gives RocksDB's random numbers on the calling thread a seed.
///
/// RocksDB seeds them by the address of the thread otherwise, and they decide when a memtable is full and a new
/// write-ahead log begins: a power failure would not take the same rows in every run. Its reads use them too, as many as
/// there are table files, and that number depends on its threads; so a simulation seeds anew before every step.
pub fn seed_thread(seed: u64) {
    // Folded, because RocksDB's generator has 31 bits and small seeds give it a poor start.
    let mixed = fastrand::Rng::with_seed(seed).u32(1..0x7fff_ffff);
    ffi::seed_thread(mixed);
}

/// What a power failure took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Bytes that had been written but were not durable.
    pub bytes: u64,
    /// Names whose creation or renaming was undone.
    pub files: u64,
    /// How many of those files were write-ahead logs.
    pub logs: u64,
    /// Files of whose unsynced bytes a part survived, or something else than what was written.
    pub torn: u64,
    /// Names that were deleted or renamed and are there again.
    pub returned: u64,
}

/// What has happened to a disk since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Successful syncs of files and directories, ignored ones included.
    pub syncs: u64,
    /// Operations that a [`Rule`] made fail.
    pub injected: u64,
    /// Power failures.
    pub power_losses: u64,
    /// The sum of [`Lost::bytes`].
    pub bytes_lost: u64,
    /// The sum of [`Lost::files`].
    pub files_lost: u64,
    /// The sum of [`Lost::torn`].
    pub torn_tails: u64,
    /// The sum of [`Lost::returned`].
    pub deletions_undone: u64,
    /// Background jobs that were held back and begun at a later step.
    pub jobs_held: u64,
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Disk {
    /// The path to open a database at: the disk's root, which also exists in the real file system.
    pub const ROOT: &'static str = "/";

    /// An empty disk, with power.
    #[must_use]
    pub fn new() -> Self {
        let shared = ffi::Shared::new();
        let (env, jobs) = ffi::create_env(&shared);
        Self { inner: Arc::new(Inner { shared, env, jobs, held: Mutex::default() }) }
    }

    /// The environment to open a database in. It keeps the disk alive, and the database keeps the environment.
    #[must_use]
    pub fn env(&self) -> rocksdb::Env {
        self.inner.env.clone()
    }

    /// Makes `options` fit for a simulation: this disk, no statistics written by timers, no information log.
    pub fn configure(&self, options: &mut rocksdb::Options) {
        options.set_env(&self.inner.env);
        options.set_stats_dump_period_sec(0);
        options.set_stats_persist_period_sec(0);
        options.set_log_level(rocksdb::LogLevel::Fatal);
    }

    /// Has RocksDB's background jobs (flushes, compactions, deletions) run between steps only, at [`Disk::step`], and when
    /// a write-ahead log is begun. They then never run beside the caller, so that what they have done at any time is the
    /// same in every run. The caller must not wait for one in a call of its own, as a flush does unless told not to.
    pub fn run_jobs_between_steps(&self) {
        self.inner.jobs.queue();
    }

    /// Holds background jobs back: they stay pending until a [`Disk::step`] lets all begin, which happens in one of
    /// `one_in` steps, drawn from `seed`, or until the next write-ahead log, when writers would begin to wait for them. A
    /// power failure finds them pending at any step in between.
    ///
    /// # Panics
    /// If `one_in` is 0.
    pub fn hold_background_jobs(&self, seed: u64, one_in: u32) {
        assert!(one_in > 0, "jobs that never begin would stop every writer");
        *self.held() = Some(Held { random: fastrand::Rng::with_seed(seed), one_in });
        self.inner.jobs.hold();
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.inner.held.lock().expect("nothing panics while it is held")
    }

    /// A step of the simulation has ended: background jobs run, and those that are held back may.
    pub fn step(&self) {
        let begin = self.held().as_mut().is_some_and(|held| held.random.u32(..held.one_in) == 0);
        if begin {
            let begun = self.inner.jobs.release();
            self.inner.shared.model().counters.jobs_held += begun as u64;
        }
        self.inner.jobs.settle();
    }

    /// Takes the power away: waits for background jobs that run (none does beside a step, see
    /// [`Disk::run_jobs_between_steps`]), then lets every operation fail until [`Disk::power_on`].
    pub fn power_off(&self) {
        self.inner.jobs.wait_idle();
        self.inner.shared.model().powered = false;
    }

    /// Whether the disk has power; a rule with [`Fault::PowerCut`] takes it too.
    #[must_use]
    pub fn is_powered(&self) -> bool {
        self.inner.shared.model().powered
    }

    /// Loses what was not durable and gives the power back. `seed` draws, file by file, what survives all the same.
    ///
    /// # Panics
    /// If the disk has power, or a database is still open on it.
    pub fn power_on(&self, seed: u64) -> Lost {
        self.assert_dead();
        let mut model = self.inner.shared.model();
        model.powered = true;
        model.counters.power_losses += 1;
        model.lose(seed)
    }

    /// Gives the power back with nothing lost: the process had died, not the machine.
    ///
    /// # Panics
    /// If the disk has power, or a database is still open on it.
    pub fn power_on_intact(&self) {
        self.assert_dead();
        let mut model = self.inner.shared.model();
        model.powered = true;
        model.forget_handles();
    }

    /// Checked with the lock free: a database that is dropped while this panics still needs it.
    fn assert_dead(&self) {
        let (powered, open) = {
            let model = self.inner.shared.model();
            (model.powered, model.held_lock().map(str::to_owned))
        };
        assert!(!powered, "power can only come back after power_off");
        assert_eq!(open, None, "the database must be dropped before the power comes back");
    }

    /// Adds a rule; rules are asked in the order they were added, and the first that hits decides.
    pub fn inject(&self, rule: Rule) {
        assert!(rule.fault.fits(rule.op), "{:?} cannot happen to {:?}", rule.fault, rule.op);
        self.inner.shared.model().rules.push(rule);
    }

    /// Removes all rules.
    pub fn clear_rules(&self) {
        self.inner.shared.model().rules.clear();
    }

    /// A lying disk: syncs report success and make nothing durable. Proves that a test can see lost data.
    pub fn set_sync_ignored(&self, ignored: bool) {
        self.inner.shared.model().sync_ignored = ignored;
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.inner.shared.model().counters
    }
}

#[cfg(test)]
mod tests;
