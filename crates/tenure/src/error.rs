//! What a caller of a tenant can be told. Grouped by what the caller does next.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use leasehold_lease::{Holder, LeaseError};
use leasehold_ledger::LedgerError;
use leasehold_snapshot::{Receipt, SnapshotError};
use leasehold_types::{Epoch, ErrorCode, FencedReason, Floor, LeaseKey, Refusal, Timestamp};

use crate::vocabulary::Illegal;

/// Why a call on a tenant did not succeed. Cheap to clone: joined callers are told the same.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TenureError {
    // Retry: nothing was executed unless `outcome_unknown` says so.
    /// The tenant is leaving this replica, or what was asked for was overtaken.
    #[error("{key} is leaving this replica (draining): ask again, whoever holds it then answers")]
    Draining {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch, where there is one already.
        epoch: Option<Epoch>,
        /// Whether a write may have taken effect all the same.
        outcome_unknown: bool,
    },
    /// This tenure cannot prove that it holds the lease.
    #[error("the tenure of {key} at epoch {epoch} is fenced: {reason}")]
    Fenced {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// How it came to be fenced.
        reason: FencedReason,
        /// Whether a write may have taken effect all the same.
        outcome_unknown: bool,
    },
    /// Running work did not end in time; the tenant serves again.
    #[error(
        "{in_flight} calls on {key} at epoch {epoch} did not end within {waited:?}: the tenant serves on here"
    )]
    DrainTimeout {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// How long the handoff waited.
        waited: Duration,
        /// How many calls were still running.
        in_flight: u32,
    },
    /// Too much waits on this tenant, or too many tenants are open.
    #[error("{what} of this replica is reached ({limit}): try again later")]
    Overloaded {
        /// The tenant that was asked for.
        key: LeaseKey,
        /// Which bound.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// An upload did not end in time.
    #[error("the upload of {key} at epoch {epoch} did not end within {limit:?}")]
    UploadTimeout {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// Its time limit.
        limit: Duration,
    },
    /// The lease store failed.
    #[error("failed to keep the lease of {key}")]
    Lease {
        /// The tenant.
        key: LeaseKey,
        /// What the store said.
        source: Arc<LeaseError>,
    },
    /// The snapshots of the tenant failed: the store, or what it holds.
    #[error("failed to keep the snapshots of {key}")]
    Snapshot {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch, where there is one already.
        epoch: Option<Epoch>,
        /// What went wrong.
        source: Arc<SnapshotError>,
    },
    /// The local disk failed.
    #[error("failed to {action} {path}")]
    Local {
        /// The tenant.
        key: LeaseKey,
        /// What was being done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    // Go to the owner.
    /// Another tenure holds the tenant.
    #[error("{key} is held by replica {} at epoch {} for another {:?}", holder.replica, holder.epoch, holder.remaining)]
    LeaseHeld {
        /// The tenant.
        key: LeaseKey,
        /// Who holds it.
        holder: Holder,
    },
    // Wait for an operator.
    /// An operator holds the tenant still: nobody opens it before it is resumed.
    #[error("{key} is paused since {since}: it is opened again once an operator resumes it")]
    Paused {
        /// The tenant.
        key: LeaseKey,
        /// Since when (calendar).
        since: Timestamp,
    },
    // Give up, or create it.
    /// Nobody ever had this tenant.
    #[error("there is no tenant {key}")]
    TenantUnknown {
        /// The tenant.
        key: LeaseKey,
    },
    /// The tenant was forgotten.
    #[error("{key} was forgotten up to epoch {floor}")]
    TenantForgotten {
        /// The tenant.
        key: LeaseKey,
        /// Up to which epoch.
        floor: Floor,
        /// The receipt, once the forget was completed.
        receipt: Option<Box<Receipt>>,
    },
    // Fix the request.
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger {
        /// The tenant's own error.
        source: Arc<LedgerError>,
    },
    /// A directory that is not the tenant's own.
    #[error("{root} is not the root of {key}: a tenant's root ends in {expected}")]
    InvalidRoot {
        /// The tenant.
        key: LeaseKey,
        /// What was given.
        root: PathBuf,
        /// What a root of this tenant ends in.
        expected: PathBuf,
    },
    // A defect.
    /// Something happened that cannot.
    #[error("the tenure of {key} was told what cannot happen")]
    Defect {
        /// The tenant.
        key: LeaseKey,
        /// What happened.
        source: Illegal,
    },
    /// A task of this tenure ended without an answer.
    #[error("a task of the tenure of {key} ended without an answer")]
    TaskEnded {
        /// The tenant.
        key: LeaseKey,
    },
}

impl TenureError {
    pub(crate) fn refused(key: &LeaseKey, epoch: Option<Epoch>, refusal: Refusal) -> Self {
        Self::from_refusal(key, epoch, refusal, false)
    }

    pub(crate) fn from_refusal(
        key: &LeaseKey,
        epoch: Option<Epoch>,
        refusal: Refusal,
        outcome_unknown: bool,
    ) -> Self {
        match (refusal, epoch) {
            (Refusal::Fenced(reason), Some(epoch)) => {
                Self::Fenced { key: key.clone(), epoch, reason, outcome_unknown }
            }
            _ => Self::Draining { key: key.clone(), epoch, outcome_unknown },
        }
    }

    /// A ledger's error, with what it was on where the gate said no.
    pub(crate) fn ledger(key: &LeaseKey, epoch: Option<Epoch>, source: LedgerError) -> Self {
        match source {
            LedgerError::Refused { refusal, outcome_unknown } => {
                Self::from_refusal(key, epoch, refusal, outcome_unknown)
            }
            source => Self::Ledger { source: Arc::new(source) },
        }
    }

    pub(crate) fn snapshot(key: &LeaseKey, epoch: Option<Epoch>, source: SnapshotError) -> Self {
        match (source.fenced(), epoch, &source) {
            (Some(reason), Some(epoch), _) => {
                Self::Fenced { key: key.clone(), epoch, reason, outcome_unknown: false }
            }
            (_, _, SnapshotError::Stopped { .. }) => {
                Self::Draining { key: key.clone(), epoch, outcome_unknown: false }
            }
            _ => Self::Snapshot { key: key.clone(), epoch, source: Arc::new(source) },
        }
    }

    pub(crate) fn lease(key: &LeaseKey, source: LeaseError) -> Self {
        Self::Lease { key: key.clone(), source: Arc::new(source) }
    }

    pub(crate) fn local(
        key: &LeaseKey,
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let (key, path) = (key.clone(), path.to_path_buf());
        move |source| Self::Local { key, action, path, source: Arc::new(source) }
    }

    /// The stable code (contract.md, "What the checks imply", 5).
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Draining { .. } => ErrorCode::Draining,
            Self::Fenced { .. } => ErrorCode::Fenced,
            Self::DrainTimeout { .. } => ErrorCode::DrainTimeout,
            Self::Overloaded { .. } => ErrorCode::Overloaded,
            Self::UploadTimeout { .. } => ErrorCode::Timeout,
            Self::Lease { source, .. } => source.code(),
            Self::Snapshot { source, .. } => source.code(),
            Self::Local { source, .. } if source.kind() == io::ErrorKind::StorageFull => ErrorCode::DiskFull,
            Self::Local { .. } => ErrorCode::LocalIo,
            Self::LeaseHeld { .. } => ErrorCode::LeaseHeld,
            Self::Paused { .. } => ErrorCode::Paused,
            Self::TenantUnknown { .. } => ErrorCode::TenantUnknown,
            Self::TenantForgotten { .. } => ErrorCode::TenantForgotten,
            Self::Ledger { source } => source.code(),
            Self::InvalidRoot { .. } => ErrorCode::InvalidArgument,
            Self::Defect { .. } | Self::TaskEnded { .. } => ErrorCode::Internal,
        }
    }

    /// Whether a write of this call may have taken effect although it failed. `false`: it was not executed.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Draining { outcome_unknown, .. } | Self::Fenced { outcome_unknown, .. } => *outcome_unknown,
            Self::Ledger { source } => source.outcome_unknown(),
            Self::TaskEnded { .. } => true,
            _ => false,
        }
    }

    /// Whether the call was refused because the tenant is on its way, so that asking again reaches whoever holds it then.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        matches!(self, Self::Draining { outcome_unknown: false, .. })
    }
}

/// Why a `run` did not end well: the work's own error, or the tenure's.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The work answered an error; everything that it did was rolled back.
    #[error("the work failed")]
    Work(#[source] E),
    /// The call was refused, or the ledger failed.
    #[error(transparent)]
    Tenure(#[from] TenureError),
}

impl<E> RunError<E> {
    /// The tenure's own error, if it was not the work's.
    #[must_use]
    pub const fn tenure(&self) -> Option<&TenureError> {
        match self {
            Self::Work(_) => None,
            Self::Tenure(error) => Some(error),
        }
    }
}
