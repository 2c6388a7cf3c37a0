//! What a soak is asked to do.

use std::{fmt, sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_tenure::RouterOptions;

/// Puts a store between the replicas' faults and the backend.
pub type BehindStore = Arc<dyn Fn(Arc<dyn BlobStore>) -> Arc<dyn BlobStore> + Send + Sync>;

/// One soak.
#[derive(Clone)]
pub struct SoakPlan {
    /// What chooses.
    pub seed: u64,
    /// How many things are asked for or go wrong. 2,000.
    pub steps: u64,
    /// How many replicas there are. 4.
    pub replicas: usize,
    /// How many tenants there are. 200.
    pub tenants: usize,
    /// Whether the whole trace is kept, and not only its end.
    pub keeps_trace: bool,
    /// A store that is not what it says, to show that this is found.
    pub behind: Option<BehindStore>,
}

impl SoakPlan {
    /// The defaults that are documented here, for this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, steps: 2_000, replicas: 4, tenants: 200, keeps_trace: false, behind: None }
    }
}

impl fmt::Debug for SoakPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoakPlan")
            .field("seed", &self.seed)
            .field("steps", &self.steps)
            .field("replicas", &self.replicas)
            .field("tenants", &self.tenants)
            .finish_non_exhaustive()
    }
}

/// The times of a soak: one set where they are moved by hand, a faster one where they are real.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    pub(super) ttl: Duration,
    pub(super) margin: Duration,
    pub(super) snapshot_every: Duration,
    pub(super) drain_timeout: Duration,
    pub(super) idle_after: Duration,
    pub(super) call_limit: Duration,
    pub(super) transfer_limit: Duration,
}

/// How much may be unpublished before an upload comes early.
const UNFLUSHED_BYTES_MAX: u64 = 64 << 10;

impl Rhythm {
    pub(super) const BY_HAND: Self = Self {
        ttl: Duration::from_secs(10),
        margin: Duration::from_secs(2),
        snapshot_every: Duration::from_secs(10),
        drain_timeout: Duration::from_secs(8),
        idle_after: Duration::from_secs(40),
        call_limit: Duration::from_secs(5),
        transfer_limit: Duration::from_secs(30),
    };

    pub(super) const REAL: Self = Self {
        ttl: Duration::from_secs(3),
        margin: Duration::from_millis(600),
        snapshot_every: Duration::from_secs(1),
        drain_timeout: Duration::from_secs(2),
        idle_after: Duration::from_secs(4),
        call_limit: Duration::from_secs(5),
        transfer_limit: Duration::from_secs(10),
    };

    /// How often what was written is published at the least: the jitter is a tenth.
    pub(super) fn cadence(&self) -> Duration {
        self.snapshot_every + self.snapshot_every / 10
    }

    pub(super) fn apply(&self, options: &mut RouterOptions) {
        options.ttl = self.ttl;
        options.margin = self.margin;
        options.snapshot_every = self.snapshot_every;
        options.unflushed_bytes_max = UNFLUSHED_BYTES_MAX;
        options.drain_timeout = self.drain_timeout;
        options.idle_after = Some(self.idle_after);
        options.upload_timeout = self.transfer_limit * 2;
        options.snapshot.call_limit = self.call_limit;
        options.snapshot.transfer_limit = self.transfer_limit;
    }
}
