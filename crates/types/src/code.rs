//! Stable codes: what a caller decides by, never the message.

use std::fmt;

use serde::Serialize;

/// The stable code of an error (contract.md, "What the checks imply", 5). Codes are added, never renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    // Retry, here or elsewhere: nothing was executed.
    /// The tenant is leaving this replica.
    Draining,
    /// This tenure cannot prove that it holds the lease.
    Fenced,
    /// Another replica holds the tenant.
    LeaseHeld,
    /// Work did not end within the drain time-out; the tenant serves again.
    DrainTimeout,
    /// An operator holds the tenant still on this replica until it is resumed.
    Paused,
    /// A bound on work in flight was reached.
    Overloaded,
    /// More requests a second than one caller, or one tenant, may have.
    RateLimited,
    /// Something did not answer within its time limit.
    Timeout,
    /// The lease store failed or could not be reached.
    LeaseStoreUnavailable,
    /// The blob store failed or could not be reached.
    BlobStoreUnavailable,
    /// The replica that holds the tenant could not be reached, or its answer was lost.
    OwnerUnreachable,
    /// The local disk is full.
    DiskFull,
    /// The local disk or file failed.
    LocalIo,
    // Fix the request.
    /// An argument, path or id is not one.
    InvalidArgument,
    /// A body is no valid JSON, or not of the expected shape.
    MalformedBody,
    /// A body, batch, row count or field is past its bound.
    TooLarge,
    /// The tenant's ledger is as large as it may be.
    TenantFull,
    /// The SQL is not valid, or failed as the caller wrote it.
    SqlError,
    /// The SQL reaches what callers may not reach.
    SqlForbidden,
    /// Writing SQL where only reading is allowed.
    ReadOnly,
    /// A statement ran longer than its limit and was stopped.
    StatementTimeout,
    /// The idempotency key is known with another content.
    IdempotencyMismatch,
    /// The position belongs to a tail that was lost; resume at the last common position.
    HistoryRewound,
    /// The replica that was named is not there, leaves, or cannot be reached.
    ReplicaUnavailable,
    /// The tenant is not empty.
    NotEmpty,
    /// A condition that the request stated does not hold.
    PreconditionFailed,
    /// There is no such tenant.
    TenantUnknown,
    /// The tenant was forgotten.
    TenantForgotten,
    /// There is no such thing at this address.
    NotFound,
    /// The address is known, the method is not.
    MethodNotAllowed,
    /// A request says that a replica forwarded it and does not show the fleet's secret.
    PeerRefused,
    /// Nobody is known by what the request shows, or it shows nothing.
    Unauthenticated,
    /// The caller is known and may not do this here.
    Forbidden,
    // An operator's to mend.
    /// A configuration cannot be used.
    InvalidConfiguration,
    /// A live process already uses this replica id.
    ReplicaIdTaken,
    /// A persisted format is newer than this build reads.
    FormatTooNew,
    /// What the store holds is damaged.
    Damaged,
    /// A defect of this program.
    Internal,
}

impl ErrorCode {
    /// Every code, so that tables over them can be shown to be complete.
    pub const ALL: &[Self] = &[
        Self::Draining,
        Self::Fenced,
        Self::LeaseHeld,
        Self::DrainTimeout,
        Self::Paused,
        Self::Overloaded,
        Self::RateLimited,
        Self::Timeout,
        Self::LeaseStoreUnavailable,
        Self::BlobStoreUnavailable,
        Self::OwnerUnreachable,
        Self::DiskFull,
        Self::LocalIo,
        Self::InvalidArgument,
        Self::MalformedBody,
        Self::TooLarge,
        Self::TenantFull,
        Self::SqlError,
        Self::SqlForbidden,
        Self::ReadOnly,
        Self::StatementTimeout,
        Self::IdempotencyMismatch,
        Self::HistoryRewound,
        Self::ReplicaUnavailable,
        Self::NotEmpty,
        Self::PreconditionFailed,
        Self::TenantUnknown,
        Self::TenantForgotten,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::PeerRefused,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::InvalidConfiguration,
        Self::ReplicaIdTaken,
        Self::FormatTooNew,
        Self::Damaged,
        Self::Internal,
    ];

    /// The code as it appears in answers and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Fenced => "fenced",
            Self::LeaseHeld => "lease_held",
            Self::DrainTimeout => "drain_timeout",
            Self::Paused => "paused",
            Self::Overloaded => "overloaded",
            Self::RateLimited => "rate_limited",
            Self::Timeout => "timeout",
            Self::LeaseStoreUnavailable => "lease_store_unavailable",
            Self::BlobStoreUnavailable => "blob_store_unavailable",
            Self::OwnerUnreachable => "owner_unreachable",
            Self::DiskFull => "disk_full",
            Self::LocalIo => "local_io",
            Self::InvalidArgument => "invalid_argument",
            Self::MalformedBody => "malformed_body",
            Self::TooLarge => "too_large",
            Self::TenantFull => "tenant_full",
            Self::SqlError => "sql_error",
            Self::SqlForbidden => "sql_forbidden",
            Self::ReadOnly => "read_only",
            Self::StatementTimeout => "statement_timeout",
            Self::IdempotencyMismatch => "idempotency_mismatch",
            Self::HistoryRewound => "history_rewound",
            Self::ReplicaUnavailable => "replica_unavailable",
            Self::NotEmpty => "not_empty",
            Self::PreconditionFailed => "precondition_failed",
            Self::TenantUnknown => "tenant_unknown",
            Self::TenantForgotten => "tenant_forgotten",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::PeerRefused => "peer_refused",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::InvalidConfiguration => "invalid_configuration",
            Self::ReplicaIdTaken => "replica_id_taken",
            Self::FormatTooNew => "format_too_new",
            Self::Damaged => "damaged",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serialized_code_is_the_shown_one() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{code}\""));
        }
    }
}
