//! Who holds which tenant, as far as this replica was told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use leasehold_types::{Epoch, LeaseKey};

/// A replica that holds a tenant, or is to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) replica: String,
    pub(crate) endpoint: String,
    /// The epoch at which it holds the tenant; `None` where it was chosen and has not said so yet.
    pub(crate) epoch: Option<Epoch>,
}

impl Owner {
    /// Whether requests can be forwarded to it.
    pub(crate) fn is_reachable(&self) -> bool {
        Self::can_be_reached(&self.endpoint)
    }

    /// The same of an address.
    pub(crate) fn can_be_reached(endpoint: &str) -> bool {
        endpoint.starts_with("http://") || endpoint.starts_with("https://")
    }

    /// Whether it was chosen to open the tenant, and nobody is known to hold it.
    pub(crate) fn is_chosen(&self) -> bool {
        self.epoch.is_none()
    }
}

/// The owners that were last heard of, the least used ones forgotten first. A wrong one costs a hop: the answer corrects it.
#[derive(Debug)]
pub(crate) struct Owners(Mutex<LruCache<LeaseKey, Owner>>);

impl Owners {
    pub(crate) fn new(keys_max: usize) -> Self {
        Self(Mutex::new(LruCache::new(keys_max)))
    }

    pub(crate) fn get(&self, key: &LeaseKey) -> Option<Owner> {
        self.lock().get(key).cloned()
    }

    /// Notes who holds the tenant, unless a later epoch is known. Answers whether that is news.
    pub(crate) fn learn(&self, key: &LeaseKey, owner: &Owner) -> bool {
        let mut owners = self.lock();
        match owners.get(key) {
            Some(known) if known.epoch > owner.epoch || known == owner => false,
            _ => {
                owners.insert(key.clone(), owner.clone());
                true
            }
        }
    }

    /// Forgets that this one holds the tenant; what was learned since stays.
    pub(crate) fn forget(&self, key: &LeaseKey, owner: &Owner) {
        let mut owners = self.lock();
        if owners.get(key).is_some_and(|known| known == owner) {
            owners.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<LeaseKey, Owner>> {
        // Each change is one call into the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(replica: &str, epoch: u64) -> Owner {
        let endpoint = format!("http://{replica}:7400");
        Owner { replica: replica.to_owned(), endpoint, epoch: Epoch::new(epoch).ok() }
    }

    #[test]
    fn a_later_epoch_is_never_replaced_by_an_earlier_one() {
        let (owners, key) = (Owners::new(2), "acme/a".parse().unwrap());
        assert!(owners.learn(&key, &owner("a", 2)));
        assert!(!owners.learn(&key, &owner("b", 1)) && !owners.learn(&key, &owner("a", 2)));
        assert!(owners.learn(&key, &owner("b", 3)));
        owners.forget(&key, &owner("a", 2));
        assert_eq!(owners.get(&key), Some(owner("b", 3)), "only what was found wrong is forgotten");
        owners.forget(&key, &owner("b", 3));
        assert_eq!(owners.get(&key), None);
    }

    #[test]
    fn it_is_bounded() {
        let owners = Owners::new(2);
        for tenant in ["acme/a", "acme/b", "acme/c"] {
            owners.learn(&tenant.parse().unwrap(), &owner("a", 1));
        }
        assert_eq!(owners.get(&"acme/a".parse().unwrap()), None);
        assert!(owners.get(&"acme/c".parse().unwrap()).is_some());
    }
}
