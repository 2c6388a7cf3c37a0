//! What the drivers work with.

use std::{sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;
use leasehold_types::{Clock, Entropy, Points, Timer};

use crate::plan::Keep;

/// How calls are repeated whose answer was lost, or that the store asked to repeat later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often a call is made in all; at least once.
    pub tries: u32,
    /// The wait before the second try; doubled before each further one, jittered by a tenth.
    pub wait_first: Duration,
    /// The longest wait.
    pub wait_max: Duration,
}

/// The figures of the drivers, one set per process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// Images of up to so many encoded bytes lie in their manifest, so that a small publish is one put; at most
    /// [`INLINE_BYTES_MAX`](crate::format::INLINE_BYTES_MAX). 0: every image is an object of its own. Readers
    /// read both.
    pub inline_bytes_max: u64,
    /// zstd's level (measured: 1 is as small as 3 here, and faster).
    pub zstd_level: i32,
    /// How calls are repeated.
    pub retry: Retry,
    /// The time limit of a call about a small object, a listing, a deletion or a row.
    pub call_limit: Duration,
    /// The time limit of one upload or download of an image.
    pub transfer_limit: Duration,
    /// What sweeps leave.
    pub keep: Keep,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            inline_bytes_max: 0,
            zstd_level: 1,
            retry: Retry {
                tries: 4,
                wait_first: Duration::from_millis(100),
                wait_max: Duration::from_secs(2),
            },
            call_limit: Duration::from_secs(30),
            transfer_limit: Duration::from_secs(15 * 60),
            keep: Keep { fences: Duration::from_secs(7 * 24 * 60 * 60), superseded: 2 },
        }
    }
}

/// The two stores, time and ids, and the figures. Shared by all tenures of a replica.
#[derive(Debug)]
pub struct SnapshotContext {
    /// What counts.
    pub blobs: Arc<dyn BlobStore>,
    /// Who should serve.
    pub leases: Arc<dyn LeaseStore>,
    /// The replica's clock.
    pub clock: Arc<dyn Clock>,
    /// How the replica waits.
    pub timer: Arc<dyn Timer>,
    /// Ids and jitter.
    pub entropy: Arc<Entropy>,
    /// Who is told of each step.
    pub points: Arc<dyn Points>,
    /// The figures.
    pub options: SnapshotOptions,
}
