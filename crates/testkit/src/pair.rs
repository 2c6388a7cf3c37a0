//! What a pair of backends gives to the suites that run over every pair.

use std::{future::Future, sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_lease::{LeaseStore, TokenStore};
use leasehold_types::LeaseKey;

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

    /// The API tokens beside the leases.
    fn tokens(&self) -> Arc<dyn TokenStore>;

    /// The blob store.
    fn blobs(&self) -> Arc<dyn BlobStore>;

    /// Moves the lease store's time. Only for a pair made by [`manual`](Self::manual).
    fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send;

    /// Keeps every state that a lease row has from now on, as backups would that were made at each moment.
    fn keep_states(&self) -> impl Future<Output = ()> + Send;

    /// Ends that. Answers how many states there are.
    fn kept_states(&self) -> impl Future<Output = u32> + Send;

    /// Sets the lease store back to where it stood after so many of the kept states: `only` this tenant's row, or the whole table. 0 is
    /// the beginning: no row. Only after [`kept_states`](Self::kept_states).
    fn set_back(&self, states: u32, only: Option<&LeaseKey>) -> impl Future<Output = ()> + Send;
}
