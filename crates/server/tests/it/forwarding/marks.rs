//! Who may say that a request was forwarded, and what goes along.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{http::HeaderMap, response::IntoResponse as _};
use reqwest::Method;
use serde_json::json;

use super::fleet::{Fleet, Played, SECRET};
use crate::served::path_of;

const TENANT: &str = "acme/user-1";
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_without_the_secret_is_refused_on_every_route() {
    let fleet = Fleet::new();
    let (owner, other) = (fleet.start().await, fleet.start().await);
    let alone = fleet.start_with(|config| config.peers.secret_file = None).await;
    owner.append(TENANT, "a").await;
    let events = format!("{}/events", path_of(TENANT));
    for path in [events.as_str(), "/v1/replicas", "/healthz", "/nothing"] {
        for replica in [&owner, &other, &alone] {
            for marks in [
                &[("leasehold-forwarded-by", "dev-1")][..],
                &[("leasehold-peer-secret", SECRET)],
                &[
                    ("leasehold-forwarded-by", "dev-1"),
                    ("leasehold-peer-secret", "another-secret-altogether"),
                ],
                &[
                    ("leasehold-forwarded-by", "dev-1"),
                    ("leasehold-peer-secret", SECRET),
                    ("leasehold-peer-secret", "another-secret-altogether"),
                ],
            ] {
                let request =
                    marks.iter().fold(replica.request(Method::GET, path), |request, (name, value)| {
                        request.header(*name, *value)
                    });
                let answered = replica.send(request).await;
                let problem = answered.problem(403, "peer_refused");
                assert_eq!(problem["executed"], "no");
                assert!(!problem.to_string().contains(SECRET));
            }
        }
    }
    assert!(owner.metric("leasehold_peers_refused_total").await >= 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forwarded_request_goes_no_further() {
    let fleet = Fleet::new();
    let (owner, other) = (fleet.start().await, fleet.start().await);
    owner.append(TENANT, "a").await;
    let request = other
        .request(Method::GET, &format!("{}/events", path_of(TENANT)))
        .header("leasehold-forwarded-by", "dev-9")
        .header("leasehold-peer-secret", SECRET);
    let problem = other.send(request).await.problem(409, "lease_held");
    assert_eq!((&problem["endpoint"], &problem["epoch"]), (&json!(owner.url), &json!(1)));
    for outcome in ["answered", "moved", "unreachable"] {
        let name = format!("leasehold_forwarded_requests_total{{outcome=\"{outcome}\"}}");
        assert_eq!(other.metric(&name).await, 0, "{outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_changed_without_a_request_that_fails() {
    let (old, new) = ("the-secret-of-yesterday", "the-secret-of-tomorrow");
    let steps = [
        (format!("{old}\n"), format!("{old}\n{new}\n")),
        (format!("{old}\n{new}\n"), format!("{new}\n{old}\n")),
        (format!("{new}\n{old}\n"), format!("{new}\n")),
    ];
    for (before, after) in steps {
        let fleet = Fleet::new();
        let files = [fleet.secret_file("before", &before), fleet.secret_file("after", &after)];
        let [one, two] = files.map(|file| fleet.start_with(|config| config.peers.secret_file = Some(file)));
        let (one, two) = (one.await, two.await);
        one.append("acme/of-one", "a").await;
        two.append("acme/of-two", "a").await;
        assert_eq!(two.append("acme/of-one", "b").await, "1-2");
        assert_eq!(one.append("acme/of-two", "b").await, "1-2");
    }

    let fleet = Fleet::new();
    let other = fleet.secret_file("other", "the-secret-of-another-fleet");
    let (one, two) =
        (fleet.start().await, fleet.start_with(|config| config.peers.secret_file = Some(other)).await);
    one.append(TENANT, "a").await;
    let event = json!({ "kind": "b", "actor": "ada" });
    let problem =
        two.post_json(&format!("{}/events", path_of(TENANT)), &event).await.problem(409, "lease_held");
    assert_eq!((&problem["endpoint"], &problem["executed"]), (&json!(one.url), &json!("no")));
    assert_eq!(one.kinds(TENANT).await, ["a"]);
    assert_eq!(two.metric("leasehold_forwarded_requests_total{outcome=\"refused\"}").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_from_end_to_end_goes_along_and_nothing_else() {
    let fleet = Fleet::new();
    let replica = fleet.start().await;
    let seen: Arc<Mutex<Vec<(String, HeaderMap)>>> = Arc::default();
    let noting = Arc::clone(&seen);
    let played = Played::start(move |request| {
        noting.lock().unwrap().push((request.uri().to_string(), request.headers().clone()));
        async {
            let headers = [("x-answer", "1"), ("keep-alive", "timeout=9"), ("leasehold-owner-epoch", "1")];
            (headers, "{}").into_response()
        }
    })
    .await;
    fleet.give(TENANT, "ghost", &played.endpoint, HOUR).await;
    let request = replica
        .request(Method::GET, &format!("{}/events?limit=7&kind=a%2Fb", path_of(TENANT)))
        .header("Leasehold-Timeout", "20s")
        .header("X-Request-Id", "r-1")
        .header("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("Connection", "X-Mine")
        .header("X-Mine", "1")
        .header("TE", "trailers");
    let answered = replica.send(request).await;
    assert_eq!((answered.status.as_u16(), &answered.body[..]), (200, &b"{}"[..]));
    assert_eq!(answered.headers["x-answer"], "1");
    assert_eq!(answered.headers["x-content-type-options"], "nosniff");
    assert!(!answered.headers.contains_key("keep-alive"));

    let (uri, headers) = seen.lock().unwrap().pop().unwrap();
    assert_eq!(uri, "/v1/orgs/acme/tenants/user-1/events?limit=7&kind=a%2Fb");
    assert_eq!(headers["leasehold-forwarded-by"], "dev-1");
    assert_eq!(headers["leasehold-peer-secret"], SECRET);
    assert_eq!(headers["x-request-id"], "r-1");
    assert!(headers.contains_key("traceparent"));
    assert_eq!(headers["host"], played.endpoint.trim_start_matches("http://"));
    for gone in ["x-mine", "te", "connection"] {
        assert!(!headers.contains_key(gone), "{gone}: {headers:?}");
    }
    let left: u64 =
        headers["leasehold-timeout"].to_str().unwrap().strip_suffix("ms").unwrap().parse().unwrap();
    assert!((1..20_000).contains(&left), "{left} ms of 20 s are left");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_remembered_and_corrected_by_its_answer() {
    let fleet = Fleet::new();
    let (one, two, three) = (fleet.start().await, fleet.start().await, fleet.start().await);
    one.append(TENANT, "a").await;
    for _ in 0..3 {
        assert_eq!(three.kinds(TENANT).await, ["a"]);
    }
    assert_eq!(three.metric("leasehold_owner_lookups_total{result=\"miss\"}").await, 1);
    assert!(three.metric("leasehold_owner_lookups_total{result=\"hit\"}").await >= 2);
    one.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(two.kinds(TENANT).await, ["a"]);
    assert_eq!(three.append(TENANT, "b").await, "2-2");
    assert_eq!(three.metric("leasehold_owner_lookups_total{result=\"corrected\"}").await, 1);
    assert_eq!(three.metric("leasehold_tenants_open").await, 0, "nobody was moved by it");
}
