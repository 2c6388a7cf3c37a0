//! Names, and how tenants are reached.

use std::{ops::Range, time::Duration};

use leasehold_types::LeaseKey;
use reqwest::{Client, RequestBuilder, Response};

/// How long a request may take over what it lets the fleet wait: what has no answer then has none.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// The tenant of this number.
pub(crate) fn tenant(number: usize) -> LeaseKey {
    format!("fleet/t-{number:02}").parse().unwrap()
}

/// The tenants of these numbers.
pub(crate) fn tenants(numbers: Range<usize>) -> Vec<LeaseKey> {
    numbers.map(tenant).collect()
}

/// A tenant's path.
pub(crate) fn path(tenant: &LeaseKey) -> String {
    format!("/v1/orgs/{}/tenants/{}", tenant.org(), tenant.tenant())
}

/// A client that keeps no connection between requests, as the load balancer of `integration/compose` does towards the replicas: so it
/// chooses none that is about to be closed.
pub(crate) fn http() -> Client {
    Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

/// The request, which lets the fleet wait for `patience`.
pub(crate) fn patient(request: RequestBuilder, patience: Duration) -> RequestBuilder {
    request
        .header("leasehold-timeout", format!("{}ms", patience.as_millis()))
        .timeout(patience + ANSWERED_WITHIN)
}

/// What is said of an answer that is no success.
pub(crate) async fn problem(response: Response) -> (String, bool) {
    let status = response.status();
    let text = response.text().await.unwrap_or_default();
    let problem: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let executed_not = problem["executed"] == "no";
    match problem["code"].as_str() {
        Some(code) => (format!("{} {code}", status.as_u16()), executed_not),
        None => (format!("{status}: {text}"), executed_not),
    }
}
