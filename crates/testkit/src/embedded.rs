//! The embedded pair: leases in a SQLite file, objects in a directory.

use std::{sync::Arc, time::Duration};

use leasehold_blob::{BlobStore, DirectoryStore};
use leasehold_lease::{LeaseStore, SqliteLeaseStore};
use leasehold_types::{Clock, SystemClock};
use tempfile::TempDir;

use crate::{ManualClock, Pair};

/// [`SqliteLeaseStore`] and [`DirectoryStore`] in a directory of their own.
#[derive(Debug)]
pub struct EmbeddedPair {
    leases: Arc<SqliteLeaseStore>,
    blobs: Arc<DirectoryStore>,
    /// The lease store's clock; `None` where that is the machine's.
    time: Option<ManualClock>,
    /// Declared last: removed after the stores in it are closed.
    _dir: TempDir,
}

impl EmbeddedPair {
    fn new(time: Option<ManualClock>) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the stores");
        let clock: Arc<dyn Clock> = match &time {
            Some(manual) => Arc::new(manual.clone()),
            None => Arc::new(SystemClock),
        };
        let leases = SqliteLeaseStore::open(&dir.path().join("leases.db"), clock).expect("a lease store");
        // What these suites check is order and fencing; that an object outlives a power cut is the store's own suite's.
        let blobs = DirectoryStore::open_without_sync(&dir.path().join("store")).expect("a blob store");
        Self { leases: Arc::new(leases), blobs: Arc::new(blobs), time, _dir: dir }
    }
}

impl Pair for EmbeddedPair {
    async fn manual() -> Self {
        Self::new(Some(ManualClock::new()))
    }

    async fn real_time() -> Self {
        Self::new(None)
    }

    fn leases(&self) -> Arc<dyn LeaseStore> {
        self.leases.clone()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }

    async fn advance(&self, by: Duration) {
        self.time.as_ref().expect("a pair whose time is moved by hand").advance(by);
    }
}
