//! What somebody may want to know of later: who created, forgot, handed off, exported, imported, abandoned, paused, resumed, drained.
//!
//! On the log target [`TARGET`], one event each, on the replica that did it, whichever one was asked. It names the caller and the tenant's
//! key, and nothing of what either holds.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode},
    middleware::Next,
    response::Response,
};
use leasehold_types::LeaseKey;

use super::{Caller, Identity, authorize::Judged};
use crate::forward::Verdict;

/// The target of the events.
pub(super) const TARGET: &str = "leasehold_audit";

/// The routes that leave an event, each with its name there.
const ACTIONS: &[(Method, &str, &str)] = &[
    (Method::PUT, "/v1/orgs/{org}/tenants/{tenant}", "create"),
    (Method::DELETE, "/v1/orgs/{org}/tenants/{tenant}", "forget"),
    (Method::GET, "/v1/orgs/{org}/tenants/{tenant}/export", "export"),
    (Method::PUT, "/v1/orgs/{org}/tenants/{tenant}/import", "import"),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/handoff", "handoff"),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/abandon", "abandon"),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/pause", "pause"),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/resume", "resume"),
    (Method::POST, "/v1/drain", "drain"),
];

tokio::task_local! {
    /// Who asked for what this task does.
    static ASKED_BY: Arc<Caller>;
}

/// Notes what a request does, once it is done.
pub(crate) async fn audit(request: Request, next: Next) -> Response {
    let Some(caller) = request.extensions().get::<Identity>().and_then(Identity::caller) else {
        // Only what is open is reached by nobody.
        return next.run(request).await;
    };
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let action = ACTIONS.iter().find(|(method, path, _)| method == request.method() && *path == route);
    let is_rehearsal = request.uri().query().is_some_and(|query| query.contains("dry_run=true"));
    let Some((_, _, action)) = action.filter(|_| !is_rehearsal) else {
        return ASKED_BY.scope(caller, next.run(request)).await;
    };
    let key = request.extensions().get::<Judged>().and_then(|judged| judged.0.clone());
    let mut record = Record { action, caller: Arc::clone(&caller), key, is_open: true };
    let response = ASKED_BY.scope(caller, next.run(request)).await;
    record.close(&response);
    response
}

/// Notes that a tenant came to be by the first thing that was written to it.
pub(crate) fn audit_creation(key: &LeaseKey) {
    // A tenant that a program opens by the router has no caller.
    let _ = ASKED_BY.try_with(|caller| {
        let record =
            Record { action: "create", caller: Arc::clone(caller), key: Some(key.clone()), is_open: false };
        record.write("done");
    });
}

/// An event that is to be written. One that is dropped open, since its caller hung up, may have been done.
struct Record {
    action: &'static str,
    caller: Arc<Caller>,
    key: Option<LeaseKey>,
    is_open: bool,
}

impl Record {
    fn close(&mut self, response: &Response) {
        self.is_open = false;
        // What was answered about another replica's tenant is done there, if it is done.
        let verdict = response.extensions().get::<Verdict>();
        if verdict.is_some_and(|verdict| *verdict != Verdict::Elsewise) {
            return;
        }
        match response.status() {
            // It was there.
            StatusCode::OK if self.action == "create" => {}
            status if status.is_success() => self.write("done"),
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::GATEWAY_TIMEOUT => self.write("unknown"),
            _ => {}
        }
    }

    fn write(&self, outcome: &'static str) {
        let Self { action, caller, key, .. } = self;
        let (kind, name) = (caller.kind.as_str(), &caller.name);
        if let Some(key) = key {
            tracing::info!(target: TARGET, action, outcome, %key, kind, %name, "audit");
        } else {
            tracing::info!(target: TARGET, action, outcome, kind, %name, "audit");
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_open {
            self.write("unknown");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::access::ROUTES;

    #[test]
    fn what_is_audited_is_a_route_and_no_change_by_an_operator_is_left_out() {
        for (method, path, _) in ACTIONS {
            assert!(
                ROUTES.iter().any(|(known, route, _)| known == method && route == path),
                "{method} {path}"
            );
        }
        let daily = ["/events", "/query", "/execute", "/snapshot", "tenants:resolve"];
        for (method, path, _) in ROUTES {
            let is_audited = ACTIONS.iter().any(|(known, route, _)| known == method && route == path);
            let is_daily = daily.iter().any(|end| path.ends_with(end));
            assert!(is_audited || is_daily || *method == Method::GET, "{method} {path}");
        }
    }
}
