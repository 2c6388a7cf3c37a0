//! Owners that do not answer, and answers that are lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::response::IntoResponse as _;
use leasehold_testkit::{Cue, Fault, FaultProxy};
use reqwest::Method;
use serde_json::{Value, json};

use super::fleet::{Fleet, Played, nobodys_address};
use crate::served::{Served, path_of, soon};

const TENANT: &str = "acme/user-1";

async fn behind_a_proxy(fleet: &Fleet) -> (Served, FaultProxy) {
    fleet
        .start_behind(|addr| async move {
            let proxy = FaultProxy::start(addr).await.unwrap();
            (format!("http://{}", proxy.addr()), proxy)
        })
        .await
}

fn event(kind: &str, idem_key: Option<&str>) -> Value {
    match idem_key {
        Some(key) => json!({ "kind": kind, "actor": "ada", "idem_key": key }),
        None => json!({ "kind": kind, "actor": "ada" }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_again_under_a_key_and_told_as_unknown_without() {
    let fleet = Fleet::new();
    let (owner, proxy) = behind_a_proxy(&fleet).await;
    let other = fleet.start().await;
    owner.append(TENANT, "first").await;
    let events = format!("{}/events", path_of(TENANT));

    // (what is sent, the header's key, whether it may be sent again)
    let one = |kind, key| event(kind, key);
    let cases: [(&str, Value, Option<&str>, bool); 5] = [
        ("header", one("header", None), Some("k-1"), true),
        ("own", one("own", Some("k-2")), None, true),
        ("batch", json!([one("batch", Some("k-3")), one("batch", Some("k-4"))]), None, true),
        ("none", one("none", None), None, false),
        ("half", json!([one("half", Some("k-5")), one("half", None)]), None, false),
    ];
    for (kind, body, key, is_keyed) in cases {
        let planned = proxy.plan(Cue::request(format!("\"{kind}\"")), Fault::LoseAnswer);
        let mut request = other.request(Method::POST, &events).json(&body);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let answered = soon("an answer", other.send(request)).await;
        assert!(planned.is_met(), "{kind}");
        if is_keyed {
            let appended = answered.ok(200);
            let first = if appended.is_array() { &appended[0] } else { &appended };
            assert_eq!(first["duplicate"], true, "{kind}: {appended}");
        } else {
            let problem = answered.problem(502, "owner_unreachable");
            assert_eq!(problem["executed"], "unknown", "{kind}");
            assert_eq!(problem["owner"], "dev-1");
            assert!(answered.headers.contains_key("retry-after"));
        }
        let there = owner.kinds(TENANT).await.into_iter().filter(|there| there == kind).count();
        assert_eq!(there, if body.is_array() { 2 } else { 1 }, "{kind}: never twice");
    }

    let planned = proxy.plan(Cue::request("select 1"), Fault::LoseAnswer);
    let read = other.post_json(&format!("{}/query", path_of(TENANT)), &json!({ "sql": "select 1" })).await;
    assert_eq!(read.ok(200)["rows"], json!([[1]]), "what reads is read again");
    assert!(planned.is_met());
    assert!(other.metric("leasehold_forwarded_requests_total{outcome=\"lost\"}").await >= 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_gone_is_waited_out_within_the_callers_time() {
    let fleet = Fleet::new();
    let replica = fleet.start().await;
    let (_reserved, gone) = nobodys_address();
    fleet.give(TENANT, "ghost", &format!("http://{gone}"), Duration::from_secs(2)).await;
    let events = format!("{}/events", path_of(TENANT));

    let impatient =
        replica.request(Method::POST, &events).header("Leasehold-Timeout", "0").json(&event("a", None));
    let problem = replica.send(impatient).await.problem(502, "owner_unreachable");
    assert_eq!((&problem["executed"], &problem["owner"]), (&json!("no"), &json!("ghost")));
    assert_eq!(replica.get(&path_of(TENANT)).await.ok(200)["state"], "held", "what is known is told");

    let patient = replica.request(Method::POST, &events).json(&event("a", None));
    assert_eq!(soon("the takeover", replica.send(patient)).await.ok(201)["position"], "2-1");
    assert!(replica.metric("leasehold_forward_retries_total").await >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_hangs_is_a_time_out_whose_outcome_is_unknown() {
    let fleet = Fleet::new();
    let replica = fleet.start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let played = Played::start(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        async {
            std::future::pending::<()>().await;
            ().into_response()
        }
    })
    .await;
    fleet.give(TENANT, "ghost", &played.endpoint, Duration::from_secs(3_600)).await;
    let events = format!("{}/events", path_of(TENANT));
    let request =
        replica.request(Method::POST, &events).header("Leasehold-Timeout", "10ms").json(&event("a", None));
    let problem = soon("the answer", replica.send(request)).await.problem(504, "timeout");
    assert_eq!(problem["executed"], "unknown");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let request = replica.request(Method::GET, &events).header("Leasehold-Timeout", "10ms");
    let problem = soon("the answer", replica.send(request)).await.problem(504, "timeout");
    assert_eq!(problem["executed"], "no", "what reads executes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_lost_answer_no_refusal_says_that_nothing_was_executed() {
    let fleet = Fleet::new();
    let replica = fleet.start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let played = Played::start(move |request| {
        let first = counting.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let _ = axum::body::to_bytes(request.into_body(), 1 << 20).await;
            assert!(!first, "the answer of the first attempt is lost");
            let body = json!({ "code": "draining", "executed": "no" }).to_string();
            (
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                [("content-type", "application/problem+json")],
                body,
            )
                .into_response()
        }
    })
    .await;
    fleet.give(TENANT, "ghost", &played.endpoint, Duration::from_secs(3_600)).await;
    let request = replica
        .request(Method::POST, &format!("{}/events", path_of(TENANT)))
        .header("Leasehold-Timeout", "5s")
        .json(&event("a", Some("k")));
    let problem = soon("the answer", replica.send(request)).await.problem(502, "owner_unreachable");
    assert_eq!(problem["executed"], "unknown");
    assert!(asked.load(Ordering::SeqCst) >= 2);
}

/// An owner that takes what it is sent and answers nothing, as a process does that is stopped: its lease runs out in its hands.
async fn outlive_a_frozen_owner(fleet: Fleet) {
    let replica = fleet.start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let played = Played::start(move |request| {
        counting.fetch_add(1, Ordering::SeqCst);
        async move {
            let _ = axum::body::to_bytes(request.into_body(), 1 << 20).await;
            std::future::pending::<()>().await;
            ().into_response()
        }
    })
    .await;
    // Each is asked of an owner of its own, and all at the same time.
    let frozen = ["keyed", "read", "unkeyed", "export", "snapshot"].map(|name| format!("acme/{name}"));
    for tenant in &frozen {
        fleet.give(tenant, "ghost", &played.endpoint, Duration::from_secs(4)).await;
    }
    let patient = |request: reqwest::RequestBuilder| request.header("Leasehold-Timeout", "60");
    let post = |tenant: &str, what: &str| {
        patient(replica.request(Method::POST, &format!("{}/{what}", path_of(tenant))))
    };
    let keyed = post(&frozen[0], "events").header("Idempotency-Key", "k-1").json(&event("a", None));
    let read = patient(replica.request(Method::GET, &format!("{}/events", path_of(&frozen[1]))));
    let unkeyed = post(&frozen[2], "events").json(&event("a", None));
    let export = patient(replica.request(Method::GET, &format!("{}/export", path_of(&frozen[3]))));
    let snapshot = post(&frozen[4], "snapshot");
    let (keyed, read, unkeyed, export, snapshot) = soon("the answers", async {
        tokio::join!(
            replica.send(keyed),
            replica.send(read),
            replica.send(unkeyed),
            replica.send(export),
            replica.send(snapshot)
        )
    })
    .await;
    assert_eq!(keyed.ok(201)["position"], "2-1", "its key makes it safe to be asked again");
    assert_eq!(read.ok(200)["events"], json!([]));
    assert_eq!(export.status, 200, "what only reads is asked again, however long it may take");
    for (what, answered) in [("append", unkeyed), ("snapshot", snapshot)] {
        let problem = answered.problem(502, "owner_unreachable");
        assert_eq!((&problem["executed"], &problem["owner"]), (&json!("unknown"), &json!("ghost")), "{what}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), frozen.len(), "it was asked once for each");
    assert_eq!(replica.kinds(&frozen[0]).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_owner_is_waited_for_until_its_lease_runs_out_and_no_longer() {
    outlive_a_frozen_owner(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_azure_a_frozen_owner_is_waited_for_until_its_lease_runs_out_and_no_longer() {
    outlive_a_frozen_owner(Fleet::cloud().await).await;
}
