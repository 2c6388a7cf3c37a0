//! A tenant's events: appended, read page by page, followed.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use leasehold_ledger::{Appended, DerivedKey, EventQuery, NewEvent};
use leasehold_types::Position;

use super::{
    follow,
    params::{IdempotencyHeader, LastEventIdHeader, ReadQuery, TenantPath, TimeoutHeader},
    schemas::{AppendedEventsBody, EventPageBody, NewEventsBody},
};
use crate::{
    answer::{Answer, LargeAnswer},
    app::{AppState, Opening},
    extract::{IdempotencyKey, JsonBytes, Query, Tenant, only},
    patience::Patience,
    problem::{Problem, ProblemBody},
};

/// The events of a page where the caller names no limit.
const LIMIT_DEFAULT: u32 = 100;

/// Appends one event (a JSON object) or an atomic batch (a JSON array). Creates an unknown tenant; one that was forgotten stays
/// forgotten (410) until PUT creates it anew.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/events",
    operation_id = "appendEvents",
    tag = "events",
    params(TenantPath, IdempotencyHeader, TimeoutHeader),
    request_body = NewEventsBody,
    responses(
        (status = 200, description = "All of them were there already under their idempotency keys", body = AppendedEventsBody),
        (status = 201, description = "Appended", body = AppendedEventsBody),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn append(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
    IdempotencyKey(key): IdempotencyKey,
    JsonBytes(body): JsonBytes,
) -> Result<Response, Problem> {
    let mut batch = NewEvent::batch_from_json(&body, app.config.limits.batch_events_max)
        .map_err(|error| Problem::malformed(error.to_string()))?;
    let one = body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[');
    drop(body);
    if let Some(key) = key {
        name_each(&mut batch, &key, one)?;
    }
    // Before the tenant is opened: what cannot be appended creates nothing.
    NewEvent::check_batch(&batch, &app.router.options().ledger.limits)
        .map_err(|error| Problem::from(error).of(&tenant.key))?;
    let append = |handle: leasehold_tenure::Handle| {
        let batch = batch.clone();
        async move { handle.append(batch).await }
    };
    let appended = app.serve(&tenant.key, Opening::CreateUnlessForgotten, patience, append).await?;
    let status = if appended.iter().all(|one| one.duplicate) { StatusCode::OK } else { StatusCode::CREATED };
    Ok(match appended.first() {
        Some(first) if one => (status, Answer(first)).into_response(),
        _ => (status, Answer::<&Vec<Appended>>(&appended)).into_response(),
    })
}

/// Gives the events the header's key.
fn name_each(batch: &mut [NewEvent], key: &str, one: bool) -> Result<(), Problem> {
    if batch.iter().any(|event| event.idem_key.is_some()) {
        return Err(Problem::invalid("Idempotency-Key and `idem_key` cannot both be set"));
    }
    DerivedKey::name_each(key, batch, !one);
    Ok(())
}

/// Reads a page of events or, with `Accept: text/event-stream`, follows them: each event as it is appended, its position as the
/// stream's id; a comment now and then while nothing happens; `event: moved` when the tenant leaves its replica, after
/// which the stream ends and is taken up again, at any replica, with `Last-Event-ID`.
///
/// A position from a tail that a crash took away is answered 409 `history_rewound` with `last_common`.
#[utoipa::path(
    get,
    path = "/v1/orgs/{org}/tenants/{tenant}/events",
    operation_id = "readEvents",
    tag = "events",
    params(TenantPath, ReadQuery, LastEventIdHeader, TimeoutHeader),
    responses(
        (status = 200, description = "A page, or a stream", content(
            (EventPageBody = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
    Query(query): Query<ReadQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let follow = wants_stream(&headers);
    let refuse = || Problem::invalid("Last-Event-ID is there once, and is a position");
    let last_id = only(&headers, "last-event-id").map_err(|_| refuse())?.filter(|_| follow);
    let after = match (last_id, query.after) {
        (Some(id), _) => Some(id.to_str().map_err(|_| refuse())?.to_owned()),
        (None, after) => after,
    };
    let after: Option<Position> = after
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: leasehold_types::PositionError| Problem::invalid(error.to_string()))?;
    let limit_max = app.config.limits.page_events_max;
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT.min(limit_max));
    if !(1..=limit_max).contains(&limit) {
        return Err(Problem::invalid(format!("limit is 1 to {limit_max}")));
    }
    let wanted = EventQuery { after, kind: query.kind, subject_id: query.subject, limit: limit as usize };
    if follow {
        return follow::follow(&app, tenant, patience, wanted).await;
    }
    let mut page = app
        .serve(&tenant.key, Opening::Existing, patience, |handle| {
            let wanted = wanted.clone();
            async move { handle.ledger().events(wanted).await }
        })
        .await?;
    let held = page.held.take();
    Ok(LargeAnswer(page, held).into_response())
}

pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_derives_a_key_for_each_event() {
        let mut batch = vec![NewEvent::new("a", "x"), NewEvent::new("b", "x")];
        name_each(&mut batch, "k", false).unwrap();
        assert_eq!(batch[1].idem_key.as_deref(), Some("k#1"));
        let mut one = vec![NewEvent::new("a", "x")];
        name_each(&mut one, "k", true).unwrap();
        assert_eq!(one[0].idem_key.as_deref(), Some("k"));
        assert!(name_each(&mut one, "k", true).is_err());
    }
}
