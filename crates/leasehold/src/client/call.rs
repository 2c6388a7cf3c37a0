//! What is asked of a replica.

use leasehold_types::{Epoch, LeaseKey, OrgSlug};
use serde_json::Value;
use url::Url;

use super::{Endpoint, Method};

/// What is asked of a replica.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) method: Method,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    pub(super) if_match: Option<Epoch>,
    pub(super) json: Option<Value>,
    pub(super) follows_state: bool,
}

impl Call {
    pub(crate) fn of_tenant(method: Method, key: &LeaseKey) -> Self {
        let mut call = Self::of_org(method, key.org());
        call.path.push(key.tenant().to_string());
        call
    }

    pub(crate) fn of_org(method: Method, org: &OrgSlug) -> Self {
        let path = ["v1", "orgs", org.as_str(), "tenants"].map(str::to_owned).to_vec();
        Self::at(method, path)
    }

    pub(super) const fn at(method: Method, path: Vec<String>) -> Self {
        Self { method, path, query: Vec::new(), if_match: None, json: None, follows_state: false }
    }

    pub(crate) fn verb(mut self, verb: &str) -> Self {
        self.path.push(verb.to_owned());
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn if_match(mut self, epoch: Option<Epoch>) -> Self {
        self.if_match = epoch;
        self
    }

    /// With this body.
    pub(crate) fn json(mut self, body: Value) -> Self {
        self.json = Some(body);
        self
    }

    /// Any replica answers this for itself: where it says that another one holds the tenant, that one is to be asked.
    pub(crate) fn follows_state(mut self) -> Self {
        self.follows_state = true;
        self
    }

    pub(super) fn url(&self, endpoint: &Endpoint) -> Url {
        let mut url = endpoint.url().clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(&self.path);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_url_below_the_endpoint() {
        let call =
            Call::of_tenant(Method::POST, &"acme/u".parse().unwrap()).verb("snapshot").with("x", "a b");
        assert_eq!(
            call.url(&"http://h/base".parse().unwrap()).as_str(),
            "http://h/base/v1/orgs/acme/tenants/u/snapshot?x=a+b"
        );
    }
}
