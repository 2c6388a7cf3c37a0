//! All routes and their OpenAPI document, which are one thing.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::State,
    http::header,
    middleware,
    response::{IntoResponse, Response},
};
use leasehold_types::ErrorCode;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::{OpenApi, openapi::OpenApi as Document};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::AppState,
    auth::{audit, authorize, document_callers, identify},
    forward::forward,
    memory::account,
    metering::meter,
    observe::observe,
    problem::{Problem, of_panic},
    routes::{events, export, fleet, import, probes, sql, tenants, verbs},
    same_site::same_site,
    starting::until_started,
    status,
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Leasehold", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    tags(
        (name = "tenants", description = "Tenants: one SQLite ledger each"),
        (name = "events", description = "The append-only history of a tenant"),
        (name = "sql", description = "Tables of a tenant's own"),
        (name = "transfer", description = "A ledger as a file"),
        (name = "operations", description = "What operators do to a tenant"),
        (name = "fleet", description = "The replicas"),
        (name = "probes", description = "What watches over a replica asks"),
    )
)]
struct Head;

const DESCRIPTION: &str = "\
One SQLite ledger for each tenant, served by one replica at a time.

Ids are `[a-z0-9][a-z0-9_-]{0,63}`. A position is `<epoch>-<seq>`; both parts count, because the tail that a crash takes away is \
numbered again in the next epoch.

Every refusal is problem details (RFC 9457) with a stable `code`, and says by `executed` whether it was executed: `no`, or \
`unknown`, after which the request is repeated with the same idempotency key. While a tenant moves, requests wait for it as long as \
`Leasehold-Timeout` allows. In a fleet with a peer secret every replica answers for every tenant: what another one holds is forwarded \
to it. Without one it is answered 409 `lease_held` with the owner's `endpoint`.

";

fn routes_of() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Head::openapi())
        .routes(routes!(tenants::create, tenants::status, tenants::forget))
        .routes(routes!(tenants::list))
        .routes(routes!(tenants::resolve))
        .routes(routes!(events::append, events::read))
        .routes(routes!(sql::query))
        .routes(routes!(sql::execute))
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(verbs::snapshot))
        .routes(routes!(verbs::handoff))
        .routes(routes!(verbs::abandon))
        .routes(routes!(verbs::pause))
        .routes(routes!(verbs::resume))
        .routes(routes!(fleet::replicas))
        .routes(routes!(fleet::drain))
        .routes(routes!(probes::health))
        .routes(routes!(probes::ready))
        .routes(routes!(probes::metrics))
        .routes(routes!(document))
}

fn document_of_routes() -> Document {
    let mut document = routes_of().into_openapi();
    document.info.description = Some(format!("{DESCRIPTION}{}", status::as_markdown()));
    document.info.version = String::from(env!("CARGO_PKG_VERSION"));
    document_callers(&mut document);
    document
}

/// The OpenAPI document, as `GET /openapi.json` answers it.
#[must_use]
pub fn openapi_json() -> String {
    let mut text = document_of_routes()
        .to_pretty_json()
        .unwrap_or_else(|_| unreachable!("an OpenAPI document is made of strings and maps of strings"));
    text.push('\n');
    text
}

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "openapi",
    tag = "probes",
    responses((status = 200, description = "The document", body = Object))
)]
async fn document() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(openapi_json);
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// The service: routes, and around them what counts, what contains a panic and what keeps other sites out.
pub(crate) fn service_of(app: AppState) -> Router {
    let (routes, _) = routes_of().split_for_parts();
    let inner = routes
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_that_method)
        .layer(middleware::from_fn(audit))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), forward))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), account))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), meter))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), until_started))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), authorize))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), same_site))
        .layer(CatchPanicLayer::custom(of_panic))
        .layer(middleware::from_fn_with_state(AppState::clone(&app), observe))
        .with_state(AppState::clone(&app));
    // Around the routing, not inside it: whose tenant `/v1/self` is has to be known before a route is looked for.
    Router::new().fallback_service(inner).layer(middleware::from_fn_with_state(app, identify))
}

async fn nothing_here(State(_): State<AppState>) -> Problem {
    Problem::new(ErrorCode::NotFound, "there is no such route")
}

async fn not_that_method(State(_): State<AppState>) -> Problem {
    Problem::new(ErrorCode::MethodNotAllowed, "this route does not take this method")
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request, routing::get};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_problem_that_tells_nothing_of_it() {
        async fn broken() -> &'static str {
            panic!("what another caller sent")
        }
        let router: Router = Router::new().route("/", get(broken)).layer(CatchPanicLayer::custom(of_panic));
        let answered = router.oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(answered.status(), 500);
        let body = axum::body::to_bytes(answered.into_body(), 10_000).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("\"internal\"") && body.contains("\"unknown\""), "{body}");
        assert!(!body.contains("another caller"), "{body}");
    }

    #[test]
    fn every_operation_has_an_id_of_its_own_and_a_problem_or_a_probe() {
        let document: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
        let mut ids = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                ids.push(operation["operationId"].as_str().unwrap().to_owned());
                let told = operation["responses"].get("default").is_some();
                // The metrics may be kept for who is known.
                assert_eq!(told, path.starts_with("/v1/") || path == "/metrics", "{method} {path}");
            }
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn the_description_lists_every_code() {
        let text = openapi_json();
        for code in ErrorCode::ALL {
            assert!(text.contains(&format!("`{code}`")), "{code}");
        }
    }
}
