//! What a tenure knows to be its own, by memory: never by a name in a listing, where a successor's seal looks newest.

use std::collections::VecDeque;

use leasehold_blob::BlobKey;

use crate::{SnapshotNumber, format::Manifest};

/// How many superseded images a tenure remembers; what it forgets, a sweep finds.
const SUPERSEDED_MAX: usize = 256;

/// A manifest that a tenure knows to be its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnManifest {
    /// Its number in the tenure's epoch.
    pub number: SnapshotNumber,
    /// The objects that it names.
    pub objects: Vec<BlobKey>,
}

/// The publishes of one tenure, as far as their fate is known. Kept by the tenure from its opening to its end;
/// changed by [`publish`](crate::publish) alone, also when that fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnManifests {
    /// The number that the next publish uses: its fate is not known to be ours.
    next: SnapshotNumber,
    newest: Option<OwnManifest>,
    /// Older ones than `newest`, oldest first.
    superseded: VecDeque<OwnManifest>,
}

impl Default for OwnManifests {
    fn default() -> Self {
        Self::new()
    }
}

impl OwnManifests {
    /// Of a tenure that has just opened.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: SnapshotNumber::FIRST, newest: None, superseded: VecDeque::new() }
    }

    /// The number that the next publish uses.
    #[must_use]
    pub const fn next(&self) -> SnapshotNumber {
        self.next
    }

    /// The newest manifest that is known to be ours.
    #[must_use]
    pub const fn newest(&self) -> Option<&OwnManifest> {
        self.newest.as_ref()
    }

    /// Notes that `manifest` lies in the store under the next number. `None`: there is no number above it.
    pub(crate) fn note(&mut self, manifest: &Manifest) -> Option<()> {
        debug_assert_eq!(manifest.number, self.next);
        self.next = self.next.next()?;
        let own = OwnManifest { number: manifest.number, objects: manifest.objects().cloned().collect() };
        if let Some(older) = self.newest.replace(own) {
            self.superseded.push_back(older);
            if self.superseded.len() > SUPERSEDED_MAX {
                self.superseded.pop_front();
            }
        }
        Some(())
    }

    /// The images of superseded manifests but the `kept` newest ones, oldest first: what no manifest that still
    /// counts names.
    pub(crate) fn superseded_objects(&self, kept: usize) -> Vec<BlobKey> {
        let gone = self.superseded.len().saturating_sub(kept);
        let stays = |object: &BlobKey| {
            self.superseded.iter().skip(gone).chain(&self.newest).any(|own| own.objects.contains(object))
        };
        let candidates = self.superseded.iter().take(gone).flat_map(|own| &own.objects);
        candidates.filter(|object| !stays(object)).cloned().collect()
    }

    /// Drops what [`Self::superseded_objects`] answered, once it is deleted.
    pub(crate) fn forget_superseded(&mut self, kept: usize) {
        self.superseded.drain(..self.superseded.len().saturating_sub(kept));
    }
}
