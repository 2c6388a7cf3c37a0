//! What a replica told its observer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_tenure::TenureEvent;
use leasehold_types::LeaseKey;

/// The events of one replica, in the order in which they were told.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<Vec<TenureEvent>>>);

impl Events {
    /// Adds one: for an observer.
    pub fn record(&self, event: &TenureEvent) {
        self.told().push(event.clone());
    }

    /// Everything so far.
    #[must_use]
    pub fn all(&self) -> Vec<TenureEvent> {
        self.told().clone()
    }

    /// How many fit.
    pub fn count(&self, fits: impl Fn(&TenureEvent) -> bool) -> usize {
        self.told().iter().filter(|event| fits(event)).count()
    }

    /// How many have this name, such as `renewed`.
    #[must_use]
    pub fn named(&self, name: &str) -> usize {
        self.count(|event| event.name() == name)
    }

    /// Whether a tenant was released with everything flushed.
    #[must_use]
    pub fn released_flushed(&self, key: &LeaseKey) -> bool {
        self.count(|event| matches!(event, TenureEvent::Released { flushed: true, .. }) && event.key() == key)
            > 0
    }

    /// Whether a tenant was released without a flush.
    #[must_use]
    pub fn released_unflushed(&self, key: &LeaseKey) -> bool {
        self.count(|event| {
            matches!(event, TenureEvent::Released { flushed: false, .. }) && event.key() == key
        }) > 0
    }

    /// Forgets what was told so far.
    pub fn clear(&self) {
        self.told().clear();
    }

    fn told(&self) -> MutexGuard<'_, Vec<TenureEvent>> {
        // Each change is one push: a panic of a test elsewhere leaves nothing half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
