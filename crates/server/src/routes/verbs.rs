//! What operators do to a tenant.

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use leasehold_lease::{Holder, LeaseRow};
use leasehold_tenure::Handle;
use leasehold_types::{Epoch, ErrorCode, LeaseKey, ReplicaId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    params::{TenantPath, TimeoutHeader},
    tenants::{PublishedInfo, TenantStatus},
};
use crate::{
    answer::Answer,
    app::{App, AppState, Opening},
    extract::{OptionalJson, Tenant},
    forward::hand_over,
    patience::Patience,
    problem::{Problem, ProblemBody},
    stage::Stage,
};

/// What is published.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotAnswer {
    /// `org/tenant`.
    #[schema(value_type = String, example = "acme/user-1")]
    key: LeaseKey,
    /// The tenant's epoch.
    #[schema(value_type = u64)]
    epoch: Epoch,
    /// Whether there was something to publish.
    published: bool,
    /// The newest snapshot of this epoch; null while nothing was written in it.
    #[schema(required)]
    snapshot: Option<PublishedInfo>,
}

/// Publishes what is not published yet, and answers when it is in the store.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/snapshot",
    operation_id = "snapshotTenant",
    tag = "operations",
    params(TenantPath, TimeoutHeader),
    responses(
        (status = 200, description = "Published", body = SnapshotAnswer),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn snapshot(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
) -> Result<Answer<SnapshotAnswer>, Problem> {
    let handle = app.open(&tenant.key, Opening::Existing, patience).await?;
    let published = handle.status().unflushed_bytes > 0 && handle.snapshot().await?.is_some();
    Ok(Answer(SnapshotAnswer {
        key: tenant.key,
        epoch: handle.epoch(),
        published,
        snapshot: handle.status().published.map(PublishedInfo::from),
    }))
}

/// Where to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct HandoffBody {
    /// The replica that opens the tenant before this is answered.
    #[schema(value_type = String, example = "ledger-1")]
    to: ReplicaId,
}
leasehold_types::only_as_object!(HandoffBody);

/// Hands the tenant off: waits for work in flight, publishes what is unpublished and gives the lease back. The next call opens
/// it, on any replica; with a body, the replica that it names has it open when this is answered. Where nobody has it open there
/// is nothing to hand off.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/handoff",
    operation_id = "handoffTenant",
    tag = "operations",
    params(TenantPath, TimeoutHeader),
    request_body(content = Option<HandoffBody>, content_type = "application/json"),
    responses(
        (status = 200, description = "Nobody has it open, or the named replica does", body = TenantStatus),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn handoff(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
    OptionalJson(body): OptionalJson<HandoffBody>,
) -> Result<Response, Problem> {
    let key = &tenant.key;
    let Some(HandoffBody { to }) = body else {
        return app.hand_off(key).await.map(|status| Answer(status).into_response());
    };
    if to == app.replica {
        if app.stage.get() == Stage::Draining {
            let detail = format!("replica {to} is leaving the fleet");
            return Err(Problem::new(ErrorCode::ReplicaUnavailable, detail).of(key));
        }
        let handle = app.open(key, Opening::Existing, patience).await?;
        return Ok(Answer(app.status_of_open(&handle)).into_response());
    }
    if app.router.handle_of(key).is_none() {
        // Where another replica holds it, that one hands it over.
        app.held_elsewhere(key).await?;
    }
    let taker = app.taker(key, &to).await?;
    hand_over(&app, key, taker).await.map(|status| Answer(status).into_response())
}

/// Gives the lease back at once, without waiting for work and without publishing: what was written after the last published
/// snapshot is lost to the next owner (it is kept on this replica's disk for `leasehold salvage`).
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/abandon",
    operation_id = "abandonTenant",
    tag = "operations",
    params(TenantPath),
    responses(
        (status = 200, description = "This replica does not have it open", body = TenantStatus),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn abandon(State(app): State<AppState>, tenant: Tenant) -> Result<Response, Problem> {
    if app.router.handle_of(&tenant.key).is_none() {
        let status = app.status(&tenant.key).await?;
        if status.is_held_elsewhere(&app.replica) {
            return Ok(app.answer_status(status));
        }
    }
    app.router.abandon(&tenant.key).await?;
    app.status(&tenant.key).await.map(|status| Answer(status).into_response())
}

/// Holds the tenant still: hands it off, and no replica opens it until it is resumed or forgotten, whoever restarts meanwhile. Calls
/// are answered 503 `paused`. Where the handoff fails the tenant serves on and is not paused.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/pause",
    operation_id = "pauseTenant",
    tag = "operations",
    params(TenantPath),
    responses(
        (status = 200, description = "Paused, and nobody has it open", body = TenantStatus),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn pause(
    State(app): State<AppState>,
    tenant: Tenant,
) -> Result<Answer<TenantStatus>, Problem> {
    // On its own task: a caller who hangs up leaves no tenant that serves on and is paused.
    tokio::spawn(async move { app.pause(&tenant.key).await })
        .await
        .map_err(|_| Problem::internal("the pause ended unexpectedly").outcome_unknown())?
        .map(Answer)
}

/// Lets a paused tenant be opened again, by any replica. Resuming one that is not paused changes nothing.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/resume",
    operation_id = "resumeTenant",
    tag = "operations",
    params(TenantPath),
    responses(
        (status = 200, description = "Not paused", body = TenantStatus),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn resume(State(app): State<AppState>, tenant: Tenant) -> Result<Response, Problem> {
    app.leases.resume(&tenant.key).await?;
    app.status(&tenant.key).await.map(|status| app.answer_status(status))
}

impl App {
    /// Pauses a tenant by its row, and hands it off where this replica has it.
    async fn pause(&self, key: &LeaseKey) -> Result<TenantStatus, Problem> {
        if self.router.handle_of(key).is_none() {
            // Somebody else's is not paused here: who has it pauses it, and hands it off.
            self.held_elsewhere(key).await?;
        }
        // The row first, so that nobody opens it between the handoff and the pause.
        let newly = self.leases.pause(key).await?.ok_or_else(|| Problem::unknown_tenant(key))?;
        let problem = match self.hand_off(key).await {
            Ok(status) => return Ok(status),
            Err(problem) => problem,
        };
        if newly && let Err(error) = self.leases.resume(key).await {
            tracing::warn!(%key, %error, "a tenant that could not be handed off stays paused: resume it, or pause it again");
        }
        Err(problem)
    }

    /// Hands a tenant off where this replica has it, and says how it stands then.
    async fn hand_off(&self, key: &LeaseKey) -> Result<TenantStatus, Problem> {
        let Some(handle) = self.router.handle_of(key) else {
            return self.held_elsewhere(key).await.map(Self::status_of_row);
        };
        self.hand_off_open(&handle).await?;
        Ok(Self::status_of_row(self.row(key).await?))
    }

    /// The row of a tenant that is not open here, unless somebody holds it.
    async fn held_elsewhere(&self, key: &LeaseKey) -> Result<LeaseRow, Problem> {
        let row = self.row(key).await?;
        // A lease of this very replica without a handle is one that is being opened, or one of the process before:
        // neither can be handed off now, and both are told like any other holder.
        let Some(owner) = row.owner.as_ref().filter(|owner| !owner.remaining.is_zero()) else {
            return Ok(row);
        };
        let holder = Holder {
            replica: owner.replica.clone(),
            endpoint: owner.endpoint.clone(),
            epoch: row.epoch,
            remaining: owner.remaining,
        };
        let detail = format!("{key} is held by replica {}", holder.replica);
        Err(Problem::new(ErrorCode::LeaseHeld, detail).of(key).held_by(&holder))
    }

    pub(crate) async fn hand_off_open(&self, handle: &Handle) -> Result<(), Problem> {
        // What can be uploaded while calls are still served need not be uploaded while they are not. If it fails the handoff
        // itself says what is wrong.
        if handle.status().unflushed_bytes > 0
            && let Err(error) = handle.snapshot().await
        {
            tracing::debug!(key = %handle.key(), %error, "the snapshot ahead of a handoff failed");
        }
        handle.handoff().await.map_err(|error| {
            self.metrics.handoffs_failed.inc();
            error.into()
        })
    }
}
