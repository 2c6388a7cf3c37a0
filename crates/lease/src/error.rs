//! What can go wrong between a replica and its lease store.

use std::time::Duration;

use leasehold_types::{Epoch, ErrorCode, LeaseKey};

/// A lease store's failure. A refusal is never an error: it is an answer of the call.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The store failed or could not be reached; the call may or may not have been executed. Retry with the same ids.
    #[error("failed to {action} in the lease store: {detail}")]
    Unavailable {
        /// What was being done, such as `renew 3 leases`.
        action: String,
        /// What the store, or the way to it, said.
        detail: String,
    },
    /// The store did not answer in time; the call may or may not have been executed. Retry with the same ids.
    #[error("the lease store did not {action} within {limit:?}")]
    Timeout {
        /// What was being done.
        action: String,
        /// How long it was given.
        limit: Duration,
    },
    /// A row breaks the store's rules: an operator has to look at it.
    #[error("the lease row of {key} is damaged: {detail}")]
    Damaged {
        /// The row's key.
        key: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The lease of a tenant has no epoch left above this one.
    #[error("the lease of {key} has no epoch above {epoch}")]
    EpochsExhausted {
        /// The tenant.
        key: LeaseKey,
        /// The last epoch.
        epoch: Epoch,
    },
    /// The store's format is newer than this build knows.
    #[error("the lease store's format is {found}, this build knows up to {known}: use a newer build")]
    FormatTooNew {
        /// The store's format.
        found: u32,
        /// The newest that this build knows.
        known: u32,
    },
}

impl LeaseError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } | Self::Timeout { .. } => ErrorCode::LeaseStoreUnavailable,
            Self::Damaged { .. } | Self::EpochsExhausted { .. } => ErrorCode::Damaged,
            Self::FormatTooNew { .. } => ErrorCode::FormatTooNew,
        }
    }
}
