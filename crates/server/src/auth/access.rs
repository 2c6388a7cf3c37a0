//! What each route asks of its caller: one table, and the judgement by it. No store is asked, here or before.

use axum::http::Method;
use leasehold_types::{LeaseKey, OrgSlug, Scope, Scopes};

use super::Caller;

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing: whoever watches over the process, or wants to know how to call.
    Open,
    /// Nothing where the operator says so, else what `Fleet` asks.
    Metrics,
    /// These scopes, for the tenant or organization of the path.
    Named(Scopes),
    /// These scopes, for every organization.
    Fleet(Scopes),
}

/// Whom or what a route's path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A tenant.
    Tenant(LeaseKey),
    /// An organization.
    Org(OrgSlug),
    /// Neither.
    Fleet,
    /// Something that is no id: there is nothing of this name, and the route says so.
    Nothing,
}

/// The path below which a person's own tenant is reached.
pub(crate) const SELF: &str = "/v1/self";
/// The path that it stands for.
pub(crate) const TENANT: &str = "/v1/orgs/{org}/tenants/{tenant}";

const READ: Scopes = Scopes::of(&[Scope::Read]);
const APPEND: Scopes = Scopes::of(&[Scope::Append]);
const SQL: Scopes = Scopes::of(&[Scope::Sql]);
const OPERATE: Scopes = Scopes::of(&[Scope::Operate]);
const FORGET: Scopes = Scopes::of(&[Scope::Forget]);
const ADMIN: Scopes = Scopes::of(&[Scope::Admin]);
/// An imported file brings events and tables.
const IMPORT: Scopes = Scopes::of(&[Scope::Append, Scope::Sql]);

/// Every route. A test holds it to what the API's document says.
pub(crate) const ROUTES: &[(Method, &str, Access)] = &[
    (Method::PUT, "/v1/orgs/{org}/tenants/{tenant}", Access::Named(APPEND)),
    (Method::GET, "/v1/orgs/{org}/tenants/{tenant}", Access::Named(READ)),
    (Method::DELETE, "/v1/orgs/{org}/tenants/{tenant}", Access::Named(FORGET)),
    (Method::GET, "/v1/orgs/{org}/tenants", Access::Named(READ)),
    (Method::POST, "/v1/orgs/{org}/tenants:resolve", Access::Named(READ)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/events", Access::Named(APPEND)),
    (Method::GET, "/v1/orgs/{org}/tenants/{tenant}/events", Access::Named(READ)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/query", Access::Named(READ)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/execute", Access::Named(SQL)),
    (Method::GET, "/v1/orgs/{org}/tenants/{tenant}/export", Access::Named(READ)),
    (Method::PUT, "/v1/orgs/{org}/tenants/{tenant}/import", Access::Named(IMPORT)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/snapshot", Access::Named(OPERATE)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/handoff", Access::Named(OPERATE)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/abandon", Access::Named(OPERATE)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/pause", Access::Named(OPERATE)),
    (Method::POST, "/v1/orgs/{org}/tenants/{tenant}/resume", Access::Named(OPERATE)),
    (Method::GET, "/v1/replicas", Access::Fleet(OPERATE)),
    (Method::POST, "/v1/drain", Access::Fleet(ADMIN)),
    (Method::GET, "/healthz", Access::Open),
    (Method::GET, "/readyz", Access::Open),
    (Method::GET, "/openapi.json", Access::Open),
    (Method::GET, "/metrics", Access::Metrics),
];

/// What a route asks. One that is not in the table, or a method that it does not take, asks for a known caller, whom it reaches only in
/// its own organizations: it is answered that there is no such thing.
pub(crate) fn access_of(method: &Method, route: &str, open_metrics: bool) -> Access {
    // What answers HEAD is what answers GET.
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let row = ROUTES.iter().find(|(known, path, _)| known == method && *path == route);
    match row.map_or(Access::Named(Scopes::NONE), |(_, _, access)| *access) {
        Access::Metrics if open_metrics => Access::Open,
        Access::Metrics => Access::Fleet(OPERATE),
        access => access,
    }
}

/// Why a caller is refused. It follows from the route and the caller alone: of what is there, it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It does not reach what the path names.
    Reach,
    /// It lacks one of these scopes.
    Scopes(Scopes),
}

/// Whether `caller` may call a route that asks for `access`.
pub(crate) fn judge(access: Access, target: &Target, caller: &Caller) -> Result<(), Refused> {
    let (scopes, is_reached) = match (access, target) {
        (Access::Open, _) => return Ok(()),
        (Access::Named(scopes), Target::Tenant(key)) => (scopes, caller.reaches_tenant(key)),
        (Access::Named(scopes), Target::Org(org)) => (scopes, caller.reaches_org(org)),
        (Access::Named(scopes), Target::Fleet) => (scopes, true),
        // Whose an id would be that is none is not known, so only who reaches everything is told what is wrong with it.
        (Access::Named(scopes), Target::Nothing) | (Access::Fleet(scopes), _) => {
            (scopes, caller.reaches_fleet())
        }
        (Access::Metrics, _) => (OPERATE, caller.reaches_fleet()),
    };
    if !is_reached {
        return Err(Refused::Reach);
    }
    if caller.scopes.has(scopes) { Ok(()) } else { Err(Refused::Scopes(scopes)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use leasehold_types::Organizations;

    use super::*;
    use crate::openapi_json;

    #[test]
    fn every_documented_route_says_what_it_asks() {
        let document: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
        let mut documented = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                documented.insert((method.to_uppercase(), path.replacen(SELF, TENANT, 1)));
                let asks = item[method]["security"].as_array().map(Vec::len);
                assert!(asks.is_some(), "{method} {path} says whom it asks");
            }
        }
        let known: BTreeSet<(String, String)> =
            ROUTES.iter().map(|(method, path, _)| (method.to_string(), (*path).to_owned())).collect();
        assert_eq!(documented, known, "the table of access and the document list the same routes");
        assert_eq!(ROUTES.len(), known.len(), "no route stands there twice");
    }

    #[test]
    fn what_is_open_is_what_watches_and_what_explains() {
        let open: Vec<&str> = ROUTES
            .iter()
            .filter(|(_, _, access)| *access == Access::Open)
            .map(|(_, path, _)| *path)
            .collect();
        assert_eq!(open, ["/healthz", "/readyz", "/openapi.json"]);
        assert_eq!(access_of(&Method::GET, "/metrics", true), Access::Open);
        assert_eq!(access_of(&Method::GET, "/metrics", false), Access::Fleet(OPERATE));
    }

    #[test]
    fn a_method_or_route_that_is_none_opens_nothing_of_another_organization() {
        let service = Caller::service("crm", Scopes::ALL, "acme".parse().unwrap());
        let access = access_of(&Method::PATCH, TENANT, false);
        let (own, other) = ("acme/u".parse().unwrap(), "other/u".parse().unwrap());
        assert_eq!(judge(access, &Target::Tenant(own), &service), Ok(()));
        assert_eq!(judge(access, &Target::Tenant(other), &service), Err(Refused::Reach));
        assert_eq!(judge(access, &Target::Nothing, &service), Err(Refused::Reach));
        assert_eq!(access_of(&Method::HEAD, TENANT, false), access_of(&Method::GET, TENANT, false));
    }

    #[test]
    fn each_scope_opens_its_own_routes_and_no_others() {
        let key: LeaseKey = "acme/u".parse().unwrap();
        for (method, path, access) in ROUTES {
            let (Access::Named(needed) | Access::Fleet(needed)) = access else { continue };
            for scope in Scope::ALL {
                let only = Scopes::of(&[scope]);
                let service = Caller::service("one", only, Organizations::All);
                let target = Target::Tenant(key.clone());
                assert_eq!(
                    judge(*access, &target, &service).is_ok(),
                    only.has(*needed),
                    "{method} {path} {scope}"
                );
            }
        }
    }
}
