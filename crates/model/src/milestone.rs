//! What a search has to come by: a rule that holds because nothing happens says nothing.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use crate::world::Told;

/// Something that happened somewhere in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Milestone {
    /// A tenure began to serve.
    Served,
    /// It started from a snapshot.
    Restored,
    /// A publish was acknowledged.
    Acknowledged,
    /// A forget was completed.
    Forgotten,
    /// A tenure learned that it is superseded.
    Fenced,
    /// A lapsed tenure served on.
    Resumed,
}

/// The milestones of one search.
#[derive(Debug, Default)]
pub(crate) struct Milestones {
    seen: Mutex<BTreeSet<Milestone>>,
}

impl Milestones {
    pub(crate) fn note(&self, told: Told) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let milestone = match told {
            Told::Began { from, .. } => {
                if from.is_some() {
                    seen.insert(Milestone::Restored);
                }
                Milestone::Served
            }
            Told::Acknowledged { .. } => Milestone::Acknowledged,
            Told::Forgotten { .. } => Milestone::Forgotten,
            Told::Fenced(_) => Milestone::Fenced,
            Told::Resumed { .. } => Milestone::Resumed,
            Told::Damaged => return,
        };
        seen.insert(milestone);
    }

    pub(crate) fn seen(&self) -> Vec<Milestone> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}
