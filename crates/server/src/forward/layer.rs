//! Around every route: who sent the request, and which replica answers it.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequestParts as _, MatchedPath, Path, Request, State},
    http::{HeaderMap, HeaderValue, request::Parts},
    middleware::Next,
    response::Response,
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::{
    errand::Errand,
    headers::{FORWARDED_BY, OWNER_EPOCH, PEER_SECRET},
};
use crate::{
    app::{App, AppState},
    auth::Identity,
    connections::Entrance,
    placement::OPEN_TENANTS,
    problem::Problem,
};

/// Answers a request of another replica here and nowhere else, and a client's wherever its tenant is.
///
/// It goes by the route's parameters, so that a route about a tenant cannot be forgotten here.
pub(crate) async fn forward(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let is_of_peer = request.extensions().get::<Identity>().is_some_and(Identity::is_of_peer);
    if app.forwarding.is_none() {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let tenant = tenant_of(&mut parts).await;
    let request = Request::from_parts(parts, body);
    match (&app.forwarding, tenant) {
        (_, key) if is_of_peer => answer_peer(&app, key, request, next).await,
        (Some(forwarding), Some(key)) => Errand::new(&app, forwarding, key, request, next).run().await,
        _ => next.run(request).await,
    }
}

/// Whether another replica sent this; the mark without a secret of the fleet is refused, and goes no further. Where replicas have an entrance of
/// their own, so is a mark that comes by the clients' whatever it shows, and whatever comes by theirs without one.
pub(crate) fn admit(app: &App, entrance: Entrance, headers: &mut HeaderMap) -> Result<bool, Problem> {
    let shown: Vec<HeaderValue> = headers.get_all(PEER_SECRET).iter().cloned().collect();
    let is_marked = headers.contains_key(FORWARDED_BY);
    headers.remove(PEER_SECRET);
    if shown.is_empty() && !is_marked && entrance != Entrance::Replicas {
        return Ok(false);
    }
    let accepted = match (&app.forwarding, &shown[..]) {
        (Some(forwarding), [one]) => forwarding.secrets.accepts(one.as_bytes()),
        _ => false,
    };
    if accepted && is_marked && entrance != Entrance::Clients {
        return Ok(true);
    }
    let detail = match entrance {
        Entrance::Shared => "only a replica of this fleet forwards requests",
        Entrance::Clients => "this address is for clients: replicas have one of their own",
        Entrance::Replicas => "this address is for the replicas of this fleet",
    };
    app.metrics.forward.peers_refused.inc();
    Err(Problem::new(ErrorCode::PeerRefused, detail))
}

/// The tenant of the route, if it is one about a tenant.
pub(crate) async fn tenant_of(parts: &mut Parts) -> Option<LeaseKey> {
    // A route that was matched has its parameters; what matches none has no tenant.
    parts.extensions.get::<MatchedPath>()?;
    let Path(params): Path<BTreeMap<String, String>> = Path::from_request_parts(parts, &()).await.ok()?;
    let (org, tenant) = (params.get("org")?.parse().ok()?, params.get("tenant")?.parse().ok()?);
    Some(LeaseKey::new(org, tenant))
}

/// This replica's own answer, with what the one that forwards remembers: at which epoch it is held here, and how much else is.
async fn answer_peer(app: &App, key: Option<LeaseKey>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Some(handle) = key.and_then(|key| app.router.handle_of(&key)) {
        response.headers_mut().insert(OWNER_EPOCH, handle.epoch().get().into());
    }
    response.headers_mut().insert(OPEN_TENANTS, app.router.tenants().into());
    response
}
