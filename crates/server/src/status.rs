//! The one table from codes to statuses.

use std::fmt::Write as _;

use axum::http::StatusCode;
use leasehold_types::ErrorCode;

/// What an answer with a code looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) code: ErrorCode,
    pub(crate) status: StatusCode,
    /// The problem in a few words, the same for every answer with this code.
    pub(crate) title: &'static str,
    /// What the caller does next.
    pub(crate) next: &'static str,
    /// Seconds after which asking again may help, where nothing better is known; `None` where waiting does not help.
    pub(crate) retry_after_secs: Option<u64>,
}

const fn row(
    code: ErrorCode,
    status: StatusCode,
    retry_after_secs: Option<u64>,
    title: &'static str,
    next: &'static str,
) -> Row {
    Row { code, status, title, next, retry_after_secs }
}

/// Every code, its status and what to do. A test holds it complete.
///
/// Statuses group by what the caller does: 4xx means change the request or its address (409 `lease_held` names the replica that
/// answers for the tenant), 429, 502, 503 and 504 mean come back later and nothing has to change, 500 and 507 mean tell an operator.
pub(crate) const TABLE: &[Row] = &[
    row(
        ErrorCode::Draining,
        StatusCode::SERVICE_UNAVAILABLE,
        Some(1),
        "the tenant is leaving this replica",
        "repeat the request; whoever holds the tenant then answers",
    ),
    row(
        ErrorCode::Fenced,
        StatusCode::SERVICE_UNAVAILABLE,
        Some(1),
        "this replica cannot prove that it holds the tenant",
        "repeat the request; where `executed` is `unknown`, with the same idempotency key",
    ),
    row(
        ErrorCode::LeaseHeld,
        StatusCode::CONFLICT,
        Some(1),
        "another replica holds the tenant",
        "send the request to `endpoint`",
    ),
    row(
        ErrorCode::DrainTimeout,
        StatusCode::SERVICE_UNAVAILABLE,
        Some(5),
        "work in flight did not end in time",
        "the tenant serves again here; repeat the handoff, or abandon it",
    ),
    row(
        ErrorCode::Paused,
        StatusCode::SERVICE_UNAVAILABLE,
        Some(10),
        "an operator holds the tenant still",
        "wait until an operator resumes it",
    ),
    row(
        ErrorCode::Overloaded,
        StatusCode::TOO_MANY_REQUESTS,
        Some(1),
        "too much is under way",
        "repeat the request later, with fewer at the same time",
    ),
    row(
        ErrorCode::RateLimited,
        StatusCode::TOO_MANY_REQUESTS,
        Some(1),
        "more requests a second than one may have",
        "repeat the request after `Retry-After`",
    ),
    row(
        ErrorCode::Timeout,
        StatusCode::GATEWAY_TIMEOUT,
        Some(1),
        "no answer within the time limit",
        "where `executed` is `unknown`, repeat the request with the same idempotency key",
    ),
    row(
        ErrorCode::LeaseStoreUnavailable,
        StatusCode::SERVICE_UNAVAILABLE,
        Some(2),
        "the lease store cannot be reached",
        "repeat the request later",
    ),
    row(
        ErrorCode::BlobStoreUnavailable,
        StatusCode::SERVICE_UNAVAILABLE,
        Some(2),
        "the blob store cannot be reached",
        "repeat the request later",
    ),
    row(
        ErrorCode::OwnerUnreachable,
        StatusCode::BAD_GATEWAY,
        Some(1),
        "the replica that holds the tenant did not answer",
        "repeat the request; where `executed` is `unknown`, with the same idempotency key",
    ),
    row(
        ErrorCode::DiskFull,
        StatusCode::INSUFFICIENT_STORAGE,
        None,
        "the disk is full",
        "an operator has to make room; nothing that was acknowledged is lost",
    ),
    row(
        ErrorCode::LocalIo,
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        "the local disk failed",
        "an operator has to look at this replica's disk",
    ),
    row(
        ErrorCode::InvalidArgument,
        StatusCode::BAD_REQUEST,
        None,
        "an argument is not valid",
        "correct the request",
    ),
    row(
        ErrorCode::MalformedBody,
        StatusCode::BAD_REQUEST,
        None,
        "the body is not what this route takes",
        "correct the body",
    ),
    row(
        ErrorCode::TooLarge,
        StatusCode::PAYLOAD_TOO_LARGE,
        None,
        "something is past its bound",
        "send or ask for less at a time",
    ),
    // Its owner's to mend, so no 5xx, which would be an operator's: a tenant that fills itself up must wake nobody.
    row(
        ErrorCode::TenantFull,
        StatusCode::PAYLOAD_TOO_LARGE,
        None,
        "the tenant is as large as it may be",
        "delete rows of the tenant's own tables, or have an operator raise `limits.ledger_bytes_max`; reading, export, handoff and forget go on",
    ),
    row(
        ErrorCode::SqlError,
        StatusCode::BAD_REQUEST,
        None,
        "the SQL is not valid or failed",
        "correct the SQL; nothing of the transaction was kept",
    ),
    row(
        ErrorCode::SqlForbidden,
        StatusCode::FORBIDDEN,
        None,
        "the SQL reaches what callers may not reach",
        "events are written by appending; what lies outside the tenant's own tables is not reachable",
    ),
    row(
        ErrorCode::ReadOnly,
        StatusCode::BAD_REQUEST,
        None,
        "writing SQL where only reading is allowed",
        "send it to `execute`",
    ),
    row(
        ErrorCode::StatementTimeout,
        StatusCode::UNPROCESSABLE_ENTITY,
        None,
        "a statement ran longer than its limit",
        "make the statement smaller; nothing of the transaction was kept",
    ),
    row(
        ErrorCode::IdempotencyMismatch,
        StatusCode::UNPROCESSABLE_ENTITY,
        None,
        "the idempotency key is known with another content",
        "use a new key for a new request",
    ),
    row(
        ErrorCode::HistoryRewound,
        StatusCode::CONFLICT,
        None,
        "the position belongs to a tail that was lost",
        "go on from `last_common`",
    ),
    row(
        ErrorCode::ReplicaUnavailable,
        StatusCode::CONFLICT,
        None,
        "the named replica does not take the tenant",
        "name one that `GET /v1/replicas` lists as alive and not draining, or none",
    ),
    row(
        ErrorCode::NotEmpty,
        StatusCode::CONFLICT,
        None,
        "the tenant is not empty",
        "import into a new tenant, or forget this one first",
    ),
    row(
        ErrorCode::PreconditionFailed,
        StatusCode::PRECONDITION_FAILED,
        None,
        "the stated condition does not hold",
        "read the tenant's status and decide again",
    ),
    row(
        ErrorCode::TenantUnknown,
        StatusCode::NOT_FOUND,
        None,
        "there is no such tenant",
        "create it with PUT, or append to it",
    ),
    row(
        ErrorCode::TenantForgotten,
        StatusCode::GONE,
        None,
        "the tenant was forgotten",
        "PUT creates it anew, empty",
    ),
    row(
        ErrorCode::NotFound,
        StatusCode::NOT_FOUND,
        None,
        "there is nothing at this address",
        "see /openapi.json",
    ),
    row(
        ErrorCode::MethodNotAllowed,
        StatusCode::METHOD_NOT_ALLOWED,
        None,
        "this address does not take this method",
        "see `Allow` and /openapi.json",
    ),
    row(
        ErrorCode::PeerRefused,
        StatusCode::FORBIDDEN,
        None,
        "the request is marked as forwarded and does not show the fleet's secret",
        "leave the mark out; between replicas, give all of them the same `peers.secret_file`",
    ),
    row(
        ErrorCode::Unauthenticated,
        StatusCode::UNAUTHORIZED,
        None,
        "the caller is not known",
        "send `Authorization: Bearer <token>` with a token that is valid now",
    ),
    row(
        ErrorCode::Forbidden,
        StatusCode::FORBIDDEN,
        None,
        "the caller may not do this here",
        "use a token with the scope and the organization; whether there is such a tenant is not told",
    ),
    row(
        ErrorCode::InvalidConfiguration,
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        "the configuration cannot be used",
        "an operator has to correct it",
    ),
    row(
        ErrorCode::ReplicaIdTaken,
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        "another process has this replica id",
        "an operator has to give this replica an id of its own",
    ),
    row(
        ErrorCode::FormatTooNew,
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        "a stored format is newer than this build reads",
        "an operator has to run a newer build",
    ),
    row(
        ErrorCode::Damaged,
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        "what the store holds is damaged",
        "an operator has to look at the tenant: restore it from an older snapshot, or forget it",
    ),
    row(
        ErrorCode::Internal,
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        "a defect of this program",
        "please report it",
    ),
];

/// The row of a code; a code that is not in the table is answered like a defect.
pub(crate) fn row_of(code: ErrorCode) -> Row {
    let found = TABLE.iter().find(|row| row.code == code);
    found.copied().unwrap_or_else(|| {
        row(code, StatusCode::INTERNAL_SERVER_ERROR, None, "a defect of this program", "please report it")
    })
}

/// The table as Markdown, for the API's description.
pub(crate) fn as_markdown() -> String {
    let mut text = "| code | status | title | what to do |\n|---|---|---|---|\n".to_owned();
    for row in TABLE {
        // Writing into a String does not fail.
        let _ = writeln!(text, "| `{}` | {} | {} | {} |", row.code, row.status.as_u16(), row.title, row.next);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_exactly_one_row() {
        for code in ErrorCode::ALL {
            assert_eq!(TABLE.iter().filter(|row| row.code == *code).count(), 1, "{code}");
        }
        assert_eq!(TABLE.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn waiting_is_advised_exactly_where_it_helps() {
        for row in TABLE {
            let later =
                matches!(row.status.as_u16(), 429 | 502 | 503 | 504) || row.code == ErrorCode::LeaseHeld;
            assert_eq!(row.retry_after_secs.is_some(), later, "{}", row.code);
        }
    }
}
