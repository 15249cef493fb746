//! Who waits for the next sync, and whether the store is alive. It knows no RocksDB.
//!
//! Invariants: every callback is called exactly once, on every path, also when the syncer dies or the store is
//! dropped; none is called while a lock of this crate is held; after a failure no callback is called with `Ok`.

use crate::Error;
use petuum_chaos::{Mutant, mutated};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Called once: with `Ok` when everything written before it is durable, with the reason if that will never be known.
/// It may call the store. It must not block: it runs between two syncs.
pub type SyncDone = Box<dyn FnOnce(Result<(), Error>) + Send>;

type OnWork = Arc<dyn Fn() + Send + Sync>;
type OnPoison = Arc<dyn Fn(&Error) + Send + Sync>;

/// A callback that cannot be forgotten: dropped, it is called with [`Error::Closed`].
pub(crate) struct Waiting {
    done: Option<SyncDone>,
    dir: Arc<str>,
}

impl Waiting {
    pub(crate) fn complete(mut self, outcome: Result<(), Error>) {
        let done = self.done.take().expect("only this and drop take it, and each once");
        done(outcome);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(Error::Closed { dir: self.dir.clone() }));
        }
    }
}

struct State {
    waiting: Vec<Waiting>,
    /// [`Error::Poisoned`] with the first failure.
    poisoned: Option<Error>,
    /// Whether the watchers have been told of it.
    announced: bool,
    closed: bool,
    syncer: bool,
    on_work: Option<OnWork>,
    on_poison: Vec<OnPoison>,
}

pub(crate) struct Queue {
    dir: Arc<str>,
    state: Mutex<State>,
    work: Condvar,
    /// Poisoned or closed; looked at by every call, so outside the lock.
    stopped: AtomicBool,
}

impl Queue {
    pub(crate) fn new(dir: Arc<str>) -> Self {
        let state = State {
            waiting: Vec::new(),
            poisoned: None,
            announced: false,
            closed: false,
            syncer: false,
            on_work: None,
            on_poison: Vec::new(),
        };
        Self { dir, state: Mutex::new(state), work: Condvar::new(), stopped: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// Whether the store may still be used.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.stopped.load(Ordering::Acquire) { self.stopped_by(&self.lock()) } else { Ok(()) }
    }

    fn stopped_by(&self, state: &State) -> Result<(), Error> {
        match &state.poisoned {
            Some(error) => Err(error.clone()),
            None if state.closed => Err(Error::Closed { dir: self.dir.clone() }),
            None => Ok(()),
        }
    }

    pub(crate) fn poisoned(&self) -> Option<Error> {
        self.lock().poisoned.clone()
    }

    /// Notes that a write or sync failed; the first one counts. Nobody is told yet, as locks may be held:
    /// [`Queue::finish`] does that.
    pub(crate) fn fail(&self, reason: &Error) {
        let mut state = self.lock();
        if state.poisoned.is_none() {
            tracing::error!(%reason, "the store failed; it neither reads nor writes until it is reopened");
            state.poisoned = Some(Error::Poisoned { dir: self.dir.clone(), first: Arc::new(reason.clone()) });
            self.stopped.store(true, Ordering::Release);
        }
    }

    /// Ends a write: its callback is queued for the next sync, or called with the reason. To be called without locks.
    pub(crate) fn finish(&self, outcome: Result<(), Error>, done: Option<SyncDone>) -> Result<(), Error> {
        self.announce();
        let done = done.map(|done| Waiting { done: Some(done), dir: self.dir.clone() });
        match (outcome, done) {
            (Ok(()), Some(done)) if mutated(Mutant::AckBeforeFsync) => {
                done.complete(Ok(()));
                Ok(())
            }
            (Ok(()), Some(done)) => self.push(done),
            (Ok(()), None) => self.check(),
            (Err(error), done) => {
                if let Some(done) = done {
                    done.complete(Err(error.clone()));
                }
                Err(error)
            }
        }
    }

    fn push(&self, done: Waiting) -> Result<(), Error> {
        let mut state = self.lock();
        if let Err(error) = self.stopped_by(&state) {
            drop(state);
            done.complete(Err(error.clone()));
            return Err(error);
        }
        state.waiting.push(done);
        // Whoever drained the queue last is called again only when it stops being empty.
        let wake = if state.waiting.len() == 1 { state.on_work.clone() } else { None };
        drop(state);
        self.work.notify_one();
        if let Some(wake) = wake {
            wake();
        }
        Ok(())
    }

    /// Tells everybody of a failure, once.
    pub(crate) fn announce(&self) {
        if !self.stopped.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        let Some(error) = state.poisoned.clone() else { return };
        let waiting = std::mem::take(&mut state.waiting);
        let watchers = if state.announced { Vec::new() } else { state.on_poison.clone() };
        state.announced = true;
        drop(state);
        for waiting in waiting {
            waiting.complete(Err(error.clone()));
        }
        for watcher in watchers {
            watcher(&error);
        }
        self.wake();
    }

    pub(crate) fn on_poison(&self, watcher: OnPoison) {
        let mut state = self.lock();
        let told = state.poisoned.clone().filter(|_| state.announced);
        state.on_poison.push(watcher.clone());
        drop(state);
        if let Some(error) = told {
            watcher(&error);
        }
    }

    pub(crate) fn on_work(&self, wake: OnWork) {
        let mut state = self.lock();
        state.on_work = Some(wake.clone());
        let now = !state.waiting.is_empty() || self.stopped.load(Ordering::Acquire);
        drop(state);
        if now {
            wake();
        }
    }

    /// Everybody who waits now. Whoever comes later waits for the sync after.
    pub(crate) fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Blocks until somebody waits or nobody ever will; says whether to sync.
    pub(crate) fn wait(&self) -> bool {
        let stopped = |state: &State| state.closed || state.poisoned.is_some();
        let state = self
            .work
            .wait_while(self.lock(), |state| state.waiting.is_empty() && !stopped(state))
            .expect("nothing panics while it is held");
        !state.waiting.is_empty()
    }

    fn wake(&self) {
        let wake = self.lock().on_work.clone();
        self.work.notify_all();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Takes nothing new. Says whether a syncer is there to complete what is queued; if not, it is completed here.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.lock();
        state.closed = true;
        self.stopped.store(true, Ordering::Release);
        let syncer = state.syncer;
        let waiting = if syncer { Vec::new() } else { std::mem::take(&mut state.waiting) };
        drop(state);
        drop(waiting);
        self.wake();
        syncer
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn claim_syncer(&self) {
        let mut state = self.lock();
        let taken = std::mem::replace(&mut state.syncer, true);
        drop(state);
        assert!(!taken, "{} has a syncer already; two would not know what the other's fsync covers", self.dir);
    }

    /// Says whether the store was closed meanwhile.
    pub(crate) fn release_syncer(&self) -> bool {
        let mut state = self.lock();
        state.syncer = false;
        let closed = state.closed;
        let waiting = if closed { std::mem::take(&mut state.waiting) } else { Vec::new() };
        drop(state);
        drop(waiting);
        closed
    }
}
