//! Once a request's route is known: whether its sender may call it.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequestParts as _, MatchedPath, Path, Request, State},
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
use crate::{app::AppState, problem::Problem};

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
