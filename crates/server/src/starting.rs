//! Answering while this replica comes up: probes are told so, and what is asked of it waits.
//!
//! The port is there before the replica may act: it waits for the lease store, and where another process had its id for a ttl of silence. A connection that
//! nobody accepts meanwhile would be one of which nobody knows whether it was read.

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use leasehold_types::ErrorCode;

use crate::{
    app::{App, AppState, PARKED_WAIT_MAX},
    forward::FORWARDED_BY,
    patience::Patience,
    problem::Problem,
    stage::Stage,
};

/// What begins with this is about tenants or the fleet; everything else is answered at any time.
const GUARDED: &str = "/v1/";

/// Whether a request is about tenants or the fleet.
pub(crate) fn is_guarded(request: &Request) -> bool {
    request.extensions().get::<MatchedPath>().is_some_and(|path| path.as_str().starts_with(GUARDED))
}

/// Holds what comes too early, as long as its caller waits and there is room. Another replica is sent on at once: it knows where else to ask.
pub(crate) async fn until_started(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if is_guarded(&request) && app.stage.get() == Stage::Starting {
        // Whether the mark is to be believed makes no difference to who is told to come back.
        let waited = if request.headers().contains_key(FORWARDED_BY) {
            false
        } else {
            started(&app, Patience::of_headers(request.headers(), &app)).await
        };
        if !waited {
            let detail = format!("replica {} is not up yet", app.replica);
            return Problem::new(ErrorCode::Draining, detail).into_response();
        }
    }
    next.run(request).await
}

/// Whether the replica came up in time.
async fn started(app: &App, patience: Patience) -> bool {
    let Ok(_place) = app.parked.try_acquire() else { return false };
    while app.stage.get() == Stage::Starting {
        let left = patience.left(app.clock.as_ref());
        if left.is_zero() {
            return false;
        }
        app.timer.sleep(PARKED_WAIT_MAX.min(left)).await;
    }
    true
}
