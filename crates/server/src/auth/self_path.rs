//! `/v1/self/...`: the tenant of whoever asks.

use axum::http::{Uri, uri::PathAndQuery};
use leasehold_types::LeaseKey;

use super::access::SELF;

/// What stands behind `/v1/self` in a path, if it is one below it.
fn rest_of(path: &str) -> Option<&str> {
    path.strip_prefix(SELF).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is one below `/v1/self`.
pub(super) fn is_self(uri: &Uri) -> bool {
    rest_of(uri.path()).is_some()
}

/// The address of the same thing of a tenant; `None`: it is none that there could be.
pub(super) fn of_tenant(uri: &Uri, key: &LeaseKey) -> Option<Uri> {
    let rest = rest_of(uri.path())?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = format!("/v1/orgs/{}/tenants/{}{rest}{query}", key.org(), key.tenant());
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_self_is_of_the_tenant() {
        let key: LeaseKey = "acme/u-1".parse().unwrap();
        for (path, there) in [
            ("/v1/self", Some("/v1/orgs/acme/tenants/u-1")),
            ("/v1/self?dry_run=true", Some("/v1/orgs/acme/tenants/u-1?dry_run=true")),
            ("/v1/self/events?after=1-2", Some("/v1/orgs/acme/tenants/u-1/events?after=1-2")),
            ("/v1/self/../../other/tenants/x", Some("/v1/orgs/acme/tenants/u-1/../../other/tenants/x")),
            ("/v1/selfish", None),
            ("/v1/orgs/acme/tenants/u-1", None),
        ] {
            let uri: Uri = path.parse().unwrap();
            assert_eq!(of_tenant(&uri, &key).map(|uri| uri.to_string()).as_deref(), there, "{path}");
            assert_eq!(is_self(&uri), there.is_some());
        }
        let whole: Uri = "http://h:1/v1/self/events".parse().unwrap();
        assert_eq!(of_tenant(&whole, &key).unwrap(), "http://h:1/v1/orgs/acme/tenants/u-1/events");
    }
}
