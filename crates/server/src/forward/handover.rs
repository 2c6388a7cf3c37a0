//! Handing a tenant to another replica, which opens it before anybody is answered.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
};
use http_body_util::{BodyExt as _, Limited};
use leasehold_types::{ErrorCode, LeaseKey, ReplicaId};
use serde_json::{Value, json};

use super::{Forwarding, Owner, attempt::AskError, headers::outgoing};
use crate::{
    app::{App, AppState},
    placement::{Cause, MoveOutcome},
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

/// A handover that did not end with the tenant open at the taker.
#[derive(Debug)]
pub(crate) struct NotHandedOver {
    /// What came of it; `None`: nothing was done, since it is under way already.
    pub(crate) outcome: Option<MoveOutcome>,
    pub(crate) problem: Problem,
}

/// Hands the tenant off where it is open here, and answers the status that the taker gives once it has it open: because somebody said so.
pub(crate) async fn hand_over(app: &AppState, key: &LeaseKey, taker: Owner) -> Result<Value, Problem> {
    let answer_max = app.config.limits.timeout_max;
    give(app, key, taker, Cause::Hand, answer_max).await.map_err(|not| not.problem)
}

/// The same for any reason. The taker has `answer_max` to say that it is open there; until then nobody opens it here. On a task of its
/// own: a caller who hangs up leaves nothing half-way.
pub(crate) async fn give(
    app: &AppState,
    key: &LeaseKey,
    taker: Owner,
    cause: Cause,
    answer_max: Duration,
) -> Result<Value, NotHandedOver> {
    let (app, key) = (Arc::clone(app), key.clone());
    let work = async move {
        let given = over(&app, &key, &taker, answer_max).await;
        let outcome = given.as_ref().map_or_else(|not| not.outcome, |_| Some(MoveOutcome::Moved));
        if let Some(outcome) = outcome {
            app.metrics.placement.moved(cause, outcome);
        }
        let (to, cause) = (&taker.replica, cause.as_str());
        match &given {
            Ok(_) => tracing::info!(%key, %to, cause, "handed over"),
            Err(not) => {
                tracing::warn!(%key, %to, cause, outcome = ?not.outcome, said = not.problem.detail(), "not handed over");
            }
        }
        given
    };
    let ended = |_| NotHandedOver {
        outcome: None,
        problem: Problem::internal("the handover ended unexpectedly").outcome_unknown(),
    };
    tokio::spawn(work).await.map_err(ended)?
}

async fn over(
    app: &App,
    key: &LeaseKey,
    taker: &Owner,
    answer_max: Duration,
) -> Result<Value, NotHandedOver> {
    let not = |outcome, problem| NotHandedOver { outcome, problem };
    let Some(forwarding) = &app.forwarding else {
        return Err(not(None, Problem::internal("there is no way to other replicas")));
    };
    let Some(_on_its_way) = forwarding.on_their_way.begin(key) else {
        let detail = format!("{key} is being handed over already");
        return Err(not(None, Problem::new(ErrorCode::Draining, detail).of(key)));
    };
    let mut closed_at = None;
    if let Some(handle) = app.router.handle_of(key) {
        app.hand_off_open(&handle).await.map_err(|problem| not(Some(MoveOutcome::Stayed), problem))?;
        closed_at = handle.closed_at();
    }
    let (outcome, detail) = match tell(app, forwarding, key, taker, answer_max).await {
        Told::Opened(status) => {
            if let Some(closed_at) = closed_at {
                app.metrics.moved(app.clock.now().since(closed_at));
            }
            return Ok(status);
        }
        Told::Held => (MoveOutcome::Taken, "did not open it: another one did before".to_owned()),
        Told::Refused(status, code) => (MoveOutcome::Unopened, format!("did not open it: {status} {code}")),
        Told::Unanswered(error) => {
            tracing::warn!(%key, replica = taker.replica, ?error, "a handover was not answered");
            (MoveOutcome::Unopened, "did not answer; whoever is asked next opens it".to_owned())
        }
    };
    let detail = format!("{key} is handed off, and replica {} {detail}", taker.replica);
    Err(not(Some(outcome), Problem::new(ErrorCode::ReplicaUnavailable, detail).of(key).outcome_unknown()))
}

/// What a replica said that was told to open a tenant.
#[derive(Debug)]
pub(crate) enum Told {
    /// It has it open: the tenant's status.
    Opened(Value),
    /// Another replica holds it.
    Held,
    /// Its status and code: it did not open it.
    Refused(StatusCode, String),
    /// Nothing, or nothing in time.
    Unanswered(AskError),
}

/// Tells a replica to open a tenant, and waits for `answer_max` at the most until it has.
pub(crate) async fn tell(
    app: &App,
    forwarding: &Forwarding,
    key: &LeaseKey,
    taker: &Owner,
    answer_max: Duration,
) -> Told {
    let mut headers = outgoing(&HeaderMap::new(), &forwarding.by, forwarding.secrets.sent());
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let path = format!("/v1/orgs/{}/tenants/{}/handoff", key.org(), key.tenant());
    let Ok(uri) = path.parse() else {
        return Told::Unanswered(AskError::NotSent("a tenant's path is no path".to_owned()));
    };
    let body = Body::from(json!({ "to": taker.replica }).to_string());
    let asked = async {
        let response = forwarding.ask(&taker.endpoint, Method::POST, &uri, headers, body).await?;
        let (mut head, body) = response.into_parts();
        app.survey.heard_of(app, taker, &mut head.headers);
        let read = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let read = read.map_err(|error| AskError::Lost(error.to_string()))?;
        Ok::<_, AskError>((head.status, read.to_bytes()))
    };
    let asked = tokio::select! {
        biased;
        asked = asked => asked,
        () = app.timer.sleep(answer_max) => Err(AskError::Late),
    };
    let (status, body) = match asked {
        Ok(answered) => answered,
        Err(error) => return Told::Unanswered(error),
    };
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let code = said["code"].as_str().unwrap_or_default();
    match status {
        StatusCode::OK if said.is_object() => Told::Opened(said),
        StatusCode::OK => Told::Refused(status, "no status".to_owned()),
        _ if code == ErrorCode::LeaseHeld.as_str() => Told::Held,
        _ => Told::Refused(status, code.to_owned()),
    }
}
