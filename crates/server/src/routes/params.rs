//! What requests carry in their paths, queries and headers: read here (queries), or read by the extractors and described here.

use serde::Deserialize;
use utoipa::IntoParams;

/// The tenant of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "the parameters as the OpenAPI document shows them; `Tenant` reads them")]
pub(crate) struct TenantPath {
    /// The organization: `[a-z0-9][a-z0-9_-]{0,63}`.
    #[param(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$", example = "acme")]
    org: String,
    /// The tenant: `[a-z0-9][a-z0-9_-]{0,63}`, chosen by the caller or derived by `tenants:resolve`.
    #[param(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$", example = "user-1")]
    tenant: String,
}

/// The organization of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "the parameters as the OpenAPI document shows them; `Org` reads them")]
pub(crate) struct OrgPath {
    /// The organization: `[a-z0-9][a-z0-9_-]{0,63}`.
    #[param(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$", example = "acme")]
    org: String,
}

/// How long the request waits while its tenant moves, and for its answer.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "the parameter as the OpenAPI document shows it; `Patience` reads it")]
pub(crate) struct TimeoutHeader {
    /// How long the request waits while its tenant moves, and for its answer: `30` (seconds), `500ms`, `2m`. 30 s where it
    /// is not sent; bounded by the replica's `limits.timeout_max`.
    #[param(rename = "Leasehold-Timeout", pattern = "^[0-9]{1,9}(ms|s|m)?$", example = "30s")]
    timeout: Option<String>,
}

/// How to forget.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ForgetQuery {
    /// Say what would go, and delete nothing.
    pub(crate) dry_run: bool,
}

/// The epoch that a forget is meant for.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "the parameter as the OpenAPI document shows it; `IfMatch` reads it")]
pub(crate) struct IfMatchHeader {
    /// Forget only while this is the tenant's epoch.
    #[param(rename = "If-Match", pattern = "^([1-9][0-9]{0,18}|\"[1-9][0-9]{0,18}\")$", example = "7")]
    if_match: Option<String>,
}

/// Which tenants to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only those after this tenant id.
    #[param(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub(crate) after: Option<String>,
    /// How many at most: 1 to 1,000, 100 where it is not sent.
    #[param(minimum = 1, maximum = 1_000)]
    pub(crate) limit: Option<u32>,
}

/// The key under which a write takes effect once.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "the parameter as the OpenAPI document shows it; `IdempotencyKey` reads it")]
pub(crate) struct IdempotencyHeader {
    /// The key under which this takes effect once: 1 to 240 visible ASCII characters. The events of a batch get `<key>#0`,
    /// `<key>#1`, …; the key stands for all of it, so that a repetition with more or fewer events is an `idempotency_mismatch`.
    /// Keys that rise with time (`UUIDv7`, `ULID`) cost less than random ones.
    #[param(rename = "Idempotency-Key", pattern = "^[!-~]{1,240}$")]
    idempotency_key: Option<String>,
}

/// Which events to read.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// Only those after this position: `next` of the page before, or a stream's last id.
    #[param(pattern = "^[1-9][0-9]{0,18}-[0-9]{1,18}$", example = "7-42")]
    pub(crate) after: Option<String>,
    /// Only those of this kind.
    pub(crate) kind: Option<String>,
    /// Only those about this subject.
    pub(crate) subject: Option<String>,
    /// How many at most: 1 to the replica's `limits.page_events_max` (1,000), 100 where it is not sent.
    #[param(minimum = 1, maximum = 1_000)]
    pub(crate) limit: Option<u32>,
}

/// From where a stream goes on.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "the parameter as the OpenAPI document shows it")]
pub(crate) struct LastEventIdHeader {
    /// With `Accept: text/event-stream`: the last id that was seen; goes before `after`.
    #[param(rename = "Last-Event-ID", pattern = "^[1-9][0-9]{0,18}-[0-9]{1,18}$", example = "7-42")]
    last_event_id: Option<String>,
}
