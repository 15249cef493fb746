//! Values by number, and results by numbers: what makes a world of real state machines as small as a row of integers.
//!
//! A global state is made of few distinct parts in many combinations. Each distinct shard, session, driver or packet is
//! kept once and named by a number; each transition of a part is computed once. Two parts have one number exactly if they
//! are equal, so numbers may be compared and hashed in their place. Numbers depend on the order of discovery, which
//! threads race for; nothing but names depends on them.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

#[expect(clippy::disallowed_types, reason = "only looked up, never iterated")]
type Table<K, V> = std::collections::HashMap<K, V>;

/// Distinct values, numbered from 0.
#[derive(Debug)]
pub(super) struct Interner<T> {
    ids: Mutex<Table<Arc<T>, u32>>,
    values: RwLock<Vec<Arc<T>>>,
}

impl<T: Eq + Hash> Interner<T> {
    pub(super) fn new() -> Self {
        Self { ids: Mutex::new(Table::new()), values: RwLock::new(Vec::new()) }
    }

    /// The number of a value.
    pub(super) fn id(&self, value: T) -> u32 {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = ids.get(&value) {
            return *id;
        }
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        let id = u32::try_from(values.len()).expect("fewer than 2^32 parts");
        let value = Arc::new(value);
        values.push(Arc::clone(&value));
        ids.insert(value, id);
        id
    }

    /// The value of a number that [`Interner::id`] gave.
    pub(super) fn get(&self, id: u32) -> Arc<T> {
        Arc::clone(&self.values.read().unwrap_or_else(PoisonError::into_inner)[id as usize])
    }

    /// How many distinct values there are.
    pub(super) fn len(&self) -> usize {
        self.values.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

const STRIPES: usize = 64;

/// Results of a pure function, by its arguments.
#[derive(Debug)]
pub(super) struct Memo<K, V> {
    stripes: Vec<Mutex<Table<K, V>>>,
    hasher: std::hash::RandomState,
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    pub(super) fn new() -> Self {
        let stripes = (0..STRIPES).map(|_| Mutex::new(Table::new())).collect();
        Self { stripes, hasher: std::hash::RandomState::new() }
    }

    /// The result for a key, computed at most once per thread that asks at the same time.
    pub(super) fn get(&self, key: K, compute: impl FnOnce() -> V) -> V {
        let at = usize::try_from(self.hasher.hash_one(&key) % STRIPES as u64).expect("below STRIPES");
        let stripe = &self.stripes[at];
        if let Some(value) = stripe.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return value.clone();
        }
        let value = compute();
        stripe.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value.clone());
        value
    }
}
