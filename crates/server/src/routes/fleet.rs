//! The fleet: who is there; taking this replica out of it.

use axum::extract::State;
use leasehold_types::LeaseKey;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer::Answer,
    app::{App, AppState},
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
pub(crate) struct Replicas {
    /// In the order of their ids.
    replicas: Vec<ReplicaInfo>,
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
    Ok(Answer(Replicas { replicas }))
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
    let failed = tokio::spawn(async move { app.drain().await })
        .await
        .map_err(|_| Problem::internal("the drain ended unexpectedly").outcome_unknown())?;
    Ok(Answer(Drained { failed }))
}

impl App {
    /// Unready, then everything handed off. Answers the tenants that could not be.
    pub(crate) async fn drain(&self) -> Vec<LeaseKey> {
        self.stage.advance(Stage::Draining);
        if let Err(error) = self.leases.announce(&self.announcement(), self.config.ttl, false).await {
            tracing::warn!(%error, "the fleet could not be told that this replica drains");
        }
        let mut failed = self.router.close().await;
        failed.sort_unstable();
        self.metrics.handoffs_failed.inc_by(failed.len() as u64);
        failed
    }
}
