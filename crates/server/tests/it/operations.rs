//! Creating, looking, forgetting, and what operators do.

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::served::{Served, path_of, soon};

const TENANT: &str = "acme/user-1";

#[tokio::test]
async fn a_tenant_is_created_once_and_shows_how_it_stands() {
    let served = Served::alone().await;
    let tenant = path_of(TENANT);
    let created = served.put(&tenant).await.ok(201);
    assert_eq!(created["state"], "open");
    assert_eq!((&created["epoch"], &created["floor"]), (&json!(1), &json!(0)));
    served.put(&tenant).await.ok(200);
    served.append(TENANT, "a").await;
    let status = served.get(&tenant).await.ok(200);
    assert_eq!(status["key"], TENANT);
    assert_eq!((&status["owner"], &status["endpoint"]), (&json!("dev-1"), &json!(served.url)));
    assert_eq!((&status["phase"], &status["position"]), (&json!("serving"), &json!("1-1")));
    assert!(status["unflushed_bytes"].as_u64().unwrap() > 0);
    assert!(status["proven_for_ms"].as_u64().unwrap() > 0);
    let answer = served.post(&format!("{tenant}/snapshot")).await.ok(200);
    assert_eq!((&answer["published"], &answer["snapshot"]["position"]), (&json!(true), &json!("1-1")));
    let again = served.post(&format!("{tenant}/snapshot")).await.ok(200);
    assert_eq!((&again["published"], &again["snapshot"]["number"]), (&json!(false), &json!(1)));
    assert_eq!(served.get(&tenant).await.ok(200)["unflushed_bytes"], 0);
}

#[tokio::test]
async fn a_handoff_loses_nothing_and_the_next_call_opens_again() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    let released = served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!((&released["state"], &released["epoch"]), (&json!("released"), &json!(1)));
    assert_eq!(served.get(&path_of(TENANT)).await.ok(200)["state"], "released", "looking opens nothing");
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(served.kinds(TENANT).await, ["a"]);
    assert_eq!(served.append(TENANT, "b").await, "2-2");
}

#[tokio::test]
async fn an_abandon_takes_the_tail() {
    let served = Served::alone_with(|config| config.snapshot.every = std::time::Duration::ZERO).await;
    served.append(TENANT, "a").await;
    served.post(&format!("{}/snapshot", path_of(TENANT))).await.ok(200);
    served.append(TENANT, "b").await;
    served.post(&format!("{}/abandon", path_of(TENANT))).await.ok(200);
    assert_eq!(served.kinds(TENANT).await, ["a"]);
}

#[tokio::test]
async fn a_forget_answers_a_receipt_and_the_tenant_stays_gone() {
    let served = Served::alone().await;
    let tenant = path_of(TENANT);
    served.append(TENANT, "a").await;
    served.post(&format!("{tenant}/snapshot")).await.ok(200);

    let preview = served.delete(&format!("{tenant}?dry_run=true")).await.ok(200);
    assert!(preview["objects"].as_u64().unwrap() >= 3, "base, image, manifest: {preview}");
    assert_eq!((&preview["epoch"], &preview["dry_run"]), (&json!(1), &json!(true)));
    assert_eq!(served.kinds(TENANT).await, ["a"]);

    let other = served.request(Method::DELETE, &tenant).header(header::IF_MATCH, "2");
    assert_eq!(served.send(other).await.problem(412, "precondition_failed")["epoch"], 1);

    let this = served.request(Method::DELETE, &tenant).header(header::IF_MATCH, "\"1\"");
    let receipt = served.send(this).await.ok(200);
    assert_eq!((&receipt["key"], &receipt["floor"]), (&json!(TENANT), &json!(1)));
    assert!(receipt["objects_deleted"].as_u64().unwrap() >= 3, "{receipt}");
    assert_eq!(served.delete(&tenant).await.ok(200), receipt, "a repeated forget answers the same receipt");

    let event = json!({ "kind": "b", "actor": "ada" });
    let gone: [(Method, String, Option<Value>); 6] = [
        (Method::GET, tenant.clone(), None),
        (Method::GET, format!("{tenant}/events"), None),
        (Method::POST, format!("{tenant}/events"), Some(event)),
        (Method::POST, format!("{tenant}/handoff"), None),
        (Method::GET, format!("{tenant}/export"), None),
        (Method::POST, format!("{tenant}/execute"), Some(json!({ "statements": [{ "sql": "select 1" }] }))),
    ];
    for (method, path, body) in gone {
        let mut request = served.request(method, &path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let problem = served.send(request).await.problem(410, "tenant_forgotten");
        assert_eq!(problem["receipt"], receipt, "{path}");
    }
    let listed = served.get("/v1/orgs/acme/tenants").await.ok(200);
    assert_eq!(listed["tenants"][0]["state"], "forgotten");

    served.put(&tenant).await.ok(201);
    assert!(served.kinds(TENANT).await.is_empty());
}

#[tokio::test]
async fn a_paused_tenant_stays_closed_until_it_is_resumed() {
    let served = Served::alone().await;
    let tenant = path_of(TENANT);
    served.append(TENANT, "a").await;
    let paused = served.post(&format!("{tenant}/pause")).await.ok(200);
    assert_eq!((&paused["state"], &paused["paused"]), (&json!("released"), &json!(true)));
    let refused = served.get(&format!("{tenant}/events")).await;
    refused.problem(503, "paused");
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    served.put(&tenant).await.problem(503, "paused");
    assert_eq!(served.get(&tenant).await.ok(200)["paused"], true);
    served.append("acme/user-2", "a").await;
    assert_eq!(served.post(&format!("{tenant}/resume")).await.ok(200)["paused"], false);
    assert_eq!(served.kinds(TENANT).await, ["a"]);
}

#[tokio::test]
async fn tenants_are_listed_page_by_page_and_derived_by_key() {
    let served = Served::alone().await;
    for tenant in ["a", "b", "c"] {
        served.put(&format!("/v1/orgs/acme/tenants/{tenant}")).await.ok(201);
    }
    served.put("/v1/orgs/other/tenants/d").await.ok(201);
    let first = served.get("/v1/orgs/acme/tenants?limit=2").await.ok(200);
    assert_eq!((&first["next"], &first["has_more"]), (&json!("b"), &json!(true)));
    let rest = served.get("/v1/orgs/acme/tenants?limit=2&after=b").await.ok(200);
    assert_eq!((&rest["tenants"][0]["key"], &rest["has_more"]), (&json!("acme/c"), &json!(false)));
    let who = json!({ "issuer": "https://idp.example", "subject": "user-1" });
    let resolve = async || served.post_json("/v1/orgs/acme/tenants:resolve", &who).await.ok(200);
    let resolved = resolve().await;
    assert_eq!(resolved["tenant"].as_str().unwrap().len(), 64);
    assert_eq!(resolved["key"], format!("acme/{}", resolved["tenant"].as_str().unwrap()));
    assert_eq!(resolve().await, resolved);
}

#[tokio::test]
async fn requests_wait_while_their_tenant_moves() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    let key = TENANT.parse().unwrap();
    let handle = served.router.handle_of(&key).unwrap();
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_| async { held.await.ok() }));
    let moving = handle.handoff();

    let events = format!("{}/events", path_of(TENANT));
    let impatient = served.request(Method::GET, &events).header("Leasehold-Timeout", "0");
    let refused = served.send(impatient).await;
    assert_eq!(refused.problem(503, "draining")["executed"], "no");
    assert!(refused.headers.contains_key(header::RETRY_AFTER));

    let append = tokio::spawn({
        let request = served.request(Method::POST, &events).json(&json!({ "kind": "b", "actor": "ada" }));
        async move { request.send().await.unwrap().status() }
    });
    assert!(!append.is_finished());
    let_go.send(()).unwrap();
    soon("the handoff", moving).await.unwrap();
    work.await.unwrap().unwrap();
    assert_eq!(soon("the parked append", append).await.unwrap(), 201);
    assert_eq!(served.kinds(TENANT).await, ["a", "b"]);
    assert_eq!(served.get(&path_of(TENANT)).await.ok(200)["epoch"], 2);
}

#[tokio::test]
async fn too_much_at_once_is_429_for_that_tenant_alone() {
    let served = Served::alone_with(|config| config.limits.in_flight_per_tenant_max = 1).await;
    served.append(TENANT, "a").await;
    let handle = served.router.handle_of(&TENANT.parse().unwrap()).unwrap();
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_| async { held.await.ok() }));
    let moving = handle.handoff();
    let parked = tokio::spawn(served.request(Method::GET, &format!("{}/events", path_of(TENANT))).send());
    crate::served::eventually("the request is parked", async || {
        let metrics = served.get("/metrics").await;
        String::from_utf8(metrics.body).unwrap().contains("leasehold_http_requests_in_flight 1\n")
    })
    .await;
    let refused = served.get(&path_of(TENANT)).await;
    refused.problem(429, "overloaded");
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    served.append("acme/user-2", "a").await;
    let_go.send(()).unwrap();
    soon("the handoff", moving).await.unwrap();
    work.await.unwrap().unwrap();
    assert_eq!(soon("the parked read", parked).await.unwrap().unwrap().status(), 200);
}
