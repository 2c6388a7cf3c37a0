//! What one caller may, and what is done for one tenant, where the request is forwarded: counted once, where the client came in; and at
//! work where the tenant is.

use std::time::Duration;

use leasehold_server::Config;
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinHandle;

use super::fleet::Fleet;
use crate::served::{Served, eventually, path_of, soon};

const TENANT: &str = "acme/user-1";
const NEVER_ENDS: &str = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers";
/// Long enough that nothing comes back while a test runs.
const SLOW: Duration = Duration::from_secs(3_600);
const AT_ONCE: u32 = 8;

/// How many requests come through until one is too many.
async fn through(replica: &Served) -> u32 {
    for count in 0..100 {
        let answered = replica.get(&path_of(TENANT)).await;
        if answered.status == 429 {
            answered.problem(429, "rate_limited");
            return count;
        }
        answered.ok(200);
    }
    panic!("nothing is too many");
}

async fn a_rate_is_counted_where_the_client_came_in(fleet: Fleet) {
    let owner = fleet.start_with(|_| ()).await;
    owner.append(TENANT, "a").await;
    for is_of_tenant in [false, true] {
        // One a second, and so many at once.
        let metered = |config: &mut Config| {
            config.limits.rate_burst = Duration::from_secs(AT_ONCE.into());
            let limits = &mut config.limits;
            *(if is_of_tenant { &mut limits.rate_per_tenant } else { &mut limits.rate_per_caller }) = 1;
        };
        let (metered, other) = (fleet.start_with(metered).await, fleet.start_with(metered).await);
        // Whoever has it now, one of the two forwards to it.
        let to = |replica: &Served| json!({ "to": replica.router.options().replica.to_string() });
        let handoff = format!("{}/handoff", path_of(TENANT));
        owner.post_json(&handoff, &to(&metered)).await.ok(200);
        assert!(metered.router.handle_of(&TENANT.parse().unwrap()).is_some());
        let forwarded = through(&other).await;
        assert!((AT_ONCE..AT_ONCE + 4).contains(&forwarded), "each was counted once: {forwarded}");
        let own = through(&metered).await;
        assert!((AT_ONCE..AT_ONCE + 4).contains(&own), "none of them was counted here: {own}");
        owner.post_json(&handoff, &to(&owner)).await.ok(200);
    }
}

fn stuck(replica: &Served, tenant: &str) -> JoinHandle<reqwest::Result<reqwest::Response>> {
    let request = replica
        .request(Method::POST, &format!("{}/query", path_of(tenant)))
        .header("leasehold-timeout", "300s")
        .json(&json!({ "sql": NEVER_ENDS }));
    tokio::spawn(request.send())
}

async fn what_is_at_work_counts_for_the_caller_here_and_for_the_tenant_there(fleet: Fleet) {
    let slow = |config: &mut Config| {
        config.limits.statement_time_max = Duration::from_secs(300);
        config.limits.rate_burst = SLOW;
    };
    let owner = fleet
        .start_with(|config| {
            slow(config);
            config.limits.in_flight_per_tenant_max = 3;
            config.limits.in_flight_per_caller_max = 3;
        })
        .await;
    let other = fleet
        .start_with(|config| {
            slow(config);
            config.limits.in_flight_per_caller_max = 4;
        })
        .await;
    for tenant in [TENANT, "acme/user-2"] {
        owner.append(tenant, "a").await;
    }
    let handle = owner.router.handle_of(&TENANT.parse().unwrap()).unwrap();
    let at_work = async |count: u32| {
        eventually("they are at work", async || handle.status().in_flight == count).await;
    };
    let mut stuck_ones: Vec<_> = (0..3).map(|_| stuck(&other, TENANT)).collect();
    at_work(3).await;
    // The tenant's places are taken where it is held, whichever way one comes; the other tenant's are not, and the caller came in elsewhere.
    let query = format!("{}/query", path_of(TENANT));
    let one = json!({ "sql": "select 1" });
    for replica in [&other, &owner] {
        let refused = replica.post_json(&query, &one).await.problem(429, "overloaded");
        assert_eq!((&refused["key"], &refused["executed"]), (&json!(TENANT), &json!("no")), "{refused}");
    }
    for replica in [&other, &owner] {
        replica.post_json(&format!("{}/query", path_of("acme/user-2")), &one).await.ok(200);
    }
    // Four of the caller's are at work here, three of them there: the fifth is one too many here, and its first is welcome there.
    stuck_ones.push(stuck(&other, "acme/user-2"));
    let second = owner.router.handle_of(&"acme/user-2".parse().unwrap()).unwrap();
    eventually("the fourth is at work", async || second.status().in_flight == 1).await;
    let refused = other.get(&path_of("acme/user-2")).await.problem(429, "overloaded");
    assert!(refused["detail"].as_str().unwrap().contains("this address"), "{refused}");
    owner.get(&path_of("acme/user-2")).await.ok(200);
    for stuck in stuck_ones {
        stuck.abort();
    }
    soon("the end", owner.router.abandon_all()).await;
    soon("the other one's end", other.router.abandon_all()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_counted_where_the_client_came_in_on_the_embedded_pair() {
    a_rate_is_counted_where_the_client_came_in(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_counted_where_the_client_came_in_on_the_cloud_pair() {
    a_rate_is_counted_where_the_client_came_in(Fleet::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_at_work_counts_for_the_caller_here_and_for_the_tenant_there_on_the_embedded_pair() {
    what_is_at_work_counts_for_the_caller_here_and_for_the_tenant_there(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_at_work_counts_for_the_caller_here_and_for_the_tenant_there_on_the_cloud_pair() {
    what_is_at_work_counts_for_the_caller_here_and_for_the_tenant_there(Fleet::cloud().await).await;
}
