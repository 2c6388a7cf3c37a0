//! Values under small numbers, and answers that are computed once: what keeps a state to a few bytes and the product's code
//! out of the inner loop.

use std::{
    fmt,
    hash::Hash,
    sync::{Arc, PoisonError, RwLock},
};

use rustc_hash::FxHashMap;

/// Values that are each kept once, under a number that never changes.
pub(crate) struct Interner<T> {
    kept: RwLock<Kept<T>>,
}

struct Kept<T> {
    numbers: FxHashMap<Arc<T>, u32>,
    values: Vec<Arc<T>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { kept: RwLock::new(Kept { numbers: FxHashMap::default(), values: Vec::new() }) }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of `value`.
    pub(crate) fn number(&self, value: T) -> u32 {
        if let Some(number) = self.kept.read().unwrap_or_else(PoisonError::into_inner).numbers.get(&value) {
            return *number;
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = kept.numbers.get(&value) {
            return *number;
        }
        let number = u32::try_from(kept.values.len()).expect("fewer than 2^32 values");
        let value = Arc::new(value);
        kept.values.push(Arc::clone(&value));
        kept.numbers.insert(value, number);
        number
    }

    /// The value of a number that [`Self::number`] gave.
    pub(crate) fn value(&self, number: u32) -> Arc<T> {
        Arc::clone(&self.kept.read().unwrap_or_else(PoisonError::into_inner).values[number as usize])
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).values.len()
    }
}

impl<T> fmt::Debug for Interner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interner").finish_non_exhaustive()
    }
}

/// A pure function's results.
pub(crate) struct Memo<K, V> {
    known: RwLock<FxHashMap<K, V>>,
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self { known: RwLock::new(FxHashMap::default()) }
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    /// What `compute` gives for `key`, computed once.
    pub(crate) fn get(&self, key: K, compute: impl FnOnce(&K) -> V) -> V {
        if let Some(value) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return value.clone();
        }
        let value = compute(&key);
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(key, value.clone());
        value
    }
}

impl<K, V> fmt::Debug for Memo<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}
