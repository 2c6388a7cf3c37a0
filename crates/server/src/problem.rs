//! The body of every refusal: RFC 9457 problem details with our code.

use std::{fmt::Write as _, time::Duration};

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use leasehold_blob::BlobError;
use leasehold_lease::{Holder, LeaseError};
use leasehold_ledger::LedgerError;
use leasehold_tenure::TenureError;
use leasehold_types::{Epoch, ErrorCode, FencedReason, IdError, LeaseKey, Position};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    answer::line_of,
    forward::{Owner, Verdict},
    status::row_of,
};

/// The longest `detail`, in characters: what a caller sent may be part of it.
const DETAIL_CHARS_MAX: usize = 1_000;

/// A refused or failed request.
#[derive(Clone, Debug)]
pub(crate) struct Problem(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    code: ErrorCode,
    detail: String,
    executed: ExecutedWord,
    reason: Option<FencedReason>,
    key: Option<LeaseKey>,
    epoch: Option<Epoch>,
    owner: Option<String>,
    endpoint: Option<String>,
    last_common: Option<Position>,
    receipt: Option<Value>,
    retry_after: Option<Duration>,
}

/// Whether a refused request was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutedWord {
    /// It was not.
    No,
    /// It may have been: repeat it with the same idempotency key.
    Unknown,
}

/// Problem details (RFC 9457) as every refusal carries them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// `urn:leasehold:problem:<code>`.
    #[serde(rename = "type")]
    #[schema(rename = "type", example = "urn:leasehold:problem:lease_held")]
    kind: String,
    /// The problem in a few words, the same for every answer with this code.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// This problem in particular, for people. Decide by `code`, never by this text.
    detail: String,
    /// The stable code; the API's description lists them.
    #[schema(value_type = String, example = "lease_held")]
    code: ErrorCode,
    /// Whether the request was executed.
    executed: ExecutedWord,
    /// What to do next.
    next: &'static str,
    /// With `fenced`: how it came to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "lapsed")]
    reason: Option<&'static str>,
    /// The tenant, as `org/tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "acme/user-1")]
    key: Option<LeaseKey>,
    /// The epoch that the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    epoch: Option<Epoch>,
    /// With `lease_held` and `owner_unreachable`: the replica that holds the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// With `lease_held` and `owner_unreachable`: where that replica answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// With `history_rewound`: the position from which to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "7-42")]
    last_common: Option<Position>,
    /// With `tenant_forgotten`: the receipt of the forget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    receipt: Option<Value>,
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let mut detail: String = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS_MAX) {
            detail.truncate(end);
            detail.push('…');
        }
        Self(Box::new(Parts {
            code,
            detail,
            executed: ExecutedWord::No,
            reason: None,
            key: None,
            epoch: None,
            owner: None,
            endpoint: None,
            last_common: None,
            receipt: None,
            retry_after: None,
        }))
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// This problem in particular, for people.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, detail)
    }

    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::MalformedBody, detail)
    }

    pub(crate) fn overloaded(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::Overloaded, detail)
    }

    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::TooLarge, detail)
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, detail)
    }

    pub(crate) fn unknown_tenant(key: &LeaseKey) -> Self {
        Self::new(ErrorCode::TenantUnknown, format!("there is no tenant {key}")).of(key)
    }

    pub(crate) fn about_id(error: &IdError) -> Self {
        Self::invalid(error.to_string())
    }

    /// What the local disk said while something was done to a file of ours.
    pub(crate) fn local(action: &str, error: &std::io::Error) -> Self {
        let full = error.kind() == std::io::ErrorKind::StorageFull;
        let code = if full { ErrorCode::DiskFull } else { ErrorCode::LocalIo };
        Self::new(code, format!("failed to {action}: {error}"))
    }

    pub(crate) fn of(mut self, key: &LeaseKey) -> Self {
        self.0.key = Some(key.clone());
        self
    }

    /// When asking again helps.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    pub(crate) fn at(mut self, epoch: Epoch) -> Self {
        self.0.epoch = Some(epoch);
        self
    }

    pub(crate) fn held_by(mut self, holder: &Holder) -> Self {
        self.0.epoch = Some(holder.epoch);
        self.0.owner = Some(holder.replica.to_string());
        self.0.endpoint.clone_from(&holder.endpoint);
        self.0.retry_after = Some(holder.remaining);
        self
    }

    /// The replica that holds the tenant, or was asked for it.
    pub(crate) fn owned_by(mut self, owner: &Owner) -> Self {
        self.0.epoch = owner.epoch;
        self.0.owner = Some(owner.replica.clone());
        self.0.endpoint = Some(owner.endpoint.clone());
        self
    }

    /// What it tells whoever could ask elsewhere.
    fn verdict(&self) -> Option<Verdict> {
        let named = self.0.owner.clone().zip(self.0.endpoint.clone());
        let owner = named.map(|(replica, endpoint)| Owner { replica, endpoint, epoch: self.0.epoch });
        Verdict::of(self.0.code, self.0.executed == ExecutedWord::No, owner)
    }

    pub(crate) fn with_receipt(mut self, receipt: Option<Value>) -> Self {
        self.0.receipt = receipt;
        self
    }

    pub(crate) fn outcome_unknown(mut self) -> Self {
        self.0.executed = ExecutedWord::Unknown;
        self
    }

    fn body(self) -> ProblemBody {
        let row = row_of(self.0.code);
        ProblemBody {
            kind: format!("urn:leasehold:problem:{}", self.0.code),
            title: row.title,
            status: row.status.as_u16(),
            detail: self.0.detail,
            code: self.0.code,
            executed: self.0.executed,
            next: row.next,
            reason: self.0.reason.map(FencedReason::as_str),
            key: self.0.key,
            epoch: self.0.epoch,
            owner: self.0.owner,
            endpoint: self.0.endpoint,
            last_common: self.0.last_common,
            receipt: self.0.receipt,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let row = row_of(self.0.code);
        if row.status.is_server_error() && row.retry_after_secs.is_none() {
            tracing::error!(code = %self.0.code, key = ?self.0.key, detail = %self.0.detail, "request failed");
        }
        let retry_after = row.retry_after_secs.map(|secs| {
            let known = self.0.retry_after.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
            known.unwrap_or(secs).max(1)
        });
        let verdict = self.verdict();
        let body = line_of(&self.body()).unwrap_or_default();
        let mut response = (row.status, body).into_response();
        if let Some(verdict) = verdict {
            response.extensions_mut().insert(verdict);
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(secs) = retry_after {
            headers.insert(header::RETRY_AFTER, secs.into());
        }
        response
    }
}

/// An error and what caused it, in one line.
pub(crate) fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing into a String does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

impl From<TenureError> for Problem {
    fn from(error: TenureError) -> Self {
        let mut problem = Self::new(error.code(), chain_of(&error));
        if error.outcome_unknown() {
            problem.0.executed = ExecutedWord::Unknown;
        }
        problem.0.key = key_of(&error).cloned();
        match &error {
            TenureError::Fenced { epoch, reason, .. } => {
                problem.0.epoch = Some(*epoch);
                problem.0.reason = Some(*reason);
            }
            TenureError::LeaseHeld { holder, .. } => problem = problem.held_by(holder),
            TenureError::TenantForgotten { receipt, .. } => {
                problem.0.receipt = receipt.as_ref().and_then(|receipt| serde_json::to_value(receipt).ok());
            }
            TenureError::Ledger { source } => {
                if let LedgerError::HistoryRewound { last_common, .. } = source.as_ref() {
                    problem.0.last_common = Some(*last_common);
                }
            }
            _ => {}
        }
        problem
    }
}

fn key_of(error: &TenureError) -> Option<&LeaseKey> {
    match error {
        TenureError::Draining { key, .. }
        | TenureError::Fenced { key, .. }
        | TenureError::DrainTimeout { key, .. }
        | TenureError::Overloaded { key, .. }
        | TenureError::UploadTimeout { key, .. }
        | TenureError::Lease { key, .. }
        | TenureError::Snapshot { key, .. }
        | TenureError::Local { key, .. }
        | TenureError::LeaseHeld { key, .. }
        | TenureError::Paused { key, .. }
        | TenureError::TenantUnknown { key }
        | TenureError::TenantForgotten { key, .. }
        | TenureError::InvalidRoot { key, .. }
        | TenureError::Defect { key, .. }
        | TenureError::TaskEnded { key } => Some(key),
        _ => None,
    }
}

impl From<LeaseError> for Problem {
    fn from(error: LeaseError) -> Self {
        Self::new(error.code(), chain_of(&error))
    }
}

impl From<BlobError> for Problem {
    fn from(error: BlobError) -> Self {
        Self::new(error.code(), chain_of(&error))
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        Self::new(error.code(), chain_of(&error))
    }
}

/// What stands where a handler panicked; the rest goes on being served. What it said is [`watch_panics`](crate::watch_panics)'s to tell.
pub(crate) fn of_panic(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    Problem::internal("the request met a defect of this program").outcome_unknown().into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn a_long_detail_is_cut_at_a_character() {
        let problem = Problem::invalid("é".repeat(2_000));
        assert_eq!(problem.0.detail.chars().count(), DETAIL_CHARS_MAX + 1);
        assert!(problem.0.detail.ends_with("é…"));
    }

    #[test]
    fn a_held_tenant_says_where_it_is_and_for_how_long() {
        let key: LeaseKey = "acme/user-1".parse().unwrap();
        let holder = Holder {
            replica: "b".parse().unwrap(),
            endpoint: Some("http://b:7400".to_owned()),
            epoch: Epoch::FIRST,
            remaining: Duration::from_millis(7_200),
        };
        let response = Problem::new(ErrorCode::LeaseHeld, "held").of(&key).held_by(&holder).into_response();
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert_eq!(response.headers()[header::RETRY_AFTER], "8");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }
}
