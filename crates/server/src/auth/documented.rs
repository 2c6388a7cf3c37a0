//! What the API's document says of callers: out of the one table, so that it says what is done.

use axum::http::Method;
use leasehold_types::Scope;
use utoipa::openapi::{
    Components, OpenApi, PathItem, RefOr,
    path::Operation,
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

use super::{
    access::{Access, SELF, TENANT, access_of},
    caller::OF_A_PERSON,
};

/// The name of the services' scheme.
const TOKEN: &str = "apiToken";

/// The name of people's.
const PERSON: &str = "person";

/// Adds the routes of a person's own tenant, which are those of tenants that a person's rights reach.
fn document_self(document: &mut OpenApi) {
    let paths = &mut document.paths.paths;
    let tenants: Vec<(String, PathItem)> = paths
        .iter()
        .filter_map(|(path, item)| Some((format!("{SELF}{}", path.strip_prefix(TENANT)?), item.clone())))
        .collect();
    for (path, mut item) in tenants {
        let PathItem { get, put, post, delete, .. } = &mut item;
        let mut is_any = false;
        for (method, slot) in
            [(Method::GET, get), (Method::PUT, put), (Method::POST, post), (Method::DELETE, delete)]
        {
            let of_tenant = path.replacen(SELF, TENANT, 1);
            let is_a_persons = matches!(access_of(&method, &of_tenant, false), Access::Named(scopes) if OF_A_PERSON.has(scopes));
            let Some(operation) = slot.as_mut().filter(|_| is_a_persons) else {
                *slot = None;
                continue;
            };
            is_any = true;
            if let Some(id) = &mut operation.operation_id {
                id.push_str("OfSelf");
            }
            if let Some(parameters) = &mut operation.parameters {
                parameters.retain(|parameter| {
                    !matches!(parameter, RefOr::T(named) if matches!(named.name.as_str(), "org" | "tenant"))
                });
            }
            operation.security = Some(vec![SecurityRequirement::new(PERSON, Vec::<String>::new())]);
        }
        if is_any {
            paths.insert(path, item);
        }
    }
}

/// Adds the ways to be known, and to each operation what it asks of its caller.
pub(crate) fn document_callers(document: &mut OpenApi) {
    let components = document.components.get_or_insert_with(Components::default);
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("lh_<id>_<secret>")
        .description(Some(
            "A service's token (`leasehold token create`). The roles of an operation are the scopes that it needs. Where \
             `auth.mode` is not `required` nobody is asked for one.",
        ))
        .build();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(token));
    let person = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some(
            "A token of a person or an agent, by an issuer that the operator lists (`auth.issuers`). It opens `/v1/self`, which is the \
             tenant of (issuer, subject), and nothing else.",
        ))
        .build();
    components.add_security_scheme(PERSON, SecurityScheme::Http(person));
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations_of(item) {
            operation.security = match access_of(&method, path, false) {
                Access::Open => Some(Vec::new()),
                Access::Named(scopes) | Access::Fleet(scopes) => {
                    Some(vec![SecurityRequirement::new(TOKEN, scopes.iter().map(Scope::as_str))])
                }
                Access::Metrics => None,
            };
        }
    }
    document_self(document);
}

fn operations_of(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, put, post, delete, .. } = item;
    [(Method::GET, get), (Method::PUT, put), (Method::POST, post), (Method::DELETE, delete)]
        .into_iter()
        .filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}
