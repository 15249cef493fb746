//! Which examples a thread uses in which clock: a pure function of (seed, worker, thread, clock).
//!
//! Nothing of it is kept: a worker that comes back goes on at its committed clock with the batch it would have had.
//! In each epoch a thread uses each of its examples once, in a new order; batches differ in size by at most one.

use super::Settings;
use petuum_types::{Clock, WorkerId};

/// One thread of a job, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPlace {
    /// The worker's place in its job.
    pub worker: WorkerId,
    /// The thread's place in its worker.
    pub thread: u32,
    /// How many threads the worker has.
    pub threads: u32,
}

/// A thread's way through its worker's part. What it caches, the order of one epoch, it can always compute again.
#[derive(Clone, Debug)]
pub struct Cursor {
    seed: u64,
    clocks_per_epoch: u64,
    place: ThreadPlace,
    /// Examples of the worker's part.
    part: u32,
    order: Option<(u64, Vec<u32>)>,
}

impl Cursor {
    /// A cursor over `part` examples of a worker; thread `t` of `T` uses those whose position is `t` modulo `T`.
    ///
    /// # Panics
    /// Unless `thread < threads`.
    #[must_use]
    pub fn new(settings: &Settings, place: ThreadPlace, part: u32) -> Self {
        assert!(place.thread < place.threads, "thread {} of {}; expected one below", place.thread, place.threads);
        Self { seed: settings.seed, clocks_per_epoch: settings.clocks_per_epoch, place, part, order: None }
    }

    /// How many examples the thread has.
    #[must_use]
    pub const fn len(&self) -> u32 {
        let ThreadPlace { thread, threads, .. } = self.place;
        self.part / threads + (self.part % threads > thread) as u32
    }

    /// Whether the thread has no example.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The clock's batch: positions in the worker's part.
    pub fn batch(&mut self, clock: Clock) -> &[u32] {
        let (epoch, step) = (clock.0 / self.clocks_per_epoch, clock.0 % self.clocks_per_epoch);
        let bound = |step| {
            let position = u128::from(self.len()) * u128::from(step) / u128::from(self.clocks_per_epoch);
            usize::try_from(position).expect("a position is at most a u32")
        };
        let range = bound(step)..bound(step + 1);
        if self.order.as_ref().is_none_or(|(of, _)| *of != epoch) {
            self.order = Some((epoch, self.shuffled(epoch)));
        }
        let (_, order) = self.order.as_ref().expect("set above");
        &order[range]
    }

    fn shuffled(&self, epoch: u64) -> Vec<u32> {
        let ThreadPlace { worker, thread, threads } = self.place;
        let mut order: Vec<u32> = (0..self.len()).map(|i| i * threads + thread).collect();
        let numbers = [u64::from(worker.0), u64::from(thread), epoch];
        let seed = numbers.into_iter().fold(self.seed, |seed, number| mix(seed ^ mix(number)));
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        order
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): near numbers become far seeds.
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cursor(part: u32, thread: u32, threads: u32, clocks_per_epoch: u64) -> Cursor {
        let settings = Settings { clocks_per_epoch, ..Settings::default() };
        Cursor::new(&settings, ThreadPlace { worker: WorkerId(2), thread, threads }, part)
    }

    fn epoch(cursor: &mut Cursor, epoch: u64) -> Vec<u32> {
        let first = epoch * cursor.clocks_per_epoch;
        (first..first + cursor.clocks_per_epoch).flat_map(|c| cursor.batch(Clock(c)).to_vec()).collect()
    }

    proptest! {
        #[test]
        fn an_epoch_uses_every_example_once(part in 0..200u32, threads in 1..5u32, clocks in 1..40u64, of in 0..4u64) {
            let mut used = Vec::new();
            for thread in 0..threads {
                let mut cursor = cursor(part, thread, threads, clocks);
                used.extend(epoch(&mut cursor, of));
                let sizes: Vec<usize> = (0..clocks).map(|c| cursor.batch(Clock(c)).len()).collect();
                prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
            used.sort_unstable();
            prop_assert_eq!(used, (0..part).collect::<Vec<_>>());
        }

        #[test]
        fn a_batch_does_not_depend_on_the_way_to_it(part in 1..200u32, clock in 0..1000u64) {
            let mut walked = cursor(part, 0, 1, 7);
            (0..clock).for_each(|c| { walked.batch(Clock(c)); });
            let mut direct = cursor(part, 0, 1, 7);
            prop_assert_eq!(walked.batch(Clock(clock)), direct.batch(Clock(clock)));
        }
    }

    #[test]
    fn epochs_and_workers_have_different_orders() {
        let mut one = cursor(100, 0, 1, 10);
        let other = ThreadPlace { worker: WorkerId(3), ..one.place };
        let mut other = Cursor { place: other, order: None, ..one.clone() };
        assert_ne!(epoch(&mut one, 0), epoch(&mut one, 1));
        assert_ne!(epoch(&mut one, 0), epoch(&mut other, 0));
    }
}
