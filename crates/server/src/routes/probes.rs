//! What watches over a replica asks.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer::Answer,
    app::AppState,
    problem::{Problem, ProblemBody},
    stage::Stage,
};

/// How a replica stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`, or with 503 `starting`, `draining` or `cut_off`.
    #[schema(value_type = String)]
    status: &'static str,
}

/// Whether the process is there.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "health",
    tag = "probes",
    responses((status = 200, description = "It is there", body = Health))
)]
pub(crate) async fn health() -> Answer<Health> {
    Answer(Health { status: "ok" })
}

/// Whether the replica takes tenants.
///
/// One that the lease store has not answered for a ttl does not (`cut_off`): it can open nothing, and what it holds has lapsed. It keeps
/// all of that, and serves on where the store answers again.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "ready",
    tag = "probes",
    responses(
        (status = 200, description = "It does", body = Health),
        (status = 503, description = "Not yet, not now, or not any more", body = Health),
    )
)]
pub(crate) async fn ready(State(app): State<AppState>) -> Response {
    let (code, status) = match app.stage.get() {
        Stage::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
        Stage::Serving if app.heard.ago(app.clock.as_ref()) > app.config.ttl => {
            (StatusCode::SERVICE_UNAVAILABLE, "cut_off")
        }
        Stage::Serving => (StatusCode::OK, "ok"),
        Stage::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
    };
    (code, Answer(Health { status })).into_response()
}

/// The Prometheus metrics, as `OpenMetrics` text.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "probes",
    responses(
        (status = 200, description = "As they stand", body = String, content_type = "application/openmetrics-text"),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn metrics(State(app): State<AppState>) -> Result<Response, Problem> {
    let (in_flight, followers) = (app.in_flight.total(), app.followers.total());
    let text = app
        .metrics
        .encode(&app.router, in_flight, followers, app.clock.as_ref())
        .map_err(|code| Problem::new(code, "the metrics cannot be written"))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
