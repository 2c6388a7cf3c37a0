//! Which tenants this replica has: at most one tenure per tenant.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_types::LeaseKey;

use crate::tenure::Tenure;

/// A tenant's place in the table.
#[derive(Clone)]
pub(crate) enum Slot {
    /// It is being opened; who asks joins.
    Opening(Arc<Tenure>),
    /// It is found by callers.
    Open(Arc<Tenure>),
    /// It is on its way out and found by nobody; who asks waits for its end.
    Ending(Arc<Tenure>),
}

impl Slot {
    pub(crate) const fn tenure(&self) -> &Arc<Tenure> {
        match self {
            Self::Opening(tenure) | Self::Open(tenure) | Self::Ending(tenure) => tenure,
        }
    }
}

#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) by_key: HashMap<LeaseKey, Slot>,
    /// How many openings there were: the order in which closing goes.
    pub(crate) opened: u64,
    /// Set for good by closing: nothing is opened any more.
    pub(crate) closed: bool,
}

/// The router's tenants.
#[derive(Default)]
pub(crate) struct Table(Mutex<Slots>);

impl Table {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Slots> {
        // A table is changed by single insertions and removals only.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, key: &LeaseKey, tenure: &Tenure, to: impl FnOnce(&Slot) -> Option<Slot>) {
        let mut slots = self.lock();
        let Some(slot) = slots.by_key.get_mut(key) else { return };
        // A tenure that is over does not touch its successor's place.
        if !std::ptr::eq(Arc::as_ptr(slot.tenure()), tenure) {
            return;
        }
        let before = match to(slot) {
            Some(next) => Some(std::mem::replace(slot, next)),
            None => slots.by_key.remove(key),
        };
        drop(slots);
        drop(before);
    }

    /// The opening has succeeded.
    pub(crate) fn opened(&self, key: &LeaseKey, tenure: &Tenure) {
        self.change(key, tenure, |slot| {
            Some(match slot {
                Slot::Opening(tenure) => Slot::Open(Arc::clone(tenure)),
                other => other.clone(),
            })
        });
    }

    /// No caller finds the tenure from now on.
    pub(crate) fn ending(&self, key: &LeaseKey, tenure: &Tenure) {
        self.change(key, tenure, |slot| Some(Slot::Ending(Arc::clone(slot.tenure()))));
    }

    /// The tenure is over.
    pub(crate) fn ended(&self, key: &LeaseKey, tenure: &Tenure) {
        self.change(key, tenure, |_| None);
    }
}
