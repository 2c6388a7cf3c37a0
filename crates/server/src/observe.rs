//! One line of log and one count for every request.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, Method, header},
    middleware::Next,
    response::Response,
};

use crate::{app::AppState, stage::Stage};

/// Counts and logs a request by its route, never by its path: what callers put into a path is theirs.
pub(crate) async fn observe(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let began = app.clock.now();
    let method = name_of(request.method());
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let mut response = next.run(request).await;
    let (took, status) = (app.clock.now().since(began), response.status());
    app.metrics.answered(method, &route, status.as_u16(), took);
    tracing::debug!(method, route, status = status.as_u16(), ?took, "answered");
    if app.stage.get() == Stage::Draining {
        // It will not be here for long: better that the next request never begins on this connection.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // Answers are a tenant's: no cache on the way keeps them, no browser guesses at what they are.
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The method's name, one of a few: a made-up method makes no new time series.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "OTHER",
    }
}
