//! Once a request's route is known: whether its sender may call it.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequestParts as _, MatchedPath, Path, Request},
    http::{HeaderValue, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::{
    CallerKind, Identity,
    access::{Access, Refused, Target, access_of, judge},
    identity::Unknown,
};
use crate::problem::Problem;

/// Lets a request through to its route, or refuses it, by the route, the path and the caller.
pub(crate) async fn authorize(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let target = target_of(&mut parts).await;
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    // Where nobody is asked, nothing is closed.
    let access = access_of(&parts.method, route, true);
    let refusal = match parts.extensions.get::<Identity>() {
        Some(identity) => refusal_of(identity, access, &target),
        None => Some(Problem::internal("a request that nobody looked at reached a route").into_response()),
    };
    match refusal {
        Some(refusal) => refusal,
        None => next.run(Request::from_parts(parts, body)).await,
    }
}

fn refusal_of(identity: &Identity, access: Access, target: &Target) -> Option<Response> {
    let caller = match &identity.who {
        // A mark is refused wherever it is: whoever sets it means to be a replica.
        Err(Unknown::Peer(problem)) => return Some(problem.clone().into_response()),
        _ if access == Access::Open && !identity.came_by_self => return None,
        Err(Unknown::NotValid(why)) => return Some(not_valid(why)),
        Ok(caller) => caller,
    };
    match caller.kind {
        CallerKind::Person if !identity.is_of_peer && !identity.came_by_self => {
            return Some(forbidden("a person's token opens what is below /v1/self and nothing else"));
        }
        CallerKind::Anonymous if identity.came_by_self => {
            return Some(unauthenticated(
                "what is below /v1/self is of whom the token is, and this replica asks for none",
                r#"Bearer realm="leasehold""#,
            ));
        }
        CallerKind::Service if identity.came_by_self => {
            return Some(forbidden(
                "what is below /v1/self is opened by a person's token: a service names the tenant",
            ));
        }
        _ => {}
    }
    let Err(refused) = judge(access, target, caller) else { return None };
    Some(match refused {
        Refused::Reach => forbidden("the token does not reach this"),
        Refused::Scopes(scopes) => {
            forbidden(&format!("the token does not have each of these scopes: {scopes}"))
        }
    })
}

fn not_valid(why: &str) -> Response {
    unauthenticated(why, r#"Bearer realm="leasehold", error="invalid_token""#)
}

fn unauthenticated(detail: &str, challenge: &'static str) -> Response {
    let mut response = Problem::new(ErrorCode::Unauthenticated, detail).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

fn forbidden(detail: &str) -> Response {
    Problem::new(ErrorCode::Forbidden, detail).into_response()
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
