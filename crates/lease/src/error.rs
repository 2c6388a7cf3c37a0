//! What can go wrong between a replica and its lease store.

use std::{path::PathBuf, time::Duration};

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
    /// The store's disk is full; nothing was changed. Make room, then retry.
    #[error("failed to {action}: the lease store's disk is full")]
    Full {
        /// What was being done.
        action: String,
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
    /// The store is there and does not let this program do what it must: a grant, a role or a password has to be mended.
    #[error(
        "the lease store refuses to {action}: {detail}: check the role, its password and its grants (sql/README.md)"
    )]
    Denied {
        /// What was being done.
        action: String,
        /// What the store said.
        detail: String,
    },
    /// The store cannot be used as it is configured.
    #[error("the lease store's configuration cannot be used: {detail}")]
    Misconfigured {
        /// What is wrong; no part of a secret.
        detail: String,
    },
    /// The store's tables are missing, or older than this build needs.
    #[error(
        "the lease tables in schema {schema} are at version {found}, this build needs {needed}: run `leasehold migrate`"
    )]
    Unmigrated {
        /// Where they are looked for.
        schema: String,
        /// Their version; 0 when there are none.
        found: u32,
        /// What this build needs.
        needed: u32,
    },
    /// The store's file could not be opened or made.
    #[error("failed to open the lease store {path}: {detail}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// The store's file is damaged, or is something else.
    #[error("{path} is no usable lease store ({detail}): restore it, or move it away")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
}

impl LeaseError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } | Self::Timeout { .. } => ErrorCode::LeaseStoreUnavailable,
            Self::Full { .. } => ErrorCode::DiskFull,
            Self::Damaged { .. } | Self::EpochsExhausted { .. } | Self::Unusable { .. } => ErrorCode::Damaged,
            Self::FormatTooNew { .. } => ErrorCode::FormatTooNew,
            Self::Denied { .. } | Self::Misconfigured { .. } | Self::Unmigrated { .. } => {
                ErrorCode::InvalidConfiguration
            }
            Self::Open { .. } => ErrorCode::LocalIo,
        }
    }

    /// Whether the store failed for now and the same call may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Timeout { .. } | Self::Full { .. })
    }
}

/// Times by which no lease can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimesError {
    /// The ttl is zero or longer than a day.
    #[error("a ttl of {ttl:?} cannot be used: it must be above zero and at most {ttl_max:?}")]
    Ttl {
        /// What was asked for.
        ttl: Duration,
        /// The longest that can be.
        ttl_max: Duration,
    },
    /// The margin is zero, or leaves nothing of the ttl.
    #[error("a margin of {margin:?} cannot be used: it must be above zero and below the ttl of {ttl:?}")]
    Margin {
        /// What was asked for.
        margin: Duration,
        /// The ttl that it was to be taken from.
        ttl: Duration,
    },
    /// Renewals so far apart that every lease would lapse between two of them.
    #[error(
        "renewals every {every:?} cannot keep a lease: it must be above zero and below ttl - margin, which is {held_for:?}"
    )]
    Every {
        /// What was asked for.
        every: Duration,
        /// How long one grant is counted on.
        held_for: Duration,
    },
    /// A renewal chunk of no claims, or of too many.
    #[error("a renewal chunk of {chunk} claims cannot be used: 1 to {chunk_max}")]
    Chunk {
        /// What was asked for.
        chunk: usize,
        /// The largest that can be.
        chunk_max: usize,
    },
    /// A lease of other times than those that its keeper renews by: it would count on more than it is given.
    #[error(
        "a lease of ttl {lease_ttl:?} cannot be kept by renewals of ttl {keeper_ttl:?}: acquire it with the keeper's times"
    )]
    Mismatch {
        /// The lease's ttl.
        lease_ttl: Duration,
        /// The keeper's ttl.
        keeper_ttl: Duration,
    },
}

impl LeaseTimesError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::InvalidConfiguration
    }
}
