//! What can go wrong in a ledger.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use leasehold_types::{Epoch, ErrorCode, Position, Refusal};

/// A ledger's failure. Grouped by what the caller does next; unless `outcome_unknown` says otherwise, nothing was
/// executed and the ledger is usable afterwards.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    // Retry, here or at the owner.
    /// The gate said no. With `outcome_unknown` it said so after the commit: the write may or may not be in what the
    /// next tenure starts from, so it is never called a success (contract.md, ground rule).
    #[error("{refusal}{}", if *outcome_unknown { ", after the write was committed here: whether it lasts is unknown" } else { "" })]
    Refused {
        /// Why.
        refusal: Refusal,
        /// Whether something had been committed when the gate was asked for the last time.
        outcome_unknown: bool,
    },
    /// The connections were all in use for longer than the limit.
    #[error("the ledger's connections were in use for {waited:?}; try again")]
    Busy {
        /// How long this call waited.
        waited: Duration,
    },
    /// The memory for answers, or for SQL, is in use by others. Nothing was executed.
    #[error("the memory for SQL and its answers is in use; try again")]
    MemoryShort,
    /// The ledger was closed.
    #[error("the ledger of epoch {epoch} is closed")]
    Closed {
        /// The tenure's epoch.
        epoch: Epoch,
    },
    /// The disk is full. Nothing of this call was kept; what was acknowledged before is untouched.
    #[error("the disk under {path} is full")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("failed to {action} {path}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// Another live owner has this file open.
    #[error("{path} is in use by another live owner; give each replica a state root of its own")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The path leads to another file than the one this ledger opened: another tenure has installed its own.
    #[error("{path} was replaced by another tenure's file")]
    Replaced {
        /// The path.
        path: PathBuf,
    },

    // Fix the request.
    /// The SQL reaches what callers may not reach.
    #[error("the SQL may not {what}")]
    SqlForbidden {
        /// What it would have done.
        what: String,
    },
    /// The SQL is not valid, or failed as it was written (a constraint, a type, a missing table).
    #[error("the SQL failed: {message}")]
    Sql {
        /// What SQLite said.
        message: String,
    },
    /// Writing SQL where only reading is allowed.
    #[error("the SQL writes, and only reading is allowed here; send it to execute")]
    ReadOnly,
    /// A statement ran longer than its limit and was stopped; it had no effect.
    #[error("the statement ran longer than {limit:?} and was stopped")]
    StatementTimeout {
        /// The limit.
        limit: Duration,
    },
    /// Something is past its bound.
    #[error("{what} is past its bound of {limit}")]
    TooLarge {
        /// What: `rows`, `result bytes`, `event bytes`, ...
        what: &'static str,
        /// The bound, in the unit that `what` names.
        limit: u64,
    },
    /// The ledger's file is as large as it may be ([`Limits::file_bytes_max`](crate::Limits::file_bytes_max)). Nothing of this call was
    /// kept. Reading goes on, and so does deleting rows, which makes room.
    #[error("the ledger has the {limit} bytes that it may have")]
    Full {
        /// The bound in bytes.
        limit: u64,
    },
    /// An event, or an argument about events, is not one.
    #[error("event {index}: {field} {rule}")]
    InvalidEvent {
        /// Where in its batch the event stands, from 0.
        index: usize,
        /// The field.
        field: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// An argument is not one.
    #[error("{what} {rule}")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// The idempotency key is known with another content. Use a new key for new content.
    #[error("the idempotency key {key:?} was used with another content{}", first.map_or_else(String::new, |at| format!(", first at {at}")))]
    IdempotencyMismatch {
        /// The key.
        key: String,
        /// Where the first event of that key stands; `None` for the key of an `execute`.
        first: Option<Position>,
    },
    /// The position belongs to a tail that was lost. Read on after `last_common`.
    #[error("{asked} is in a tail that was lost; the last common position is {last_common}")]
    HistoryRewound {
        /// The position that was asked for.
        asked: Position,
        /// Up to where that history and this one are the same.
        last_common: Position,
    },
    /// A call was made from inside `run` on the same ledger, by the thread that runs it.
    #[error("a ledger cannot be called from inside its own run; use the view")]
    Reentrant,
    /// The transaction was ended by its own SQL or by a failure: nothing more can be done in it, and nothing of it is
    /// kept.
    #[error("the transaction was rolled back before its end{}", detail.as_ref().map_or_else(String::new, |text| format!(": {text}")))]
    RolledBack {
        /// What is known of the cause.
        detail: Option<String>,
    },

    // An operator's to mend.
    /// The file's format is newer than this build reads.
    #[error("{path} has ledger format {found}; this build reads up to {supported}: run a newer build")]
    FormatTooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest that is read.
        supported: u64,
    },
    /// The file is not a whole ledger.
    #[error("{path} is damaged: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

impl LedgerError {
    /// The stable code (contract.md, "What the checks imply", 5).
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { refusal: Refusal::Draining, .. } => ErrorCode::Draining,
            Self::Refused { refusal: Refusal::Fenced(_), .. }
            | Self::Closed { .. }
            | Self::Replaced { .. } => ErrorCode::Fenced,
            Self::Busy { .. } | Self::MemoryShort => ErrorCode::Overloaded,
            Self::DiskFull { .. } => ErrorCode::DiskFull,
            Self::Io { .. } | Self::InUse { .. } => ErrorCode::LocalIo,
            Self::SqlForbidden { .. } => ErrorCode::SqlForbidden,
            Self::Sql { .. } | Self::RolledBack { .. } => ErrorCode::SqlError,
            Self::ReadOnly => ErrorCode::ReadOnly,
            Self::StatementTimeout { .. } => ErrorCode::StatementTimeout,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Full { .. } => ErrorCode::TenantFull,
            Self::InvalidEvent { .. } | Self::InvalidArgument { .. } | Self::Reentrant => {
                ErrorCode::InvalidArgument
            }
            Self::IdempotencyMismatch { .. } => ErrorCode::IdempotencyMismatch,
            Self::HistoryRewound { .. } => ErrorCode::HistoryRewound,
            Self::FormatTooNew { .. } => ErrorCode::FormatTooNew,
            Self::Damaged { .. } => ErrorCode::Damaged,
        }
    }

    /// Whether the call may have taken effect although it failed.
    #[must_use]
    pub const fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Refused { outcome_unknown: true, .. })
    }

    /// The refusal, where the gate was the cause.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }

    /// A failed file operation; a full disk is told apart.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull => Self::DiskFull { path },
            _ => Self::Io { action, path, source: Arc::new(source) },
        }
    }
}

impl From<Refusal> for LedgerError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal, outcome_unknown: false }
    }
}

/// Why a `run` did not end well: the work's own error, or the ledger's.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The work answered an error; everything that it did was rolled back.
    #[error("the work failed")]
    Work(#[source] E),
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl RunError<LedgerError> {
    /// The one error, where the work's is of the same kind.
    #[must_use]
    pub fn into_ledger(self) -> LedgerError {
        match self {
            Self::Work(error) | Self::Ledger(error) => error,
        }
    }
}
