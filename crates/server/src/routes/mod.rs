//! The routes, one file for each resource. A handler's `utoipa::path` is both its route and its entry in the OpenAPI document.

pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod follow;
pub(crate) mod import;
pub(crate) mod params;
pub(crate) mod probes;
pub(crate) mod schemas;
pub(crate) mod sql;
pub(crate) mod tenants;
pub(crate) mod verbs;
