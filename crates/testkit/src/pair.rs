//! What a pair of backends gives to the suites that run over every pair.

use std::{future::Future, sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;

/// A lease store and a blob store, fresh and empty, that nobody else sees.
///
/// The contract's rows are written once against this trait; a pair of backends that the project supports is one
/// implementation of it (contract.md).
pub trait Pair: Sized + Send + Sync + 'static {
    /// Stores whose time moves only by [`advance`](Self::advance).
    fn manual() -> impl Future<Output = Self> + Send;

    /// Stores whose time is the machine's.
    fn real_time() -> impl Future<Output = Self> + Send;

    /// The lease store.
    fn leases(&self) -> Arc<dyn LeaseStore>;

    /// The blob store.
    fn blobs(&self) -> Arc<dyn BlobStore>;

    /// Moves the lease store's time. Only for a pair made by [`manual`](Self::manual).
    fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send;
}
