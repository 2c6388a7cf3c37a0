//! One replica on the embedded backends.

use std::sync::Arc;

use leasehold_blob::DirectoryStore;
use leasehold_lease::{SqliteLeaseStore, TokioTimer};
use leasehold_tenure::{Backends, Handle, Router, RouterOptions};
use leasehold_types::{Entropy, LeaseKey, NoPoints, SystemClock};
use tempfile::TempDir;

/// Whatever kept a bench from starting.
pub type BenchError = Box<dyn std::error::Error>;

/// A replica with its stores in a directory of its own.
#[derive(Debug)]
pub struct Replica {
    /// Its tenants.
    pub router: Router,
    /// Goes with everything in it when this is dropped.
    pub directory: TempDir,
}

impl Replica {
    /// Starts one, in the current runtime. It snapshots only on demand, so that nothing runs beside what is measured.
    pub fn start() -> Result<Self, BenchError> {
        let directory = tempfile::tempdir()?;
        let clock = Arc::new(SystemClock);
        let backends = Backends {
            leases: Arc::new(SqliteLeaseStore::open(&directory.path().join("leases.db"), clock.clone())?),
            blobs: Arc::new(DirectoryStore::open(&directory.path().join("store"))?),
            clock,
            timer: Arc::new(TokioTimer),
            entropy: Arc::new(Entropy::seeded(1)),
            points: Arc::new(NoPoints),
        };
        let mut options = RouterOptions::new(directory.path().join("node"), "bench".parse()?);
        options.snapshot_every = std::time::Duration::ZERO;
        options.unflushed_bytes_max = 0;
        Ok(Self { router: Router::new(options, backends)?, directory })
    }

    /// Opens a tenant.
    pub async fn open(&self, tenant: &str) -> Result<Handle, BenchError> {
        let key: LeaseKey = format!("bench/{tenant}").parse()?;
        Ok(self.router.open(&key).await?)
    }
}
