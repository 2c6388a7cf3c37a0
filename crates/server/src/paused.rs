//! Tenants that an operator holds still on this replica.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use leasehold_types::LeaseKey;

use crate::problem::Problem;

/// The paused tenants. Written by `pause`, `resume` and forget; gone with the process, since what it protects against (a tenant being opened
/// here while an operator looks at its store) ends with it too.
#[derive(Debug)]
pub(crate) struct Paused {
    keys_max: usize,
    keys: Mutex<BTreeSet<LeaseKey>>,
}

impl Paused {
    pub(crate) fn new(keys_max: usize) -> Self {
        Self { keys_max, keys: Mutex::default() }
    }

    /// Pauses `key`; `false`: it is paused already.
    pub(crate) fn pause(&self, key: &LeaseKey) -> Result<bool, Problem> {
        let mut keys = self.lock();
        if keys.len() >= self.keys_max && !keys.contains(key) {
            return Err(Problem::overloaded(format!("{} tenants are paused here", self.keys_max)).of(key));
        }
        Ok(keys.insert(key.clone()))
    }

    /// Lets `key` be opened again; `false`: it was not paused.
    pub(crate) fn resume(&self, key: &LeaseKey) -> bool {
        self.lock().remove(key)
    }

    pub(crate) fn contains(&self, key: &LeaseKey) -> bool {
        self.lock().contains(key)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<LeaseKey>> {
        // An insertion or a removal is one step.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_kept_once_and_bounded() {
        let paused = Paused::new(1);
        let (one, other): (LeaseKey, LeaseKey) = ("acme/a".parse().unwrap(), "acme/b".parse().unwrap());
        assert!(paused.pause(&one).unwrap() && !paused.pause(&one).unwrap());
        assert!(paused.pause(&other).is_err());
        assert!(paused.contains(&one) && paused.resume(&one) && !paused.resume(&one));
        assert!(!paused.contains(&one));
    }
}
