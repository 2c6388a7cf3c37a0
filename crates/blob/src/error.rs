//! What can go wrong between a replica and its blob store.

use std::{path::PathBuf, time::Duration};

use leasehold_types::ErrorCode;

use crate::BlobKeyError;

/// A blob store's failure. That an object exists already, or does not, is an answer and no error.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store failed or could not be reached; a put or delete may or may not have been executed.
    #[error("failed to {action} in the blob store: {detail}")]
    Unavailable {
        /// What was being done, with the key or prefix.
        action: String,
        /// What the store, or the way to it, said.
        detail: String,
    },
    /// The store did not answer in time; a put or delete may or may not have been executed.
    #[error("the blob store did not {action} within {limit:?}")]
    Timeout {
        /// What was being done, with the key or prefix.
        action: String,
        /// How long it was given.
        limit: Duration,
    },
    /// The store asks to be left alone for a while.
    #[error("the blob store is throttling ({action})")]
    Throttled {
        /// What was being done, with the key or prefix.
        action: String,
        /// How long it asks to be left alone, if it said.
        retry_after: Option<Duration>,
    },
    /// An object is larger than the caller can take.
    #[error("{key} has {len} bytes, more than the {len_max} that are taken")]
    TooLarge {
        /// The object.
        key: String,
        /// Its length in bytes.
        len: u64,
        /// The bound in bytes.
        len_max: u64,
    },
    /// What was said about a store cannot be used; nothing was asked of it yet.
    #[error("the blob store's settings cannot be used: {detail}")]
    Settings {
        /// Which setting: `container`, `account`, `endpoint`, `credential`, or a part of one, such as `tenant id`.
        setting: &'static str,
        /// What it should be. Never a secret.
        detail: String,
    },
    /// A key or prefix that is none.
    #[error(transparent)]
    InvalidKey(#[from] BlobKeyError),
    /// A name cannot be an object and the beginning of other names.
    #[error(
        "{key} cannot be put: a name is an object or the beginning of other names, and this one would be both"
    )]
    NameInUse {
        /// The key that was put.
        key: String,
    },
    /// The local file of a put or download failed, or the directory that a store was to be opened in.
    #[error("failed to {action} {path}")]
    Local {
        /// What was being done: `read`, `write` or `open a blob store in`.
        action: &'static str,
        /// The local file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store's disk is full.
    #[error("the blob store is full ({action})")]
    Full {
        /// What was being done, with the key or prefix.
        action: String,
    },
}

impl BlobError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } | Self::Timeout { .. } | Self::Throttled { .. } => {
                ErrorCode::BlobStoreUnavailable
            }
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Settings { .. } | Self::InvalidKey(_) | Self::NameInUse { .. } => {
                ErrorCode::InvalidArgument
            }
            Self::Local { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                ErrorCode::DiskFull
            }
            Self::Local { .. } => ErrorCode::LocalIo,
            Self::Full { .. } => ErrorCode::DiskFull,
        }
    }

    /// Whether the store failed for now and the same call may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Timeout { .. } | Self::Throttled { .. } | Self::Full { .. }
        )
    }
}
