//! Tenants that are handed to a replica that was named: nobody opens them here meanwhile.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_types::LeaseKey;

/// The tenants on their way. Written by whoever hands one over, and cleared when the other replica has answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnTheirWay(Arc<Mutex<HashSet<LeaseKey>>>);

/// One tenant on its way; it has arrived, or stays, when this is dropped.
#[derive(Debug)]
pub(crate) struct OnItsWay {
    all: OnTheirWay,
    key: LeaseKey,
}

impl OnTheirWay {
    /// Begins one; `None`: it is under way already.
    pub(crate) fn begin(&self, key: &LeaseKey) -> Option<OnItsWay> {
        self.lock().insert(key.clone()).then(|| OnItsWay { all: self.clone(), key: key.clone() })
    }

    pub(crate) fn contains(&self, key: &LeaseKey) -> bool {
        self.lock().contains(key)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LeaseKey>> {
        // An insertion or a removal is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_one_way_at_a_time() {
        let (all, key) = (OnTheirWay::default(), "acme/a".parse().unwrap());
        let first = all.begin(&key).unwrap();
        assert!(all.contains(&key) && all.begin(&key).is_none());
        drop(first);
        assert!(!all.contains(&key) && all.begin(&key).is_some());
    }
}
