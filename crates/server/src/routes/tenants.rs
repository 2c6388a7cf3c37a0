//! A tenant: created, looked at, forgotten; an organization's tenants: listed, derived.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use leasehold_blob::BlobPrefix;
use leasehold_lease::LeaseRow;
use leasehold_tenure::{Handle, Phase, PublishedState};
use leasehold_types::{Epoch, ErrorCode, Floor, LeaseKey, Position, ReplicaId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::params::{ForgetQuery, IfMatchHeader, ListQuery, OrgPath, TenantPath, TimeoutHeader};
use crate::{
    answer::Answer,
    app::{App, AppState, Opening},
    extract::{IfMatch, Json, Org, Query, Tenant},
    forward::{Owner, Verdict},
    patience::Patience,
    problem::{Problem, ProblemBody},
};

/// Who serves a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TenantState {
    /// This replica.
    Open,
    /// Another replica, or this one before it restarted: its lease runs.
    Held,
    /// Nobody: the next call opens it.
    Released,
    /// Nobody, and it was forgotten (in listings only; elsewhere that is the problem `tenant_forgotten`).
    Forgotten,
}

/// A tenant's last published snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublishedInfo {
    /// Its number in the epoch.
    number: u64,
    /// Up to where it has the history.
    #[schema(value_type = String, example = "7-42")]
    position: Position,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

impl From<PublishedState> for PublishedInfo {
    fn from(state: PublishedState) -> Self {
        Self { number: state.number.get(), position: state.position, at: state.at }
    }
}

/// A tenant as it stands. What only the replica that serves it knows is there only where that one answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantStatus {
    /// `org/tenant`.
    #[schema(value_type = String, example = "acme/user-1")]
    key: LeaseKey,
    /// Who serves it.
    state: TenantState,
    /// Its epoch: rises with every acquisition.
    #[schema(value_type = u64)]
    epoch: Epoch,
    /// Everything in epochs up to this one was forgotten; 0: nothing.
    #[schema(value_type = u64)]
    floor: Floor,
    /// The replica that serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Where that replica answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// Where its tenure stands: `serving`, `draining`, `flushing`, `forgetting`, `abandoning`, `released`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "serving")]
    phase: Option<Phase>,
    /// For how many milliseconds this replica can prove that it holds the lease unless it renews.
    #[serde(skip_serializing_if = "Option::is_none")]
    proven_for_ms: Option<u64>,
    /// Its newest position.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "7-42")]
    position: Option<Position>,
    /// Its last published snapshot of this epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<PublishedInfo>,
    /// Bytes that a crash now would take: written and not yet published.
    #[serde(skip_serializing_if = "Option::is_none")]
    unflushed_bytes: Option<u64>,
    /// Bytes of its ledger file.
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger_bytes: Option<u64>,
    /// Calls into its ledger that are under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<u32>,
    /// Whether an operator holds it still: nobody opens it until it is resumed. False while it is open.
    paused: bool,
}

impl TenantStatus {
    /// Whether another replica than this one holds the tenant.
    pub(crate) fn is_held_elsewhere(&self, this: &ReplicaId) -> bool {
        self.state == TenantState::Held && self.owner.as_deref() != Some(this.as_str())
    }
}

impl App {
    pub(crate) fn status_of_open(&self, handle: &Handle) -> TenantStatus {
        let status = handle.status();
        TenantStatus {
            paused: false,
            key: status.key,
            state: TenantState::Open,
            epoch: status.epoch,
            floor: status.floor,
            owner: Some(self.replica.to_string()),
            endpoint: Some(self.endpoint.clone()),
            phase: Some(status.phase),
            proven_for_ms: Some(u64::try_from(status.proven_for.as_millis()).unwrap_or(u64::MAX)),
            position: Some(status.position),
            published: status.published.map(PublishedInfo::from),
            unflushed_bytes: Some(status.unflushed_bytes),
            ledger_bytes: Some(status.ledger_bytes),
            in_flight: Some(status.in_flight),
        }
    }

    pub(crate) fn status_of_row(row: LeaseRow) -> TenantStatus {
        let state = match &row.owner {
            _ if row.is_forgotten() => TenantState::Forgotten,
            Some(owner) if !owner.remaining.is_zero() => TenantState::Held,
            _ => TenantState::Released,
        };
        let owner = row.owner.filter(|_| state == TenantState::Held);
        TenantStatus {
            paused: row.paused_at.is_some(),
            key: row.key,
            state,
            epoch: row.epoch,
            floor: row.floor,
            owner: owner.as_ref().map(|owner| owner.replica.to_string()),
            endpoint: owner.and_then(|owner| owner.endpoint),
            phase: None,
            proven_for_ms: None,
            position: None,
            published: None,
            unflushed_bytes: None,
            ledger_bytes: None,
            in_flight: None,
        }
    }

    /// The answer of a status. Where another replica holds the tenant, that one knows more.
    pub(crate) fn answer_status(&self, status: TenantStatus) -> Response {
        let held = match (&status.owner, &status.endpoint) {
            (Some(owner), Some(endpoint)) if status.is_held_elsewhere(&self.replica) => {
                Some(Owner { replica: owner.clone(), endpoint: endpoint.clone(), epoch: Some(status.epoch) })
            }
            _ => None,
        };
        let mut response = Answer(status).into_response();
        if let Some(owner) = held {
            response.extensions_mut().insert(Verdict::Held(owner));
        }
        response
    }

    /// The tenant as it stands, wherever that is; nothing is opened.
    pub(crate) async fn status(&self, key: &LeaseKey) -> Result<TenantStatus, Problem> {
        match self.router.handle_of(key) {
            Some(handle) => Ok(self.status_of_open(&handle)),
            None => Ok(Self::status_of_row(self.row(key).await?)),
        }
    }
}

/// Creates a tenant, or opens the one that is there. One that was forgotten begins anew, empty.
#[utoipa::path(
    put,
    path = "/v1/orgs/{org}/tenants/{tenant}",
    operation_id = "createTenant",
    tag = "tenants",
    params(TenantPath, TimeoutHeader),
    responses(
        (status = 200, description = "It was there", body = TenantStatus),
        (status = 201, description = "It was created", body = TenantStatus),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
) -> Result<Response, Problem> {
    let key = &tenant.key;
    let existed = match app.router.handle_of(key) {
        Some(_) => true,
        None => app.leases.read(key).await?.is_some_and(|row| !row.is_forgotten()),
    };
    let handle = app.open(key, Opening::Create, patience).await?;
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Answer(app.status_of_open(&handle))).into_response())
}

/// A tenant's status. Opens nothing and moves nothing.
#[utoipa::path(
    get,
    path = "/v1/orgs/{org}/tenants/{tenant}",
    operation_id = "getTenant",
    tag = "tenants",
    params(TenantPath),
    responses(
        (status = 200, description = "As it stands", body = TenantStatus),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn status(State(app): State<AppState>, tenant: Tenant) -> Result<Response, Problem> {
    app.status(&tenant.key).await.map(|status| app.answer_status(status))
}

/// What a forget would delete.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForgetPreview {
    /// `org/tenant`.
    #[schema(value_type = String, example = "acme/user-1")]
    key: LeaseKey,
    /// The epoch now: what `If-Match` would have to say.
    #[schema(value_type = u64)]
    epoch: Epoch,
    /// Objects in the blob store.
    objects: u64,
    /// Their bytes.
    bytes: u64,
    /// Always true: nothing was deleted.
    dry_run: bool,
}

/// Forgets a tenant: everything of it is deleted, here and in the store, and proven gone. The answer is the receipt; a repeated
/// forget answers the same one. `If-Match` is looked at before the forget begins, not while it runs.
#[utoipa::path(
    delete,
    path = "/v1/orgs/{org}/tenants/{tenant}",
    operation_id = "forgetTenant",
    tag = "tenants",
    params(TenantPath, ForgetQuery, IfMatchHeader),
    responses(
        (status = 200, description = "The receipt (with `dry_run`: what would go)", body = Object),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn forget(
    State(app): State<AppState>,
    tenant: Tenant,
    Query(query): Query<ForgetQuery>,
    IfMatch(epoch): IfMatch,
) -> Result<Response, Problem> {
    let Tenant { key, place } = tenant;
    if query.dry_run {
        return preview(&app, &key).await.map(|preview| Answer(preview).into_response());
    }
    if let Some(expected) = epoch {
        let row = app.leases.read(&key).await?.ok_or_else(|| Problem::unknown_tenant(&key))?;
        if row.epoch != expected {
            let detail = format!("{key} is at epoch {}, not {expected}", row.epoch);
            return Err(Problem::new(ErrorCode::PreconditionFailed, detail).of(&key).at(row.epoch));
        }
    }
    // On its own task: a caller who hangs up does not stop a forget half-way.
    let work = async move {
        let _place = place;
        app.router.forget(&key).await.map_err(Problem::from)
    };
    let receipt = tokio::spawn(work)
        .await
        .map_err(|_| Problem::internal("the forget ended unexpectedly").outcome_unknown())??;
    Ok(Answer(receipt).into_response())
}

async fn preview(app: &App, key: &LeaseKey) -> Result<ForgetPreview, Problem> {
    let epoch = match app.router.handle_of(key) {
        Some(handle) => handle.epoch(),
        None => app.row(key).await?.epoch,
    };
    let entries = app.blobs.list(&BlobPrefix::of_tenant(key)).await?;
    Ok(ForgetPreview {
        key: key.clone(),
        epoch,
        objects: entries.len() as u64,
        bytes: entries.iter().map(|entry| entry.len).sum(),
        dry_run: true,
    })
}

/// The longest page of tenants.
const LIST_LIMIT_MAX: u32 = 1_000;

/// A page of an organization's tenants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantPage {
    /// In the order of their ids, the forgotten ones too.
    tenants: Vec<TenantStatus>,
    /// What `after` has to be for the next page.
    #[schema(value_type = Option<String>)]
    next: Option<TenantId>,
    /// Whether there are more.
    has_more: bool,
}

/// An organization's tenants, page by page. Opens nothing.
#[utoipa::path(
    get,
    path = "/v1/orgs/{org}/tenants",
    operation_id = "listTenants",
    tag = "tenants",
    params(OrgPath, ListQuery),
    responses(
        (status = 200, description = "A page", body = TenantPage),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(
    State(app): State<AppState>,
    Org(org): Org,
    Query(query): Query<ListQuery>,
) -> Result<Answer<TenantPage>, Problem> {
    let after: Option<TenantId> =
        query.after.as_deref().map(str::parse).transpose().map_err(|error| Problem::about_id(&error))?;
    let limit = query.limit.unwrap_or(100);
    if !(1..=LIST_LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("limit is 1 to {LIST_LIMIT_MAX}")));
    }
    let mut rows = app.leases.list(&org, after.as_ref(), limit + 1).await?;
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().map(|row| row.key.tenant().clone());
    let tenants = rows
        .into_iter()
        .map(|row| match app.router.handle_of(&row.key) {
            Some(handle) => app.status_of_open(&handle),
            None => App::status_of_row(row),
        })
        .collect();
    Ok(Answer(TenantPage { tenants, next, has_more }))
}

/// Who a tenant is of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct ResolveBody {
    /// Who vouches for the subject, such as an identity provider's URL. 1 to 2,048 bytes.
    #[schema(example = "https://idp.example/acme")]
    issuer: String,
    /// The subject, as the issuer knows it. 1 to 2,048 bytes.
    #[schema(example = "user-1")]
    subject: String,
}
leasehold_types::only_as_object!(ResolveBody);

/// The derived tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Resolved {
    /// The tenant's id: 64 hexadecimal digits that show neither issuer nor subject.
    #[schema(value_type = String)]
    tenant: TenantId,
    /// `org/tenant`.
    #[schema(value_type = String)]
    key: LeaseKey,
}

const IDENTITY_BYTES_MAX: usize = 2_048;

/// Derives the tenant of a subject of an issuer. Creates nothing: the same pair always gives the same id.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants:resolve",
    operation_id = "resolveTenant",
    tag = "tenants",
    params(OrgPath),
    request_body = ResolveBody,
    responses(
        (status = 200, description = "The tenant", body = Resolved),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn resolve(
    State(app): State<AppState>,
    Org(org): Org,
    Json(body): Json<ResolveBody>,
) -> Result<Answer<Resolved>, Problem> {
    for (name, text) in [("issuer", &body.issuer), ("subject", &body.subject)] {
        if text.is_empty() || text.len() > IDENTITY_BYTES_MAX {
            return Err(Problem::invalid(format!("{name} has 1 to {IDENTITY_BYTES_MAX} bytes")));
        }
    }
    let tenant = app.derivation.tenant(&body.issuer, &body.subject);
    let key = LeaseKey::new(org, tenant.clone());
    Ok(Answer(Resolved { tenant, key }))
}
