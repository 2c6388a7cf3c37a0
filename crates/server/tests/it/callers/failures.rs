//! A flood without credentials: bounded by its address, and in nobody's way.

use std::time::Duration;

use leasehold_server::{Config, Edges, Stores};
use leasehold_testkit::{CloudPair, Pair as _};
use leasehold_types::ApiToken;
use reqwest::{Method, header};

use super::known::{asking, known};
use crate::served::{Answered, Served, config_in, pause};

const LIST: &str = "/v1/orgs/acme/tenants";
/// How many failures are answered as such at once.
const AT_ONCE: u32 = 3;

fn metered(config: &mut Config) {
    asking(config);
    config.auth.open_metrics = true;
    config.limits.rate_failures_per_peer = 1;
    config.limits.rate_burst = Duration::from_secs(AT_ONCE.into());
}

async fn by(served: &Served, token: Option<&str>) -> Answered {
    let request = served.request(Method::GET, LIST);
    served
        .send(match token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        })
        .await
}

/// How many are refused for what they are, until one is told to wait.
async fn refused_first(served: &Served, token: Option<&str>) -> (u32, Answered) {
    for refused in 0..100 {
        let answered = by(served, token).await;
        if answered.status == 429 {
            return (refused, answered);
        }
        answered.problem(401, "unauthenticated");
    }
    panic!("nobody is told to wait");
}

async fn who_is_not_known_is_slowed_down_and_who_is_known_is_not(stores: Stores) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    metered(&mut config);
    let good = known(stores.tokens.as_ref(), "crm", "acme", "read").await;
    let served = Served::start_on(config, stores).await;
    let guess = ApiToken::mint(&leasehold_types::Entropy::system());

    let (refused, told) = refused_first(&served, None).await;
    assert!(refused >= AT_ONCE, "{refused}");
    let problem = told.problem(429, "rate_limited");
    assert_eq!(problem["executed"], "no");
    assert_eq!(told.headers[header::RETRY_AFTER], "1");
    assert!(!told.headers.contains_key(header::WWW_AUTHENTICATE));
    // Guesses are of the same address, wherever they go.
    by(&served, Some(guess.reveal())).await.problem(429, "rate_limited");
    served.get("/v1/nothing/here").await.problem(429, "rate_limited");
    // The service behind the same address, and the probes, notice nothing.
    for _ in 0..10 {
        by(&served, Some(good.reveal())).await.ok(200);
        assert_eq!(served.get("/healthz").await.status, 200);
    }
    assert!(served.metric("leasehold_callers_refused_total{code=\"rate_limited\"}").await >= 3);
    // What it said is true: one a second, and no burst is saved up meanwhile.
    pause(Duration::from_millis(1_100)).await;
    by(&served, None).await.problem(401, "unauthenticated");
    let (refused, _) = refused_first(&served, Some(guess.reveal())).await;
    assert!(refused < AT_ONCE, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_is_slowed_down_and_who_is_known_is_not_on_the_embedded_pair() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Stores::embedded(&config_in(dir.path()), &Edges::system()).unwrap();
    who_is_not_known_is_slowed_down_and_who_is_known_is_not(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_is_slowed_down_and_who_is_known_is_not_on_the_cloud_pair() {
    let pair = CloudPair::real_time().await;
    let stores = Stores { leases: pair.leases(), tokens: pair.tokens(), blobs: pair.blobs() };
    who_is_not_known_is_slowed_down_and_who_is_known_is_not(stores).await;
}
