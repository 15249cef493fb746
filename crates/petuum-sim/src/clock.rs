//! The clock of the simulating thread: a replacement of libc's `clock_gettime` that answers with virtual time there and
//! passes through everywhere else.
//!
//! tokio's time is paused and needs no help. But libraries below ask the system: HTTP/2 forgets reset streams after a
//! second of *real* time, which changes the frames it sends; hyper writes a `date` header; log lines print instants. One
//! seed would then not give one trace. Only binaries that link this crate are affected, and in them only a thread that
//! holds a [`VirtualClock`]; RocksDB's background threads keep the real time. A thread must not sleep or wait with a time
//! limit outside tokio while it holds one.
#![expect(unsafe_code, reason = "replaces a C function by symbol; the block says why it holds")]

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

/// Wall time at the start of a simulation, seconds: the same in every run.
pub const EPOCH_SECONDS: u64 = 1_700_000_000;

/// Monotonic time at the start of a simulation, seconds; far from zero, so that code may subtract from it.
const MONOTONIC_SECONDS: u64 = 100_000;

thread_local! {
    /// Nanoseconds since the start of the simulation plus one; zero outside a simulation.
    static VIRTUAL: Cell<u64> = const { Cell::new(0) };
}

/// While it lives, the calling thread's clocks stand still at one instant of virtual time. They nest: dropping it gives
/// the thread the clock it had before.
#[derive(Debug)]
#[must_use = "the clock is virtual only while this lives"]
pub struct VirtualClock {
    previous: u64,
    /// It belongs to the thread that made it.
    not_send: PhantomData<*const ()>,
}

impl VirtualClock {
    /// Sets the calling thread's clocks to `elapsed` since the start of the simulation.
    pub fn enter(elapsed: Duration) -> Self {
        // Named here so that every binary that can enter virtual time has the replacement linked in.
        std::hint::black_box(replacement as Replacement);
        let nanoseconds = u64::try_from(elapsed.as_nanos()).expect("a simulation ends long before 584 years");
        Self { previous: VIRTUAL.replace(nanoseconds + 1), not_send: PhantomData }
    }
}

impl Drop for VirtualClock {
    fn drop(&mut self) {
        VIRTUAL.set(self.previous);
    }
}

/// Virtual time since the start of the simulation, on a thread that holds a [`VirtualClock`].
#[must_use]
pub fn elapsed() -> Option<Duration> {
    VIRTUAL.get().checked_sub(1).map(Duration::from_nanos)
}

type Replacement = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// Seconds at which a clock starts in a simulation; none for clocks that are not simulated, as of CPU time.
fn base(clock: libc::clockid_t) -> Option<u64> {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(EPOCH_SECONDS),
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_BOOTTIME => {
            Some(MONOTONIC_SECONDS)
        }
        _ => None,
    }
}

/// libc's `clock_gettime`.
///
/// # Safety
/// `time` can be written, as for the function it replaces.
#[unsafe(export_name = "clock_gettime")]
unsafe extern "C" fn replacement(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    let (Some(elapsed), Some(base)) = (elapsed(), base(clock)) else {
        // The raw call, since libc's own function is the one replaced.
        // SAFETY: the caller's promise; the kernel checks the rest. The result is 0 or -1.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) }.signum() as libc::c_int;
    };
    let seconds = base + elapsed.as_secs();
    let value = libc::timespec {
        tv_sec: libc::time_t::try_from(seconds).unwrap_or(libc::time_t::MAX),
        tv_nsec: elapsed.subsec_nanos().into(),
    };
    // SAFETY: the caller's promise.
    unsafe { time.write(value) };
    0
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the clocks of std are what is tested")]
mod tests {
    use std::thread;
    use std::time::{Instant, SystemTime};

    use super::*;

    const WAIT: Duration = Duration::from_millis(3);

    #[test]
    fn clocks_stand_still_and_move_with_the_simulation() {
        let enter = |millis| VirtualClock::enter(Duration::from_millis(millis));
        let (first, wall) = {
            let _clock = enter(0);
            let first = Instant::now();
            thread::sleep(WAIT);
            assert_eq!(Instant::now(), first);
            (first, SystemTime::now())
        };
        assert_eq!(wall.duration_since(SystemTime::UNIX_EPOCH).unwrap(), Duration::from_secs(EPOCH_SECONDS));
        let _clock = enter(1500);
        assert_eq!(elapsed(), Some(Duration::from_millis(1500)));
        assert_eq!(Instant::now() - first, Duration::from_millis(1500));
        assert_eq!(SystemTime::now().duration_since(wall).unwrap(), Duration::from_millis(1500));
    }

    #[test]
    fn they_nest_and_end() {
        let real = SystemTime::now();
        {
            let _outer = VirtualClock::enter(Duration::from_secs(1));
            {
                let _inner = VirtualClock::enter(Duration::from_secs(9));
                assert_eq!(elapsed(), Some(Duration::from_secs(9)));
            }
            assert_eq!(elapsed(), Some(Duration::from_secs(1)));
        }
        assert_eq!(elapsed(), None);
        assert!(SystemTime::now() >= real, "the real clock is back");
        let before = Instant::now();
        thread::sleep(WAIT);
        assert!(Instant::now() - before >= WAIT);
    }

    #[test]
    fn other_threads_keep_the_real_time() {
        let _clock = VirtualClock::enter(Duration::ZERO);
        let there = thread::spawn(|| (elapsed(), SystemTime::now())).join().unwrap();
        assert_eq!(there.0, None);
        assert!(there.1 > SystemTime::now() + Duration::from_secs(86_400 * 365), "the epoch lies in the past");
    }
}
