//! The fleet: who is there; taking this replica out of it.

use axum::extract::State;
use leasehold_lease::ReplicaRow;
use leasehold_types::LeaseKey;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer::Answer,
    app::AppState,
    placement::even_share,
    problem::{Problem, ProblemBody},
    stage::Stage,
};

/// A replica as it last said of itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplicaInfo {
    /// Its id.
    replica: String,
    /// Where it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// Whether it takes no more tenants.
    draining: bool,
    /// How many tenants it has open.
    open_tenants: u64,
    /// How long ago it said so, in milliseconds.
    seen_ago_ms: u64,
    /// Whether that is recent enough for it to be there.
    alive: bool,
    /// Whether it is the one that answers.
    this: bool,
}

/// The fleet.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are the answer's")]
pub(crate) struct Replicas {
    /// In the order of their ids.
    replicas: Vec<ReplicaInfo>,
    /// How many tenants each replica that is there and not draining would have, were they even.
    fair_share: u64,
    /// How many it has at the most before it is given no more, and hands some over where `placement` says so.
    share_max: u64,
}

/// The replicas that share this one's stores.
#[utoipa::path(
    get,
    path = "/v1/replicas",
    operation_id = "listReplicas",
    tag = "fleet",
    responses(
        (status = 200, description = "The fleet", body = Replicas),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn replicas(State(app): State<AppState>) -> Result<Answer<Replicas>, Problem> {
    let rows = app.leases.replicas().await?;
    let takes = |row: &&ReplicaRow| row.seen_ago <= app.config.ttl && !row.announcement.draining;
    let taking: Vec<u64> = rows.iter().filter(takes).map(|row| row.announcement.open_tenants).collect();
    let total = taking.iter().fold(0_u64, |sum, open| sum.saturating_add(*open));
    let (fair_share, share_max) = (even_share(total, taking.len()), app.slack.share_max(total, taking.len()));
    let replicas = rows
        .into_iter()
        .map(|row| ReplicaInfo {
            this: row.announcement.instance == app.instance,
            replica: row.announcement.replica.to_string(),
            endpoint: row.announcement.endpoint,
            draining: row.announcement.draining,
            open_tenants: row.announcement.open_tenants,
            seen_ago_ms: u64::try_from(row.seen_ago.as_millis()).unwrap_or(u64::MAX),
            alive: row.seen_ago <= app.config.ttl,
        })
        .collect();
    Ok(Answer(Replicas { replicas, fair_share, share_max }))
}

/// How a drain ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Drained {
    /// The tenants that could not be handed off: they are served here still.
    #[schema(value_type = Vec<String>)]
    failed: Vec<LeaseKey>,
}

/// Takes this replica out of the fleet: it becomes unready, takes no more tenants and hands off the ones that it has. It stays
/// that way until it is restarted. Answers when that is done.
#[utoipa::path(
    post,
    path = "/v1/drain",
    operation_id = "drainReplica",
    tag = "fleet",
    responses(
        (status = 200, description = "Done", body = Drained),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn drain(State(app): State<AppState>) -> Result<Answer<Drained>, Problem> {
    // On its own task: a caller who hangs up does not stop it.
    let failed = tokio::spawn(async move { drain_all(&app).await })
        .await
        .map_err(|_| Problem::internal("the drain ended unexpectedly").outcome_unknown())?;
    Ok(Answer(Drained { failed }))
}

/// Unready, then everything handed off, and the place that each tenant belongs to told of it. Answers the tenants that could not be.
pub(crate) async fn drain_all(app: &AppState) -> Vec<LeaseKey> {
    app.stage.advance(Stage::Draining);
    if let Err(error) = app.leases.announce(&app.announcement(), app.config.ttl, false).await {
        tracing::warn!(%error, "the fleet could not be told that this replica drains");
    }
    app.departures.begin(app);
    let mut failed = app.router.close().await;
    app.departures.end();
    failed.sort_unstable();
    app.metrics.handoffs_failed.inc_by(failed.len() as u64);
    failed
}
