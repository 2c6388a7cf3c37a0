//! Following a tenant's events: server-sent events out of the ledger, one page in memory at a time.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event as SseEvent, Sse},
};
use leasehold_ledger::{Event, EventQuery, Held};
use leasehold_tenure::{LedgerRef, TenureError};
use leasehold_types::{ErrorCode, Position, Timer};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    app::{App, Opening},
    bounds::Counted,
    extract::Tenant,
    patience::Patience,
    problem::Problem,
};

/// What a client waits before it takes up a stream that ended: by then a tenant that moved is served again.
const RETRY: Duration = Duration::from_secs(1);

/// A stream between two of its messages.
struct Follower {
    ledger: LedgerRef,
    /// Moves after each acknowledged write, closes with the tenure.
    changes: watch::Receiver<Position>,
    /// What to read next: `after` is the position up to which the ledger was read.
    query: EventQuery,
    /// Read and not yet sent; refilled only when it is empty, so that a slow client costs one page.
    page: VecDeque<Event>,
    /// What it holds of the memory for answers, until it is sent.
    held: Held,
    /// Whether the ledger had more behind the page.
    has_more: bool,
    /// The id that the client has.
    sent: Option<Position>,
    timer: Arc<dyn Timer>,
    heartbeat_every: Duration,
    ended: bool,
    /// Its place among the followers; the place among the requests at work was given back when the answer began.
    _place: Counted,
}

/// Begins a stream. What is wrong with the request, or with the tenant, is said before it begins.
pub(crate) async fn follow(
    app: &App,
    tenant: Tenant,
    patience: Patience,
    query: EventQuery,
) -> Result<Response, Problem> {
    let place = app.followers.enter(&tenant.key)?;
    let (ledger, changes, page) = app
        .serve(&tenant.key, Opening::Existing, patience, |handle| {
            let query = query.clone();
            async move {
                // Before the first read, so that nothing that is appended beside it is missed.
                let changes = handle.changes();
                let ledger = handle.ledger();
                let page = ledger.events(query).await?;
                Ok((ledger, changes, page))
            }
        })
        .await?;
    let follower = Follower {
        ledger,
        changes,
        sent: query.after,
        query: EventQuery { after: page.next.or(query.after), ..query },
        page: page.events.into(),
        held: page.held,
        has_more: page.has_more,
        timer: Arc::clone(&app.timer),
        heartbeat_every: app.config.follow.heartbeat_every,
        ended: false,
        _place: place,
    };
    Ok(Sse::new(futures::stream::unfold(follower, next)).into_response())
}

/// The next message: an event, a heartbeat, or the last one.
async fn next(mut follower: Follower) -> Option<(Result<SseEvent, Infallible>, Follower)> {
    if follower.ended {
        return None;
    }
    loop {
        if let Some(event) = follower.page.pop_front() {
            follower.sent = Some(event.position);
            if follower.page.is_empty() {
                drop(follower.held.take());
            }
            return Some((Ok(message(&event)), follower));
        }
        if !follower.has_more {
            let heartbeat = follower.timer.sleep(follower.heartbeat_every);
            tokio::select! {
                changed = follower.changes.changed() => if changed.is_err() {
                    return Some(moved(follower, ErrorCode::Draining));
                },
                () = heartbeat => return Some((Ok(SseEvent::default().comment("")), follower)),
            }
        }
        follower.changes.borrow_and_update();
        match follower.ledger.events(follower.query.clone()).await {
            Ok(page) => {
                follower.query.after = page.next.or(follower.query.after);
                follower.has_more = page.has_more;
                follower.page = page.events.into();
                follower.held = page.held;
            }
            // There is memory for it again soon: the client waits as for any next event.
            Err(error) if error.code() == ErrorCode::Overloaded => {
                follower.timer.sleep(RETRY).await;
                follower.has_more = true;
                return Some((Ok(SseEvent::default().comment("")), follower));
            }
            Err(error) => return Some(ended_by(follower, &error)),
        }
    }
}

fn message(event: &Event) -> SseEvent {
    let message = SseEvent::default().id(event.position.to_string());
    // An event that was read out of a ledger is JSON; should it not be, the stream says so instead of ending silently.
    message.json_data(event).unwrap_or_else(|_| SseEvent::default().event("error").data("not JSON"))
}

/// The end of a stream because the tenant is not served here any more: the client takes it up again wherever it is.
fn moved(mut follower: Follower, code: ErrorCode) -> (Result<SseEvent, Infallible>, Follower) {
    follower.ended = true;
    let data = json!({ "code": code, "after": follower.sent });
    (Ok(SseEvent::default().event("moved").retry(RETRY).data(data.to_string())), follower)
}

fn ended_by(follower: Follower, error: &TenureError) -> (Result<SseEvent, Infallible>, Follower) {
    match error.code() {
        code @ (ErrorCode::Draining | ErrorCode::Fenced) => moved(follower, code),
        code => {
            tracing::warn!(%code, %error, "a stream ended");
            let (_, follower) = moved(follower, code);
            let data = json!({ "code": code, "after": follower.sent });
            (Ok(SseEvent::default().event("error").retry(RETRY).data(data.to_string())), follower)
        }
    }
}
