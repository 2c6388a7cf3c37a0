//! Counting what is under way, in all and for each tenant or caller.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_types::LeaseKey;

use crate::problem::Problem;

/// A bound on how many of something there are at a time: past it one is refused, none is queued.
#[derive(Debug)]
pub(crate) struct Bound<K: Hash + Eq = LeaseKey> {
    /// What is counted, for the refusal.
    what: &'static str,
    total_max: usize,
    per_key_max: usize,
    counts: Mutex<Counts<K>>,
}

#[derive(Debug)]
struct Counts<K> {
    total: usize,
    /// Only those that have one, so that it never holds more than `total_max` keys.
    by_key: HashMap<K, usize>,
}

/// One of what a [`Bound`] counts; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted<K: Hash + Eq = LeaseKey> {
    bound: Arc<Bound<K>>,
    key: K,
}

/// Which bound has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Total,
    Key,
}

impl<K: Hash + Eq + Clone> Bound<K> {
    pub(crate) fn new(what: &'static str, total_max: usize, per_key_max: usize) -> Arc<Self> {
        let counts = Mutex::new(Counts { total: 0, by_key: HashMap::new() });
        Arc::new(Self { what, total_max, per_key_max, counts })
    }

    /// One more for `key`, where there is room.
    pub(crate) fn try_enter(self: &Arc<Self>, key: &K) -> Result<Counted<K>, Full> {
        let mut counts = self.lock();
        if counts.total >= self.total_max {
            return Err(Full::Total);
        }
        let of_key = counts.by_key.entry(key.clone()).or_default();
        if *of_key >= self.per_key_max {
            return Err(Full::Key);
        }
        *of_key += 1;
        counts.total += 1;
        Ok(Counted { bound: Arc::clone(self), key: key.clone() })
    }

    /// How many there are.
    pub(crate) fn total(&self) -> usize {
        self.lock().total
    }

    /// How many there are for one key.
    pub(crate) fn of(&self, key: &K) -> usize {
        self.lock().by_key.get(key).copied().unwrap_or(0)
    }
}

impl Bound {
    /// One more for a tenant, or the refusal (code `overloaded`).
    pub(crate) fn enter(self: &Arc<Self>, key: &LeaseKey) -> Result<Counted, Problem> {
        self.try_enter(key).map_err(|full| {
            let detail = match full {
                Full::Total => format!("{} {} on this replica", self.total_max, self.what),
                Full::Key => format!("{} {} for {key}", self.per_key_max, self.what),
            };
            Problem::overloaded(detail).of(key)
        })
    }
}

impl<K: Hash + Eq> Bound<K> {
    fn lock(&self) -> MutexGuard<'_, Counts<K>> {
        // The counts are changed in steps that cannot panic between them.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut counts = self.bound.lock();
        counts.total = counts.total.saturating_sub(1);
        if let Some(of_key) = counts.by_key.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                counts.by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ErrorCode;

    use super::*;

    #[test]
    fn past_a_bound_one_is_refused_and_room_comes_back() {
        let bound = Bound::new("requests", 3, 2);
        let (one, other): (LeaseKey, LeaseKey) = ("acme/a".parse().unwrap(), "acme/b".parse().unwrap());
        let first = bound.enter(&one).unwrap();
        let second = bound.enter(&one).unwrap();
        let refused = bound.enter(&one).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        let third = bound.enter(&other).unwrap();
        assert_eq!(bound.enter(&other).unwrap_err().code(), ErrorCode::Overloaded);
        drop(first);
        assert_eq!((bound.total(), bound.of(&one), bound.of(&other)), (2, 1, 1));
        let again = bound.enter(&one).unwrap();
        drop((again, second, third));
        assert!(bound.lock().by_key.is_empty() && bound.total() == 0);
    }
}
