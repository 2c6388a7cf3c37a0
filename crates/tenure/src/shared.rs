//! What all tenures of a router have in common.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use leasehold_blob::BlobStore;
use leasehold_lease::{HeldOptions, Keeper, LeaseStore};
use leasehold_snapshot::SnapshotContext;
use leasehold_types::{Clock, Entropy, Points, Timer};

use tokio::sync::Semaphore;

use crate::{RouterOptions, TenureEvent, table::Table};

/// The stores and the seams that a router works with.
#[derive(Clone, Debug)]
pub struct Backends {
    /// Who holds what.
    pub leases: Arc<dyn LeaseStore>,
    /// What counts.
    pub blobs: Arc<dyn BlobStore>,
    /// The replica's clock.
    pub clock: Arc<dyn Clock>,
    /// How it waits.
    pub timer: Arc<dyn Timer>,
    /// Its ids and jitter.
    pub entropy: Arc<Entropy>,
    /// Who is told of each step; [`NoPoints`](leasehold_types::NoPoints) in the product.
    pub points: Arc<dyn Points>,
}

pub(crate) struct Shared {
    pub(crate) options: RouterOptions,
    pub(crate) held: HeldOptions,
    pub(crate) backends: Backends,
    pub(crate) snapshots: SnapshotContext,
    /// `None` where renewals are asked for by hand.
    pub(crate) keeper: Option<Keeper>,
    /// The upload pool of all tenants.
    pub(crate) uploads: Semaphore,
    pub(crate) table: Table,
    /// Where the driver's tasks run, whatever thread an effect came from.
    pub(crate) runtime: tokio::runtime::Handle,
}

impl Shared {
    /// Tells the observer. Whatever it does harms no tenure (contract row O1).
    pub(crate) fn tell(&self, event: &TenureEvent) {
        event.log();
        if let Some(observer) = &self.options.observer
            && catch_unwind(AssertUnwindSafe(|| observer(event))).is_err()
        {
            tracing::error!(event = event.name(), key = %event.key(), "the observer panicked");
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
