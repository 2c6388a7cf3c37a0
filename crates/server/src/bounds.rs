//! Counting what is under way, in all and for each tenant.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_types::LeaseKey;

use crate::problem::Problem;

/// A bound on how many of something there are at a time: past it one is refused, none is queued.
#[derive(Debug)]
pub(crate) struct Bound {
    /// What is counted, for the refusal.
    what: &'static str,
    total_max: usize,
    per_tenant_max: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    /// Only tenants that have one, so that it never holds more than `total_max` keys.
    by_tenant: HashMap<LeaseKey, usize>,
}

/// One of what a [`Bound`] counts; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    bound: Arc<Bound>,
    key: LeaseKey,
}

impl Bound {
    pub(crate) fn new(what: &'static str, total_max: usize, per_tenant_max: usize) -> Arc<Self> {
        Arc::new(Self { what, total_max, per_tenant_max, counts: Mutex::default() })
    }

    /// One more for `key`, or the refusal (code `overloaded`).
    pub(crate) fn enter(self: &Arc<Self>, key: &LeaseKey) -> Result<Counted, Problem> {
        let mut counts = self.lock();
        if counts.total >= self.total_max {
            return Err(
                Problem::overloaded(format!("{} {} on this replica", self.total_max, self.what)).of(key)
            );
        }
        let of_tenant = counts.by_tenant.entry(key.clone()).or_default();
        if *of_tenant >= self.per_tenant_max {
            return Err(
                Problem::overloaded(format!("{} {} for {key}", self.per_tenant_max, self.what)).of(key)
            );
        }
        *of_tenant += 1;
        counts.total += 1;
        Ok(Counted { bound: Arc::clone(self), key: key.clone() })
    }

    /// How many there are.
    pub(crate) fn total(&self) -> usize {
        self.lock().total
    }

    /// How many there are for one tenant.
    pub(crate) fn of(&self, key: &LeaseKey) -> usize {
        self.lock().by_tenant.get(key).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // The counts are changed in steps that cannot panic between them.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.bound.lock();
        counts.total = counts.total.saturating_sub(1);
        if let Some(of_tenant) = counts.by_tenant.get_mut(&self.key) {
            *of_tenant -= 1;
            if *of_tenant == 0 {
                counts.by_tenant.remove(&self.key);
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
        assert!(bound.lock().by_tenant.is_empty() && bound.total() == 0);
    }
}
