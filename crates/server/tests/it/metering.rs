//! One caller's rate, one tenant's, and how much one caller has at work.

use std::{sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;
use leasehold_server::{Edges, Stores};
use leasehold_testkit::{FaultyBlobs, FaultyLeases, LeaseOp};
use reqwest::header;

use crate::served::{Served, config_in, eventually, path_of, pause, soon};

const TENANT: &str = "acme/user-1";

/// Long enough that nothing comes back while a test runs.
const SLOW: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_tenants_rate_is_its_own_and_says_when_there_is_room_again() {
    let served = Served::alone_with(|config| {
        config.limits.rate_per_tenant = 1;
        config.limits.rate_burst = Duration::from_secs(3);
    })
    .await;
    let status = async |tenant: &str| served.get(&path_of(tenant)).await;
    let mut through = 0;
    let refused = loop {
        let answered = status(TENANT).await;
        if answered.status == 429 {
            break answered;
        }
        answered.problem(404, "tenant_unknown");
        through += 1;
        assert!(through < 100);
    };
    assert!(through >= 3, "a burst is let through: {through}");
    let problem = refused.problem(429, "rate_limited");
    assert_eq!((&problem["executed"], &problem["key"]), (&"no".into(), &TENANT.into()));
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    status("acme/user-2").await.problem(404, "tenant_unknown");
    assert!(served.metric("leasehold_http_requests_refused_total{code=\"rate_limited\"}").await >= 1);
    // What it said is true.
    pause(Duration::from_secs(1)).await;
    status(TENANT).await.problem(404, "tenant_unknown");
}

#[tokio::test]
async fn a_callers_rate_counts_whatever_it_asks_but_probes() {
    let served = Served::alone_with(|config| {
        config.limits.rate_per_caller = 1;
        config.limits.rate_burst = Duration::from_secs(2);
    })
    .await;
    for path in ["/v1/replicas", "/v1/orgs/acme/tenants/user-1", "/v1/orgs/acme/tenants"] {
        eventually(path, async || {
            let answered = served.get(path).await;
            answered.status == 429 && answered.json()["code"] == "rate_limited"
        })
        .await;
    }
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        for _ in 0..10 {
            assert_eq!(served.get(path).await.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn one_caller_has_so_many_requests_at_work() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    config.limits.in_flight_per_caller_max = 2;
    config.limits.rate_burst = SLOW;
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let (blobs, leases) = (FaultyBlobs::new(stores.blobs), FaultyLeases::new(stores.leases));
    let stores = Stores {
        blobs: Arc::new(blobs) as Arc<dyn BlobStore>,
        leases: Arc::new(leases.clone()) as Arc<dyn LeaseStore>,
        tokens: stores.tokens,
    };
    let served = Arc::new(Served::start_on(config, stores).await);
    let held = leases.hold(LeaseOp::Acquire);
    let before = leases.calls(LeaseOp::Acquire);
    let creating: Vec<_> = ["acme/a", "acme/b"]
        .into_iter()
        .map(|tenant| {
            let served = Arc::clone(&served);
            tokio::spawn(async move { served.put(&path_of(tenant)).await.status })
        })
        .collect();
    soon("both are at work", leases.until_calls(LeaseOp::Acquire, before + 2)).await;
    let refused = served.put("/v1/orgs/acme/tenants/c").await;
    refused.problem(429, "overloaded");
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    assert_eq!(served.get("/healthz").await.status, 200);
    held.let_go();
    for created in creating {
        assert_eq!(soon("the answer", created).await.unwrap(), 201);
    }
    served.put("/v1/orgs/acme/tenants/c").await.ok(201);
}
