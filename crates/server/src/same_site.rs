//! Other sites' pages, kept out of a replica that knows no callers.

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{app::AppState, config::AuthMode, problem::Problem};

/// Without authentication, being able to reach the loopback address is what makes a caller; a page in a browser on the same machine
/// can reach it too. So requests are refused that a page of another site sent (their `Origin` is not this address), or that were
/// led here by a name that somebody else's DNS points at it (their `Host` is neither an IP address nor `localhost`).
pub(crate) async fn same_site(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if app.config.auth.mode == AuthMode::None
        && let Err(detail) = check(request.headers())
    {
        return Problem::invalid(detail).into_response();
    }
    next.run(request).await
}

fn check(headers: &HeaderMap) -> Result<(), &'static str> {
    let host = text(headers, &header::HOST);
    if host.is_some_and(|host| !is_local_name(name_of(host))) {
        return Err("without authentication only an IP address or `localhost` is answered as `Host`");
    }
    if let Some(origin) = text(headers, &header::ORIGIN)
        && origin.split_once("://").map(|(_, authority)| authority) != host
    {
        return Err("without authentication no other site's pages are answered");
    }
    Ok(())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // What is no text is compared as an empty one, which is neither an address nor an origin of ours.
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// The host of an authority, without its port.
fn name_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_local_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(host: &'static str, origin: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        check(&headers).is_ok()
    }

    #[test]
    fn only_this_address_and_its_own_pages() {
        for host in ["127.0.0.1:7400", "localhost:7400", "[::1]:7400", "127.0.0.1"] {
            assert!(of(host, None), "{host}");
        }
        assert!(of("127.0.0.1:7400", Some("http://127.0.0.1:7400")));
        assert!(!of("127.0.0.1:7400", Some("http://127.0.0.1:3000")));
        assert!(!of("127.0.0.1:7400", Some("https://evil.example")));
        assert!(!of("127.0.0.1:7400", Some("null")));
        assert!(!of("evil.example:7400", None));
        assert!(!of("evil.example:7400", Some("http://evil.example:7400")));
    }
}
