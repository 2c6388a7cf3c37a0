//! Before a request is routed: who sent it.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};

use super::{CALLER, CallerKind, Identity, caller::Reach, identity::Unknown, passed_on, self_path};
use crate::{
    app::{App, AppState},
    connections::Entrance,
    forward::{FORWARDED_BY, admit},
};

/// Finds out who sent a request, and leads one below `/v1/self` to the tenant that its sender is. It refuses nothing: whether it matters who
/// sent it is the route's to say.
pub(crate) async fn identify(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    // A request whose entrance is not known is nobody's but a client's.
    let entrance = request.extensions().get().copied().unwrap_or(Entrance::Clients);
    let mut identity = if let Some(identity) = of_peer(&app, entrance, request.headers_mut()) {
        identity
    } else {
        let who = app.knowledge.caller_of(request.headers(), app.clock.wall());
        Identity { who, is_of_peer: false, came_by_self: false }
    };
    // What was shown is not needed any more, and reaches neither a route nor another replica.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.headers_mut().remove(CALLER);
    if !identity.is_of_peer && self_path::is_self(request.uri()) {
        identity.came_by_self = true;
        let own = identity.who.as_ref().ok().and_then(|caller| match (&caller.reach, caller.kind) {
            (Reach::Tenant(key), CallerKind::Person) => self_path::of_tenant(request.uri(), key),
            _ => None,
        });
        if let Some(own) = own {
            *request.uri_mut() = own;
        }
    }
    request.extensions_mut().insert(identity);
    next.run(request).await
}

/// The identity of a request that says that a replica forwarded it.
fn of_peer(app: &App, entrance: Entrance, headers: &mut HeaderMap) -> Option<Identity> {
    let who = match admit(app, entrance, headers) {
        Ok(false) => return None,
        Ok(true) => headers
            .get(FORWARDED_BY)
            .and_then(|by| passed_on::received(headers.get(CALLER), by))
            .map(Arc::new)
            .ok_or(Unknown::NotValid(
                "the replica that forwards names a caller in no way that is known here",
            )),
        Err(problem) => Err(Unknown::Peer(problem)),
    };
    let is_of_peer = who.is_ok();
    Some(Identity { who, is_of_peer, came_by_self: false })
}
