//! How the process ends: the table in `--help`.

use std::process::ExitCode;

use leasehold_types::ErrorCode;

/// The process's exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    /// The command line or the configuration cannot be used.
    Usage = 2,
    /// There is no such tenant, snapshot or salvage, or the tenant was forgotten.
    NotThere = 3,
    /// Something that is stored is damaged, or newer than this build reads.
    Damaged = 4,
    /// Not now.
    TryAgain = 5,
    /// The replica went and could not publish everything.
    NotFlushed = 6,
    /// Stopped by Ctrl-C, as shells count it.
    Interrupted = 130,
}

impl Exit {
    /// How a verb ends that failed with `code`.
    pub(crate) const fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::InvalidArgument | ErrorCode::InvalidConfiguration => Self::Usage,
            ErrorCode::TenantUnknown | ErrorCode::TenantForgotten | ErrorCode::NotFound => Self::NotThere,
            ErrorCode::Damaged | ErrorCode::FormatTooNew => Self::Damaged,
            ErrorCode::Draining
            | ErrorCode::Fenced
            | ErrorCode::LeaseHeld
            | ErrorCode::DrainTimeout
            | ErrorCode::Paused
            | ErrorCode::Overloaded
            | ErrorCode::Timeout
            | ErrorCode::LeaseStoreUnavailable
            | ErrorCode::BlobStoreUnavailable
            | ErrorCode::OwnerUnreachable => Self::TryAgain,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
