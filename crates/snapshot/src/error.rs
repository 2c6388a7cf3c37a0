//! What can go wrong between a tenure and what counts.

use std::path::PathBuf;

use leasehold_blob::{BlobError, BlobKey};
use leasehold_lease::LeaseError;
use leasehold_types::{Epoch, ErrorCode, FencedReason, LeaseKey};

/// Why an opening, a publish, a forget, a sweep or a reading did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    // Go to the owner.
    /// This tenure is superseded, or cannot prove that it is not.
    #[error("the tenure of {key} at epoch {epoch} is fenced: {reason}")]
    Fenced {
        /// The tenant.
        key: LeaseKey,
        /// The tenure's epoch.
        epoch: Epoch,
        /// How it came to be fenced.
        reason: FencedReason,
    },
    // Retry.
    /// The opening was asked to stop.
    #[error("the opening of {key} was stopped")]
    Stopped {
        /// The tenant.
        key: LeaseKey,
    },
    /// Others wrote at every one of the bounded tries.
    #[error("failed to {action} {key} in {tries} tries, others wrote meanwhile: try again")]
    Contended {
        /// What was being done, such as `open`.
        action: &'static str,
        /// The tenant.
        key: LeaseKey,
        /// How often it was tried.
        tries: u32,
    },
    /// The blob store's own failure.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The lease store's own failure.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A local file failed.
    #[error("failed to {action} {path}")]
    Local {
        /// What was being done, such as `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    // Fix the request.
    /// There is no such snapshot.
    #[error("{key} has no snapshot {which}: list what it has")]
    NoSuchSnapshot {
        /// The tenant.
        key: LeaseKey,
        /// What was asked for.
        which: String,
    },
    // An operator's to mend.
    /// An object is not what it must be, or is not there.
    #[error("{object} is damaged: {detail}")]
    Damaged {
        /// The object.
        object: BlobKey,
        /// What is wrong with it.
        detail: String,
    },
    /// An object's format is newer than this build reads.
    #[error("{object} has format {found}, this build reads up to {known}: use a newer build")]
    FormatTooNew {
        /// The object.
        object: BlobKey,
        /// Its format.
        found: u64,
        /// The newest that this build reads.
        known: u64,
    },
    /// More epochs than an opening fences lie between the newest snapshot and the tenure.
    #[error(
        "{key} has no base in the {gap} epochs below {epoch}, an opening fences up to {gap_max}: forget the tenant, or remove what lies in an epoch that was never given"
    )]
    EpochGap {
        /// The tenant.
        key: LeaseKey,
        /// The opening tenure's epoch.
        epoch: Epoch,
        /// How many epochs have no base.
        gap: u64,
        /// The bound.
        gap_max: u64,
    },
    // A defect.
    /// A plan was fed what it did not ask for.
    #[error("the {plan} of {key} asked for {asked} and was answered {answer}")]
    IllegalAnswer {
        /// The plan.
        plan: &'static str,
        /// The tenant.
        key: LeaseKey,
        /// What it had asked for.
        asked: &'static str,
        /// What it was fed.
        answer: &'static str,
    },
}

impl SnapshotError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Fenced { .. } => ErrorCode::Fenced,
            Self::Stopped { .. } => ErrorCode::Draining,
            Self::Contended { .. } => ErrorCode::Timeout,
            Self::Blob(error) => error.code(),
            Self::Lease(error) => error.code(),
            Self::Local { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                ErrorCode::DiskFull
            }
            Self::Local { .. } => ErrorCode::LocalIo,
            Self::NoSuchSnapshot { .. } => ErrorCode::NotFound,
            Self::Damaged { .. } | Self::EpochGap { .. } => ErrorCode::Damaged,
            Self::FormatTooNew { .. } => ErrorCode::FormatTooNew,
            Self::IllegalAnswer { .. } => ErrorCode::Internal,
        }
    }

    /// How this tenure came to be fenced, if that is what happened.
    #[must_use]
    pub const fn fenced(&self) -> Option<FencedReason> {
        match self {
            Self::Fenced { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    pub(crate) fn damaged(object: &BlobKey, detail: impl Into<String>) -> Self {
        /// The longest detail, in characters: what lies in the store may be part of it.
        const DETAIL_CHARS_MAX: usize = 1_000;
        let mut detail: String = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS_MAX) {
            detail.truncate(end);
            detail.push('…');
        }
        Self::Damaged { object: object.clone(), detail }
    }

    pub(crate) fn local(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Local { action, path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_which_object_and_what_to_do() {
        let object: BlobKey = "acme/u/e00000001/snap-000002.json".parse().unwrap();
        let error = SnapshotError::FormatTooNew { object, found: 2, known: 1 };
        assert_eq!(error.code(), ErrorCode::FormatTooNew);
        assert_eq!(
            error.to_string(),
            "acme/u/e00000001/snap-000002.json has format 2, this build reads up to 1: use a newer build"
        );
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(
            SnapshotError::local("write", std::path::Path::new("/x"))(full).code(),
            ErrorCode::DiskFull
        );
    }
}
