//! A replica that goes while it waits for another one: whoever asked it is told what is known, and it goes in its time.

use std::time::{Duration, Instant};

use axum::{extract::Request, response::Response};
use leasehold_server::{Config, ServeError};
use reqwest::Method;
use serde_json::json;

use super::fleet::{Fleet, Played};
use crate::served::{eventually, path_of, soon};

const STUCK: &str = "acme/stuck";
const FREE: &str = "acme/free";
const GRACE: Duration = Duration::from_secs(4);
/// Twice the grace period; what a replica used to take beyond it was half as long again.
const GONE_WITHIN: Duration = Duration::from_secs(9);
const NEVER_ENDS: &str = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers";

fn hurried(config: &mut Config) {
    config.grace_period = GRACE;
    config.drain_timeout = GRACE;
    config.limits.statement_time_max = Duration::from_secs(300);
}

async fn a_stuck_call_is_told_and_the_replica_goes_in_time(fleet: Fleet) {
    let (one, other) = (fleet.start_with(hurried).await, fleet.start_with(hurried).await);
    one.append(STUCK, "a").await;
    one.append(FREE, "a").await;
    let stuck = one
        .request(Method::POST, &format!("{}/query", path_of(STUCK)))
        .header("leasehold-timeout", "300s")
        .json(&json!({ "sql": NEVER_ENDS }));
    let stuck = tokio::spawn(stuck.send());
    let handle = one.router.handle_of(&STUCK.parse().unwrap()).unwrap();
    eventually("it is at work", async || handle.status().in_flight == 1).await;

    let told = now();
    let ended = tokio::spawn(one.stop());
    // Abandoned here, it runs at the other one: it only reads.
    let answered = soon("an answer", stuck).await.unwrap().unwrap();
    assert_eq!(answered.status(), 503);
    let problem: serde_json::Value = answered.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["executed"]), (&json!("draining"), &json!("no")), "{problem}");
    let error = soon("the end", ended).await.unwrap().unwrap_err();
    let ServeError::NotFlushed(report) = error else { panic!("{error}") };
    assert_eq!(report.not_flushed, [STUCK.parse().unwrap()]);
    assert!(told.elapsed() < GONE_WITHIN, "it took {:?}", told.elapsed());
    assert_eq!(other.kinds(FREE).await, ["a"]);
    // What it began there ends with its gate.
    soon("the other one's end", other.router.abandon_all()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_call_is_told_and_the_replica_goes_in_time_on_the_embedded_pair() {
    a_stuck_call_is_told_and_the_replica_goes_in_time(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_call_is_told_and_the_replica_goes_in_time_on_the_cloud_pair() {
    a_stuck_call_is_told_and_the_replica_goes_in_time(Fleet::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_replica_may_have_executed_is_told_as_unknown_when_this_one_goes() {
    let fleet = Fleet::new();
    let one = fleet.start_with(hurried).await;
    let asked = std::sync::Arc::new(tokio::sync::Notify::new());
    let noting = std::sync::Arc::clone(&asked);
    let played = Played::start(move |request: Request| {
        let noting = std::sync::Arc::clone(&noting);
        async move {
            drop(axum::body::to_bytes(request.into_body(), 10_000).await);
            noting.notify_one();
            std::future::pending::<Response>().await
        }
    })
    .await;
    fleet.give("acme/there", "ghost", &played.endpoint, Duration::from_secs(3_600)).await;
    let append = one
        .request(Method::POST, &format!("{}/events", path_of("acme/there")))
        .header("leasehold-timeout", "300s")
        .json(&json!({ "kind": "a", "actor": "ada" }));
    let append = tokio::spawn(append.send());
    soon("it is asked", asked.notified()).await;
    let ended = tokio::spawn(one.stop());
    let answered = soon("an answer", append).await.unwrap().unwrap();
    assert_eq!(answered.status(), 503);
    let problem: serde_json::Value = answered.json().await.unwrap();
    assert_eq!(
        (&problem["code"], &problem["executed"]),
        (&json!("draining"), &json!("unknown")),
        "{problem}"
    );
    soon("the end", ended).await.unwrap().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "how long a real server takes is measured in real time")]
fn now() -> Instant {
    Instant::now()
}
