//! Values by number, and results by numbers: what makes a world of real state machines as small as a row of integers.
//!
//! A global state is made of few distinct parts in many combinations. Each distinct shard, session, driver or packet is
//! kept once and named by a number; each transition of a part is computed once. Two parts have one number exactly if they
//! are equal, so numbers may be compared and hashed in their place. Numbers depend on the order of discovery, which
//! threads race for; nothing but names depends on them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Distinct values, numbered from 0. Reading one takes no lock.
#[derive(Debug)]
pub(super) struct Interner<T> {
    /// The next number, and the numbers of values by their hash.
    ids: Mutex<(u32, BTreeMap<u64, Vec<u32>>)>,
    hasher: RandomState,
    /// Chunk i holds `FIRST_CHUNK << i` values, so that none ever moves.
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

const FIRST_CHUNK: u32 = 256;
const CHUNKS: usize = 20;

impl<T: Eq + Hash> Interner<T> {
    pub(super) fn new() -> Self {
        let chunks = std::array::from_fn(|_| OnceLock::new());
        Self { ids: Mutex::new((0, BTreeMap::new())), hasher: RandomState::new(), chunks }
    }

    /// The number of a value.
    pub(super) fn id(&self, value: T) -> u32 {
        let hash = self.hasher.hash_one(&value);
        let mut ids = locked(&self.ids);
        let (next, by_hash) = &mut *ids;
        let same_hash = by_hash.entry(hash).or_default();
        if let Some(id) = same_hash.iter().find(|id| *self.get(**id) == value) {
            return *id;
        }
        let id = *next;
        let (chunk, at) = place(id);
        let slots = self.chunks[chunk].get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| OnceLock::new()).collect());
        assert!(slots[at].set(value).is_ok(), "each number is given once");
        same_hash.push(id);
        *next += 1;
        id
    }

    /// The value of a number that [`Interner::id`] gave.
    pub(super) fn get(&self, id: u32) -> &T {
        let (chunk, at) = place(id);
        let slots = self.chunks[chunk].get().expect("a number that was given");
        slots[at].get().expect("a number that was given")
    }

    /// How many distinct values there are.
    pub(super) fn len(&self) -> usize {
        locked(&self.ids).0 as usize
    }
}

/// The chunk of a number, and where in it.
fn place(id: u32) -> (usize, usize) {
    let chunk = (id / FIRST_CHUNK + 1).ilog2();
    let first = FIRST_CHUNK * ((1 << chunk) - 1);
    (chunk as usize, (id - first) as usize)
}

const STRIPES: usize = 1024;

/// Results of a pure function, by its arguments.
#[derive(Debug)]
pub(super) struct Memo<K, V> {
    stripes: Vec<Mutex<BTreeMap<K, V>>>,
    hasher: RandomState,
}

impl<K: Ord + Hash, V: Clone> Memo<K, V> {
    pub(super) fn new() -> Self {
        let stripes = (0..STRIPES).map(|_| Mutex::new(BTreeMap::new())).collect();
        Self { stripes, hasher: RandomState::new() }
    }

    /// The result for a key, computed at most once by each thread that asks at the same time.
    pub(super) fn get(&self, key: K, compute: impl FnOnce() -> V) -> V {
        let at = usize::try_from(self.hasher.hash_one(&key) % STRIPES as u64).expect("below STRIPES");
        if let Some(value) = locked(&self.stripes[at]).get(&key) {
            return value.clone();
        }
        let value = compute();
        locked(&self.stripes[at]).insert(key, value.clone());
        value
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_number_and_every_number_its_value() {
        let interner = Interner::new();
        let ids: Vec<u32> = (0..5000u64).map(|value| interner.id(value)).collect();
        assert!((0..5000u64).all(|value| interner.id(value) == ids[usize::try_from(value).unwrap()]));
        assert!((0..5000u64).all(|value| *interner.get(ids[usize::try_from(value).unwrap()]) == value));
        assert_eq!(interner.len(), 5000);
    }
}
