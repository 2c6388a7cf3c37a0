//! A listing of a tenant's prefix, as facts.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use leasehold_blob::{BlobEntry, BlobKey};
use leasehold_types::{Epoch, Floor};

use crate::{Layout, Name, SnapshotNumber};

/// An image that lies in an epoch's folder, whether or not a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageFact {
    /// The number in its name.
    pub number: SnapshotNumber,
    /// Its name.
    pub key: BlobKey,
    /// Its length in bytes.
    pub len: u64,
}

/// What a listing shows of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EpochFacts {
    /// Whether a base is there (a pin or a seal).
    pub base: bool,
    /// The numbers under which a manifest or a seal is there.
    pub manifests: BTreeSet<SnapshotNumber>,
    /// The images that are there.
    pub images: Vec<ImageFact>,
    /// How many objects of any kind are there, foreign ones included.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a listing of a tenant's prefix shows. What lies outside every epoch is foreign and left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The epochs of which there is any trace.
    pub epochs: BTreeMap<Epoch, EpochFacts>,
}

impl Listing {
    /// The facts of a listing of `layout`'s tenant.
    #[must_use]
    pub fn new(layout: &Layout, entries: &[BlobEntry]) -> Self {
        let mut epochs: BTreeMap<Epoch, EpochFacts> = BTreeMap::new();
        for entry in entries {
            let Some(name) = layout.name(&entry.key) else { continue };
            let epoch = match name {
                Name::Base(epoch) | Name::ForeignIn(epoch) => epoch,
                Name::Manifest(snapshot) | Name::Image(snapshot, _) => snapshot.epoch,
                Name::Foreign => continue,
            };
            let facts = epochs.entry(epoch).or_default();
            facts.objects += 1;
            facts.bytes = facts.bytes.saturating_add(entry.len);
            match name {
                Name::Base(_) => facts.base = true,
                Name::Manifest(snapshot) => {
                    facts.manifests.insert(snapshot.number);
                }
                Name::Image(snapshot, _) => {
                    let (number, key) = (snapshot.number, entry.key.clone());
                    facts.images.push(ImageFact { number, key, len: entry.len });
                }
                Name::ForeignIn(_) | Name::Foreign => {}
            }
        }
        Self { epochs }
    }

    /// The highest epoch of which there is any trace.
    #[must_use]
    pub fn highest(&self) -> Option<Epoch> {
        self.epochs.keys().next_back().copied()
    }

    /// The epochs at or below `floor`, ascending: they are dead.
    pub fn dead(&self, floor: Floor) -> impl Iterator<Item = (Epoch, &EpochFacts)> {
        self.epochs.iter().take_while(move |(epoch, _)| floor.covers(**epoch)).map(|(epoch, f)| (*epoch, f))
    }

    /// The epochs above `floor` and below `epoch`, ascending: they are superseded by whoever pinned `epoch`.
    pub fn between(
        &self,
        floor: Floor,
        epoch: Epoch,
    ) -> impl DoubleEndedIterator<Item = (Epoch, &EpochFacts)> {
        // A range must not be turned round: where the floor covers the epoch, nothing lies between.
        let low = floor.epoch().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (!floor.covers(epoch))
            .then(|| self.epochs.range((low, Bound::Excluded(epoch))))
            .into_iter()
            .flatten();
        range.map(|(epoch, facts)| (*epoch, facts))
    }

    /// Whether a sweep by the tenure at `epoch` could find anything to delete.
    #[must_use]
    pub fn has_older_than(&self, epoch: Epoch) -> bool {
        self.epochs.range(..epoch).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_once_into_facts() {
        let layout = Layout::new(&"acme/u".parse().unwrap());
        let entries: Vec<BlobEntry> = [
            "acme/u/e00000001/base.json",
            "acme/u/e00000001/snap-000001-00000000000000ab.db",
            "acme/u/e00000001/snap-000001.json",
            "acme/u/e00000002/unknown",
            "acme/u/e00000004/base.json",
            "acme/u/notes",
            "acme/u2/e00000009/base.json",
        ]
        .into_iter()
        .map(|key| BlobEntry { key: key.parse().unwrap(), len: 10 })
        .collect();
        let listing = Listing::new(&layout, &entries);
        let epoch = |number| Epoch::new(number).unwrap();
        let first = &listing.epochs[&epoch(1)];
        assert_eq!((first.base, first.objects, first.bytes), (true, 3, 30));
        assert_eq!(first.manifests.iter().map(|n| n.get()).collect::<Vec<_>>(), [1]);
        assert_eq!(first.images[0].key.as_str(), "acme/u/e00000001/snap-000001-00000000000000ab.db");
        assert_eq!(listing.highest(), Some(epoch(4)));
        assert_eq!(listing.dead(Floor::at(epoch(2))).count(), 2);
        let between = |floor, below| listing.between(floor, below).map(|(e, _)| e.get()).collect::<Vec<_>>();
        assert_eq!(between(Floor::NONE, epoch(4)), [1, 2]);
        assert_eq!(between(Floor::at(epoch(1)), epoch(5)), [2, 4]);
        assert!(between(Floor::at(epoch(9)), epoch(5)).is_empty());
        assert!(listing.has_older_than(epoch(2)) && !listing.has_older_than(epoch(1)));
    }
}
