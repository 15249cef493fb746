//! The one syncer of a store: one fsync of the one WAL for everything that was written before it began.
//!
//! A sync that failed is never tried again: the operating system may have dropped the pages and say `Ok` the second
//! time (P22).

use crate::store::Shared;
use crate::{Error, Store};
use petuum_chaos::{Failpoint, reached};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The right to sync a store; there is at most one. Dropping it ends nothing, but nobody is called back until
/// another is made; dropped by a panic, it poisons the store, so that nobody waits for ever.
///
/// It does not keep the store open: when the last [`Store`] and what came of it are dropped, what is queued is synced
/// once more and RocksDB is closed with the syncer.
pub struct Syncer {
    shared: Arc<Shared>,
    running: AtomicBool,
}

impl Syncer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.engine.queue.claim_syncer();
        Self { shared, running: AtomicBool::new(false) }
    }

    /// Makes durable whatever was written before the call and calls everybody back who waits; without anybody, does
    /// nothing. Returns how many were called.
    ///
    /// # Errors
    /// RocksDB's, the first time; [`Error::Poisoned`] from then on. Everybody who waits has then been told.
    ///
    /// # Panics
    /// If it is running already.
    pub fn run_once(&self) -> Result<usize, Error> {
        assert!(!self.running.swap(true, Ordering::AcqRel), "a syncer runs once at a time");
        let outcome = self.sync();
        self.running.store(false, Ordering::Release);
        outcome
    }

    fn sync(&self) -> Result<usize, Error> {
        let engine = &self.shared.engine;
        // Taken before the sync: what is written while it runs may or may not be covered by it.
        let waiting = engine.queue.take();
        if waiting.is_empty() {
            return engine.queue.poisoned().map_or(Ok(0), Err);
        }
        reached(Failpoint::SyncBefore);
        let outcome = engine.sync();
        reached(Failpoint::SyncAfter);
        // Also if another write failed meanwhile: nobody hears `Ok` after a failure.
        let told = engine.queue.poisoned().map_or(outcome.clone(), Err);
        let count = waiting.len();
        for waiting in waiting {
            waiting.complete(told.clone());
        }
        reached(Failpoint::SyncAfterCalls);
        engine.queue.announce();
        outcome.and(told).map(|()| count)
    }

    /// Calls `wake` when there is something to do: somebody waits, or the store ended. It is called again only after
    /// [`Syncer::run_once`], may be called in vain, from any thread, and should only pass the word on. The last
    /// given counts.
    pub fn on_work(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.shared.engine.queue.on_work(wake.into());
    }

    /// Whether nobody will ever wait again: the store is closed or poisoned. One more [`Syncer::run_once`] completes
    /// who still does, then the syncer should be dropped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let queue = &self.shared.engine.queue;
        queue.is_closed() || queue.poisoned().is_some()
    }

    fn run(&self) {
        while self.shared.engine.queue.wait() {
            // The queue and the watchers were told; the loop ends by itself.
            let _told = self.run_once();
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let engine = &self.shared.engine;
        if std::thread::panicking() {
            let reason = Error::Io {
                dir: engine.dir.clone(),
                doing: "sync: a callback panicked",
                source: Arc::new(std::io::Error::other("panic")),
            };
            engine.queue.fail(&reason);
            engine.queue.announce();
        }
        if engine.queue.release_syncer() {
            engine.release();
        }
    }
}

impl Store {
    /// The store's syncer, for somebody who runs it: the simulator, or a task.
    ///
    /// # Panics
    /// If there is one already.
    #[must_use]
    pub fn syncer(&self) -> Syncer {
        Syncer::new(self.shared().clone())
    }

    /// Starts the syncer on a thread of its own. It ends when the store is closed or poisoned; RocksDB is closed and
    /// the directory free once it is joined and the handles are gone.
    ///
    /// # Panics
    /// If there is a syncer already, or the system cannot start a thread.
    #[expect(clippy::disallowed_methods, reason = "an fsync blocks; the simulator calls `run_once` itself instead")]
    #[must_use]
    pub fn spawn_sync_thread(&self) -> JoinHandle<()> {
        let syncer = self.syncer();
        std::thread::spawn(move || syncer.run())
    }
}
