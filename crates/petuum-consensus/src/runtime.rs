//! The one runtime openraft runs on, in production and in the simulator alike, and where its randomness comes from.
//!
//! Not a scheduler: everything is tokio's, except that
//! * wake-ups of openraft's watch channels are first come, first served (tokio's order is random),
//! * blocking work runs in place (a blocking thread would stop virtual time), and
//! * random numbers come from a seed that travels with the tasks, so that one seed gives one run.
//!
//! `SimWatch` is sound between threads: a waiter registers under the channel's lock *before* it reads the version, and
//! a sender raises the version *before* it takes the waiters, so one of the two sees the other; the number of senders
//! is read in the registration's critical section, so closing is not missed either. None of its locks is held while a
//! task is woken. `tests` below hold it to that on several threads.

use openraft::async_runtime::AsyncRuntime;
use openraft_rt::OptionalSend;
use openraft_rt::deterministic_rng::DeterministicRng;
use openraft_rt_sim::SimWatch;
use openraft_rt_tokio::TokioRuntime;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The runtime of every group.
pub(crate) type Rt = DeterministicRng<PetuumRuntime>;

/// Tokio with a fair watch channel and without blocking threads.
#[derive(Debug)]
pub(crate) struct PetuumRuntime(TokioRuntime);

impl AsyncRuntime for PetuumRuntime {
    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <TokioRuntime as AsyncRuntime>::Sleep;
    type Instant = <TokioRuntime as AsyncRuntime>::Instant;
    type TimeoutError = <TokioRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <TokioRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <TokioRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = SimWatch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        TokioRuntime::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: Self::Instant, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(join_error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(join_error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        // Never openraft's: `DeterministicRng` answers it from the seed.
        TokioRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        Self(TokioRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }

    fn spawn_blocking<F, T>(f: F) -> impl Future<Output = Result<T, io::Error>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        std::future::ready(Ok(f()))
    }
}

/// Seeds for tasks, drawn in order from one seed (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Seeds(AtomicU64);

impl Seeds {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        mix(self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

/// A number that looks random, always the same for the same argument.
pub(crate) const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs work that keeps a thread for long. On a runtime of several threads the others take over this one's tasks; on
/// one of a single thread (the simulator) there is nobody to hand them to.
pub(crate) fn keeping_the_thread<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let several = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft_rt::testing::Suite;
    use openraft_rt::{Watch, WatchReceiver, WatchSender};

    #[test]
    fn the_runtime_keeps_openrafts_contract() {
        Suite::<PetuumRuntime>::test_all();
    }

    #[test]
    fn no_wakeup_of_a_watch_is_lost_between_threads() {
        const LAST: u64 = 20_000;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        runtime.block_on(async {
            let (sender, receiver) = SimWatch::channel(0u64);
            let readers: Vec<_> = (0..4)
                .map(|_| {
                    let mut receiver = receiver.clone();
                    tokio::spawn(async move {
                        while *receiver.borrow_and_update() < LAST {
                            receiver.changed().await.expect("the sender is there until the last value is seen");
                        }
                    })
                })
                .collect();
            let writer = tokio::spawn(async move {
                for value in 1..=LAST {
                    sender.send(value).unwrap();
                    if value % 64 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                sender
            });
            for reader in readers {
                tokio::time::timeout(Duration::from_secs(60), reader).await.expect("a wake-up was lost").unwrap();
            }
            drop(writer.await.unwrap());
        });
    }

    #[test]
    fn one_seed_gives_one_run() {
        let drawn = |seed| {
            let seeds = Seeds::new(seed);
            [seeds.next(), seeds.next(), seeds.next()]
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }
}
