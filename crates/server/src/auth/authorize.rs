//! Once a request's route is known: whether its sender may call it.

use std::{collections::BTreeMap, net::SocketAddr};

use axum::{
    extract::{ConnectInfo, FromRequestParts as _, MatchedPath, Path, Request, State},
    http::{HeaderValue, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::{
    CallerKind, Identity,
    access::{Access, Refused, Target, access_of, judge},
    identity::Unknown,
};
use crate::{
    app::{App, AppState},
    connections::network_of,
    metering::TooMany,
    problem::Problem,
};

/// Lets a request through to its route, or refuses it, by the route, the path and the caller.
pub(crate) async fn authorize(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let target = target_of(&mut parts).await;
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let access = access_of(&parts.method, route, app.config.auth.open_metrics);
    let refusal = match parts.extensions.get::<Identity>() {
        Some(identity) => refusal_of(identity, access, &target),
        None => Some(Refusal(Problem::internal("a request that nobody looked at reached a route"), None)),
    };
    if let Some(refusal) = refusal {
        let refusal = metered(&app, &parts, refusal);
        app.metrics.caller_refused(refusal.0.code());
        return refusal.into_response();
    }
    if let Some(caller) = parts.extensions.get::<Identity>().and_then(Identity::caller) {
        parts.extensions.insert(caller);
    }
    parts.extensions.insert(Judged(match target {
        Target::Tenant(key) => Some(key),
        Target::Org(_) | Target::Fleet | Target::Nothing => None,
    }));
    next.run(Request::from_parts(parts, body)).await
}

/// The tenant about which a request was let through, if it is about one.
#[derive(Clone, Debug)]
pub(super) struct Judged(pub(super) Option<LeaseKey>);

/// How a client is asked who it is (RFC 6750, section 3).
const ASK: &str = r#"Bearer realm="leasehold""#;
/// The same after a token that is none.
const ASK_AGAIN: &str = r#"Bearer realm="leasehold", error="invalid_token""#;
/// The same after one that does not reach so far.
const ASK_ELSE: &str = r#"Bearer realm="leasehold", error="insufficient_scope""#;

/// A request that is not let through: the answer, and how its sender is asked who it is.
struct Refusal(Problem, Option<&'static str>);

impl Refusal {
    fn unknown(detail: &str, ask: &'static str) -> Self {
        Self(Problem::new(ErrorCode::Unauthenticated, detail), Some(ask))
    }

    fn forbidden(detail: impl Into<String>) -> Self {
        Self(Problem::new(ErrorCode::Forbidden, detail), Some(ASK_ELSE))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        if let Some(ask) = self.1 {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(ask));
        }
        response
    }
}

/// The refusal of who is not known, unless its address has had too many of them: then it is told to wait, and no log is filled.
///
/// Whoever shows what is good is let in all the same: behind a proxy an address has many callers, and none of them is to lock out the
/// others (decision 0052).
fn metered(app: &App, parts: &Parts, refusal: Refusal) -> Refusal {
    let is_of_peer = refusal.0.code() == ErrorCode::PeerRefused;
    if !is_of_peer && refusal.0.code() != ErrorCode::Unauthenticated {
        return refusal;
    }
    let Some(ConnectInfo(peer)) = parts.extensions.get::<ConnectInfo<SocketAddr>>() else { return refusal };
    match app.metering.failures.check(&network_of(peer.ip())) {
        Ok(()) if is_of_peer => {
            // Not by whom: that is what whoever sent it says. A replica with another secret is told, and says so in its own log.
            tracing::warn!(
                said = refusal.0.detail(),
                "a request was refused that is no replica's, or came where replicas do not"
            );
            refusal
        }
        Ok(()) => refusal,
        // A replica has to know why it is refused.
        Err(_) if is_of_peer => refusal,
        Err(TooMany::Spent(wait)) => {
            let per_second = app.config.limits.rate_failures_per_peer;
            let detail =
                format!("more than {per_second} requests a second without a good token from this address");
            Refusal(Problem::new(ErrorCode::RateLimited, detail).after(wait), None)
        }
        Err(TooMany::Keys) => {
            Refusal(Problem::overloaded("more addresses without a good token than are counted"), None)
        }
    }
}

fn refusal_of(identity: &Identity, access: Access, target: &Target) -> Option<Refusal> {
    let caller = match &identity.who {
        // A mark is refused wherever it is: whoever sets it means to be a replica.
        Err(Unknown::Peer(problem)) => return Some(Refusal(problem.clone(), None)),
        _ if access == Access::Open && !identity.came_by_self => return None,
        Err(Unknown::Missing) => return Some(Refusal::unknown("no token is shown", ASK)),
        Err(Unknown::NotValid(why)) => return Some(Refusal::unknown(why, ASK_AGAIN)),
        Ok(caller) => caller,
    };
    match caller.kind {
        CallerKind::Person if !identity.is_of_peer && !identity.came_by_self => {
            return Some(Refusal::forbidden(
                "a person's token opens what is below /v1/self and nothing else",
            ));
        }
        CallerKind::Anonymous if identity.came_by_self => {
            return Some(Refusal::unknown(
                "what is below /v1/self is of whom the token is, and this replica asks for none",
                ASK,
            ));
        }
        CallerKind::Service if identity.came_by_self => {
            return Some(Refusal::forbidden(
                "what is below /v1/self is opened by a person's token: a service names the tenant",
            ));
        }
        _ => {}
    }
    match judge(access, target, caller) {
        Ok(()) => None,
        Err(Refused::Reach) => Some(Refusal::forbidden("the token does not reach this")),
        Err(Refused::Scopes(scopes)) => {
            Some(Refusal::forbidden(format!("the token does not have each of these scopes: {scopes}")))
        }
    }
}

/// What the path of a matched route names.
async fn target_of(parts: &mut Parts) -> Target {
    // A route that was matched has its parameters; what matches none names nothing.
    if parts.extensions.get::<MatchedPath>().is_none() {
        return Target::Fleet;
    }
    let Ok(Path(params)) = Path::<BTreeMap<String, String>>::from_request_parts(parts, &()).await else {
        return Target::Nothing;
    };
    let Some(org) = params.get("org") else { return Target::Fleet };
    let Ok(org) = org.parse() else { return Target::Nothing };
    match params.get("tenant").map(|tenant| tenant.parse()) {
        Some(Ok(tenant)) => Target::Tenant(LeaseKey::new(org, tenant)),
        // There is no tenant of such a name: whoever reaches the organization is told so.
        Some(Err(_)) | None => Target::Org(org),
    }
}
