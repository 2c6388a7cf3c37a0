//! The contract over SQLite: two stores on one file, as two processes have them.

use std::{sync::Arc, time::Duration};

use leasehold_lease::SqliteLeaseStore;
use leasehold_testkit::{ManualClock, conformance::lease::LeaseFixture};

async fn two_stores_on_one_file() -> LeaseFixture {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leases.db");
    let clock = ManualClock::new();
    let open = || Arc::new(SqliteLeaseStore::open(&path, Arc::new(clock.clone())).unwrap());
    let (store, another) = (open(), open());
    let advance = Box::new(move |by: Duration| {
        clock.advance(by);
        Box::pin(std::future::ready(())) as _
    });
    LeaseFixture::new(store, another, advance, dir)
}

leasehold_testkit::lease_conformance!(two_stores_on_one_file);
