//! What observers are told.

use std::time::Duration;

use leasehold_snapshot::{Receipt, SnapshotNumber};
use leasehold_types::{Epoch, ErrorCode, FencedReason, LeaseKey, Position};

/// A transition of a tenure, as it is told to the router's observer, in the order in which a tenure made them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TenureEvent {
    /// The tenant is open here: calls may come.
    Acquired {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
    },
    /// The lease was renewed in time.
    Renewed {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
    },
    /// The deadline passed without a renewal: calls are refused until the lease is resumed or lost.
    Lapsed {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
    },
    /// A lapsed lease is held again, in the same epoch, with nothing lost.
    Resumed {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
    },
    /// Another tenure holds the tenant; this one is over.
    Lost {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// How that is known.
        reason: FencedReason,
    },
    /// An image was published.
    SnapshotPublished {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// Its number in the epoch.
        number: SnapshotNumber,
        /// Up to where it has everything.
        position: Position,
        /// How many bytes were uploaded.
        bytes: u64,
        /// How long it took, the wait for the upload pool not counted.
        took: Duration,
    },
    /// An image was not published, or not in time to be counted on.
    SnapshotFailed {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// The error's code.
        code: ErrorCode,
        /// What went wrong.
        error: String,
    },
    /// A handoff gave up waiting for running work; the tenant serves on.
    DrainTimeout {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// How many calls were still running.
        in_flight: u32,
    },
    /// A handoff has closed the gate to every call, the work that it waited for has ended: nothing is acknowledged from here on, unless
    /// the flush fails.
    GateClosed {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
    },
    /// The lease was handed back; the tenure is over.
    Released {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// Whether everything acknowledged is in the store.
        flushed: bool,
        /// After a handoff: how long ago the gate had been closed to every call, by this replica's own clock.
        closed_for: Option<Duration>,
    },
    /// What is dead or superseded was deleted.
    Swept {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// How many objects went.
        objects: u64,
        /// How many bytes those were.
        bytes: u64,
    },
    /// A sweep failed; the next tenure sweeps again.
    SweepFailed {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// What went wrong.
        error: String,
    },
    /// The tenant was forgotten, and that is proven.
    Forgotten {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// The proof.
        receipt: Receipt,
    },
}

impl TenureEvent {
    /// The event's name in logs and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Acquired { .. } => "acquired",
            Self::Renewed { .. } => "renewed",
            Self::Lapsed { .. } => "lapsed",
            Self::Resumed { .. } => "resumed",
            Self::Lost { .. } => "lost",
            Self::SnapshotPublished { .. } => "snapshot_published",
            Self::SnapshotFailed { .. } => "snapshot_failed",
            Self::DrainTimeout { .. } => "drain_timeout",
            Self::GateClosed { .. } => "gate_closed",
            Self::Released { .. } => "released",
            Self::Swept { .. } => "swept",
            Self::SweepFailed { .. } => "sweep_failed",
            Self::Forgotten { .. } => "forgotten",
        }
    }

    /// The tenant.
    #[must_use]
    pub const fn key(&self) -> &LeaseKey {
        match self {
            Self::Acquired { key, .. }
            | Self::Renewed { key, .. }
            | Self::Lapsed { key, .. }
            | Self::Resumed { key, .. }
            | Self::Lost { key, .. }
            | Self::SnapshotPublished { key, .. }
            | Self::SnapshotFailed { key, .. }
            | Self::DrainTimeout { key, .. }
            | Self::GateClosed { key, .. }
            | Self::Released { key, .. }
            | Self::Swept { key, .. }
            | Self::SweepFailed { key, .. }
            | Self::Forgotten { key, .. } => key,
        }
    }

    /// The tenure's epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        match self {
            Self::Acquired { epoch, .. }
            | Self::Renewed { epoch, .. }
            | Self::Lapsed { epoch, .. }
            | Self::Resumed { epoch, .. }
            | Self::Lost { epoch, .. }
            | Self::SnapshotPublished { epoch, .. }
            | Self::SnapshotFailed { epoch, .. }
            | Self::DrainTimeout { epoch, .. }
            | Self::GateClosed { epoch, .. }
            | Self::Released { epoch, .. }
            | Self::Swept { epoch, .. }
            | Self::SweepFailed { epoch, .. }
            | Self::Forgotten { epoch, .. } => *epoch,
        }
    }

    /// Logs the event. Renewals are routine; what costs somebody something is a warning.
    pub(crate) fn log(&self) {
        let (name, key, epoch) = (self.name(), self.key(), self.epoch());
        match self {
            Self::Renewed { .. } => tracing::trace!(%key, %epoch, "{name}"),
            Self::SnapshotPublished { number, position, bytes, took, .. } => {
                tracing::debug!(%key, %epoch, %number, %position, bytes, ?took, "{name}");
            }
            Self::Swept { objects, bytes, .. } => tracing::debug!(%key, %epoch, objects, bytes, "{name}"),
            Self::GateClosed { .. } => tracing::debug!(%key, %epoch, "{name}"),
            Self::Released { flushed, closed_for, .. } => {
                tracing::info!(%key, %epoch, flushed, ?closed_for, "{name}");
            }
            Self::Forgotten { receipt, .. } => {
                tracing::info!(%key, %epoch, floor = %receipt.floor, objects = receipt.objects_deleted, "{name}");
            }
            Self::Acquired { .. } | Self::Resumed { .. } => tracing::info!(%key, %epoch, "{name}"),
            Self::Lapsed { .. } => tracing::warn!(%key, %epoch, "{name}"),
            Self::Lost { reason, .. } => tracing::warn!(%key, %epoch, %reason, "{name}"),
            Self::SnapshotFailed { error, code, .. } => tracing::warn!(%key, %epoch, error, %code, "{name}"),
            Self::SweepFailed { error, .. } => tracing::warn!(%key, %epoch, error, "{name}"),
            Self::DrainTimeout { in_flight, .. } => tracing::warn!(%key, %epoch, in_flight, "{name}"),
        }
    }
}
