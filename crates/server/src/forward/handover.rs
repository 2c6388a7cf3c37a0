//! Handing a tenant to a replica that was named, which opens it before anybody is answered.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
};
use http_body_util::{BodyExt as _, Limited};
use leasehold_types::{ErrorCode, LeaseKey, ReplicaId};
use serde_json::{Value, json};

use super::{Owner, attempt::AskError, headers::outgoing};
use crate::{
    app::{App, AppState},
    problem::Problem,
};

/// The longest answer that is read: a status.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

impl App {
    /// The replica that is to take a tenant, where it is one that does.
    pub(crate) async fn taker(&self, key: &LeaseKey, to: &ReplicaId) -> Result<Owner, Problem> {
        let refuse = |detail: String| Problem::new(ErrorCode::ReplicaUnavailable, detail).of(key);
        if self.forwarding.is_none() {
            return Err(refuse(
                "without `peers.secret_file` no other replica can be told to take a tenant".to_owned(),
            ));
        }
        let rows = self.leases.replicas().await?;
        let row = rows.into_iter().find(|row| row.announcement.replica == *to);
        let Some(row) = row.filter(|row| row.seen_ago <= self.config.ttl) else {
            return Err(refuse(format!("there is no live replica {to}")));
        };
        if row.announcement.draining {
            return Err(refuse(format!("replica {to} is leaving the fleet")));
        }
        row.announcement
            .endpoint
            .map(|endpoint| Owner { replica: to.to_string(), endpoint, epoch: None })
            .filter(Owner::is_reachable)
            .ok_or_else(|| refuse(format!("replica {to} has no address that can be forwarded to")))
    }
}

/// Hands the tenant off where it is open here, and answers the status that the taker gives once it has it open. On a task of its own:
/// a caller who hangs up leaves nothing half-way.
pub(crate) async fn hand_over(app: &AppState, key: &LeaseKey, taker: Owner) -> Result<Value, Problem> {
    let (app, key) = (Arc::clone(app), key.clone());
    tokio::spawn(async move { over(&app, &key, &taker).await })
        .await
        .map_err(|_| Problem::internal("the handover ended unexpectedly").outcome_unknown())?
}

async fn over(app: &App, key: &LeaseKey, taker: &Owner) -> Result<Value, Problem> {
    let Some(forwarding) = &app.forwarding else {
        return Err(Problem::internal("there is no way to other replicas"));
    };
    let Some(_on_its_way) = forwarding.on_their_way.begin(key) else {
        return Err(Problem::new(ErrorCode::Draining, format!("{key} is being handed over already")).of(key));
    };
    let mut closed_at = None;
    if let Some(handle) = app.router.handle_of(key) {
        app.hand_off_open(&handle).await?;
        closed_at = handle.closed_at();
    }
    let failed = |detail: String| {
        Problem::new(
            ErrorCode::ReplicaUnavailable,
            format!("{key} is handed off, and replica {} {detail}", taker.replica),
        )
        .of(key)
        .outcome_unknown()
    };
    let mut headers = outgoing(&HeaderMap::new(), &forwarding.by, forwarding.secrets.sent());
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let path = format!("/v1/orgs/{}/tenants/{}/handoff", key.org(), key.tenant());
    let uri = path.parse().map_err(|_| Problem::internal("a tenant's path is no path"))?;
    let body = Body::from(json!({ "to": taker.replica }).to_string());
    let asked = async {
        let response = forwarding.ask(&taker.endpoint, Method::POST, &uri, headers, body).await?;
        let status = response.status();
        let read = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let read = read.map_err(|error| AskError::Lost(error.to_string()))?;
        Ok::<_, AskError>((status, read.to_bytes()))
    };
    let asked = tokio::select! {
        biased;
        asked = asked => asked,
        () = app.timer.sleep(app.config.limits.timeout_max) => Err(AskError::Late),
    };
    match asked {
        Ok((StatusCode::OK, body)) => {
            if let Some(closed_at) = closed_at {
                app.metrics.moved(app.clock.now().since(closed_at));
            }
            serde_json::from_slice(&body).map_err(|_| failed("gave no status".to_owned()))
        }
        Ok((status, body)) => {
            let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
            let code = problem["code"].as_str().unwrap_or_default().to_owned();
            Err(failed(format!("did not open it: {status} {code}")))
        }
        Err(error) => {
            tracing::warn!(%key, replica = taker.replica, ?error, "a handover was not answered");
            Err(failed("did not answer; whoever is asked next opens it".to_owned()))
        }
    }
}
