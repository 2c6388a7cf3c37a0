//! What these tests stand on: a store in a directory of its own, with faults in front and time moved by hand.

use std::{path::PathBuf, sync::Arc, time::Duration};

use leasehold_lease::{Acquired, HeldLease, HeldOptions, LeaseStore, SqliteLeaseStore};
use leasehold_testkit::{FaultyLeases, ManualClock};
use leasehold_types::{LeaseKey, TenureId};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const TTL: Duration = Duration::from_secs(10);
pub(crate) const MARGIN: Duration = Duration::from_secs(2);
/// How long a grant is counted on: ttl - margin.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(8);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    pub(crate) faults: FaultyLeases,
    pub(crate) store: Arc<dyn LeaseStore>,
    pub(crate) path: PathBuf,
    pub(crate) dir: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leases.db");
        let clock = ManualClock::new();
        let inner = SqliteLeaseStore::open_with_boot(&path, Arc::new(clock.clone()), "boot-1").unwrap();
        let faults = FaultyLeases::new(Arc::new(inner));
        Self { clock, store: Arc::new(faults.clone()), faults, path, dir }
    }

    pub(crate) fn times() -> HeldOptions {
        HeldOptions::new(TTL, MARGIN).unwrap()
    }

    pub(crate) async fn try_hold(&self, name: &str, replica: &str, tenure: u128) -> Acquired {
        let clock = Arc::new(self.clock.clone());
        let replica = replica.parse().unwrap();
        let (key, tenure) = (key(name), tenure_id(tenure));
        HeldLease::acquire(Arc::clone(&self.store), clock, key, replica, tenure, Self::times()).await.unwrap()
    }

    pub(crate) async fn hold(&self, name: &str, replica: &str, tenure: u128) -> Arc<HeldLease> {
        match self.try_hold(name, replica, tenure).await {
            Acquired::Held(lease) => Arc::new(lease),
            other => panic!("{name} is held by {other:?}"),
        }
    }
}

pub(crate) fn key(name: &str) -> LeaseKey {
    name.parse().unwrap()
}

pub(crate) fn tenure_id(number: u128) -> TenureId {
    TenureId::new(Uuid::from_u128(number))
}
