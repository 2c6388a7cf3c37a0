//! Where a tenant's objects lie, and what a name says.
//!
//! ```text
//! <org>/<tenant>/e00000007/base.json
//! <org>/<tenant>/e00000007/snap-000009-<attempt>.db
//! <org>/<tenant>/e00000007/snap-000009.json
//! _floors/<org>/<tenant>/e00000005.json
//! ```
//!
//! Numbers are padded so that names sort; wider ones are allowed, and each number has one spelling only. An
//! organization cannot begin with `_`, so floors never lie under a tenant's prefix.

use leasehold_blob::{BlobKey, BlobKeyError, BlobPrefix};
use leasehold_types::{AttemptId, Epoch, Floor, LeaseKey};

use crate::{SnapshotNumber, SnapshotRef};

/// What the name of an object under a tenant's prefix says it is. What it really is, its body says: a seal lies
/// under a manifest's or a base's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// An epoch's base: its owner's pin, or a seal.
    Base(Epoch),
    /// A manifest, or a seal.
    Manifest(SnapshotRef),
    /// An image.
    Image(SnapshotRef, Option<AttemptId>),
    /// Nothing that this build writes, in an epoch's folder. It still counts as a trace of that epoch.
    ForeignIn(Epoch),
    /// Nothing that this build writes, outside every epoch.
    Foreign,
}

/// The names of one tenant's objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    key: LeaseKey,
    tenant: BlobPrefix,
    floors: BlobPrefix,
}

/// A lease key's ids are plain segments of 64 bytes at the most, so every name here is a key.
fn sure<T>(name: Result<T, BlobKeyError>) -> T {
    name.expect("a name made of a lease key and numbers is an object key")
}

impl Layout {
    /// The names of this tenant's objects.
    #[must_use]
    pub fn new(key: &LeaseKey) -> Self {
        let floors = sure(format!("_floors/{key}/").parse());
        Self { key: key.clone(), tenant: BlobPrefix::of_tenant(key), floors }
    }

    /// The tenant.
    #[must_use]
    pub const fn key(&self) -> &LeaseKey {
        &self.key
    }

    /// What everything of the tenant but its floors lies under.
    #[must_use]
    pub const fn tenant(&self) -> &BlobPrefix {
        &self.tenant
    }

    /// What the tenant's floor objects lie under.
    #[must_use]
    pub const fn floors(&self) -> &BlobPrefix {
        &self.floors
    }

    /// What everything of an epoch lies under.
    #[must_use]
    pub fn epoch(&self, epoch: Epoch) -> BlobPrefix {
        sure(self.tenant.prefix(&folder(epoch)))
    }

    /// The base of an epoch.
    #[must_use]
    pub fn base(&self, epoch: Epoch) -> BlobKey {
        sure(self.epoch(epoch).key("base.json"))
    }

    /// The manifest of a snapshot, or the seal in its place.
    #[must_use]
    pub fn manifest(&self, snapshot: SnapshotRef) -> BlobKey {
        sure(self.epoch(snapshot.epoch).key(&format!("snap-{:06}.json", snapshot.number.get())))
    }

    /// The image that `attempt` uploads for a snapshot.
    #[must_use]
    pub fn image(&self, snapshot: SnapshotRef, attempt: AttemptId) -> BlobKey {
        sure(self.epoch(snapshot.epoch).key(&format!("snap-{:06}-{attempt}.db", snapshot.number.get())))
    }

    /// The object that is the store's own witness of a floor.
    #[must_use]
    pub fn floor(&self, floor: Epoch) -> BlobKey {
        sure(self.floors.key(&format!("{}.json", folder(floor))))
    }

    /// What an object under the tenant's prefix is by its name; `None` for an object elsewhere.
    #[must_use]
    pub fn name(&self, key: &BlobKey) -> Option<Name> {
        let rest = key.under(&self.tenant)?;
        let Some((epoch, file)) = rest.split_once('/').and_then(|(dir, file)| Some((epoch_in(dir)?, file)))
        else {
            return Some(Name::Foreign);
        };
        Some(file_name(epoch, file).unwrap_or(Name::ForeignIn(epoch)))
    }

    /// The highest floor among the objects under [`Self::floors`].
    #[must_use]
    pub fn highest_floor<'a>(&self, keys: impl Iterator<Item = &'a BlobKey>) -> Floor {
        keys.filter_map(|key| key.under(&self.floors)?.strip_suffix(".json").and_then(epoch_in))
            .map(Floor::at)
            .max()
            .unwrap_or(Floor::NONE)
    }
}

fn folder(epoch: Epoch) -> String {
    format!("e{:08}", epoch.get())
}

fn number_in(text: &str, width: usize) -> Option<u64> {
    let canonical = text.len() == width || (text.len() > width && !text.starts_with('0'));
    (canonical && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn epoch_in(dir: &str) -> Option<Epoch> {
    Epoch::new(number_in(dir.strip_prefix('e')?, 8)?).ok()
}

fn file_name(epoch: Epoch, file: &str) -> Option<Name> {
    if file == "base.json" {
        return Some(Name::Base(epoch));
    }
    let snapshot = |digits| {
        let number = SnapshotNumber::new(number_in(digits, 6)?).ok()?;
        Some(SnapshotRef { epoch, number })
    };
    let stem = file.strip_prefix("snap-")?;
    if let Some(digits) = stem.strip_suffix(".json") {
        return Some(Name::Manifest(snapshot(digits)?));
    }
    let stem = stem.strip_suffix(".db")?;
    match stem.split_once('-') {
        Some((digits, attempt)) => Some(Name::Image(snapshot(digits)?, Some(attempt.parse().ok()?))),
        None => Some(Name::Image(snapshot(stem)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout() -> Layout {
        Layout::new(&"acme/user-1".parse().unwrap())
    }

    fn snapshot(epoch: u64, number: u64) -> SnapshotRef {
        SnapshotRef { epoch: Epoch::new(epoch).unwrap(), number: SnapshotNumber::new(number).unwrap() }
    }

    #[test]
    fn the_names_are_pinned() {
        let (layout, attempt) = (layout(), AttemptId::new(0xab));
        let seven = Epoch::new(7).unwrap();
        let names = [
            layout.base(seven),
            layout.manifest(snapshot(7, 9)),
            layout.image(snapshot(7, 9), attempt),
            layout.floor(seven),
            layout.manifest(snapshot(123_456_789, 1_234_567)),
        ];
        assert_eq!(
            names.each_ref().map(BlobKey::as_str),
            [
                "acme/user-1/e00000007/base.json",
                "acme/user-1/e00000007/snap-000009.json",
                "acme/user-1/e00000007/snap-000009-00000000000000ab.db",
                "_floors/acme/user-1/e00000007.json",
                "acme/user-1/e123456789/snap-1234567.json",
            ]
        );
        assert_eq!(layout.name(&names[3]), None, "a floor lies outside its tenant's prefix");
    }

    #[test]
    fn what_is_unknown_is_foreign_and_still_a_trace_of_its_epoch() {
        let layout = layout();
        let name = |rest: &str| layout.name(&format!("acme/user-1/{rest}").parse().unwrap()).unwrap();
        let seven = Epoch::new(7).unwrap();
        assert_eq!(name("e00000007/snap-000009.db"), Name::Image(snapshot(7, 9), None));
        for file in [
            "x",
            "snap-9.json",
            "snap-0000009.json",
            "snap-000000.json",
            "snap-000009-XY.db",
            "snap-000009.json.bak",
            "base.json/deeper",
            "snap-99999999999999999999.json",
        ] {
            assert_eq!(name(&format!("e00000007/{file}")), Name::ForeignIn(seven), "{file}");
        }
        for elsewhere in
            ["e7/base.json", "e000000007/base.json", "e00000000/base.json", "notes", "x/e00000007/base.json"]
        {
            assert_eq!(name(elsewhere), Name::Foreign, "{elsewhere}");
        }
        assert_eq!(layout.name(&"acme/user-12/e00000007/base.json".parse().unwrap()), None);
    }

    #[test]
    fn the_floor_is_the_highest_object() {
        let layout = layout();
        let keys = ["e00000003.json", "e123456789.json", "e00000009", "x.json"]
            .map(|name| format!("_floors/acme/user-1/{name}").parse::<BlobKey>().unwrap());
        assert_eq!(layout.highest_floor(keys.iter()).get(), 123_456_789);
        assert_eq!(layout.highest_floor(keys[2..].iter()), Floor::NONE);
    }

    proptest! {
        #[test]
        fn names_come_back_as_they_were(epoch in 1..=i64::MAX.unsigned_abs(), number in 1..=i64::MAX.unsigned_abs(), attempt: u64) {
            let (layout, at, attempt) = (layout(), snapshot(epoch, number), AttemptId::new(attempt));
            prop_assert_eq!(layout.name(&layout.base(at.epoch)), Some(Name::Base(at.epoch)));
            prop_assert_eq!(layout.name(&layout.manifest(at)), Some(Name::Manifest(at)));
            prop_assert_eq!(layout.name(&layout.image(at, attempt)), Some(Name::Image(at, Some(attempt))));
            let floor = layout.floor(at.epoch);
            prop_assert_eq!(layout.highest_floor(std::iter::once(&floor)), Floor::at(at.epoch));
        }
    }
}
