//! Appending and reading.

use reqwest::Method;
use serde_json::json;

use crate::served::{Served, path_of};

const TENANT: &str = "acme/user-1";

fn events() -> String {
    format!("{}/events", path_of(TENANT))
}

#[tokio::test]
async fn an_append_creates_the_tenant_and_is_read_back() {
    let served = Served::alone().await;
    let body = json!({ "kind": "note.added", "actor": "ada", "subject_id": "n-1", "payload": { "n": 1.50 } });
    let appended = served.post_json(&events(), &body).await.ok(201);
    assert_eq!(appended, json!({ "position": "1-1", "duplicate": false }));
    let page = served.get(&events()).await.ok(200);
    assert_eq!((&page["next"], &page["has_more"]), (&json!("1-1"), &json!(false)));
    let event = &page["events"][0];
    assert_eq!(event["kind"], "note.added");
    assert_eq!(event["actor"], "ada");
    assert_eq!(event["subject_id"], "n-1");
    assert_eq!(event["payload"], json!({ "n": 1.5 }));
    assert!(event["ts"].as_str().unwrap().ends_with('Z'));
    served.stop().await.unwrap();
}

#[tokio::test]
async fn an_idempotency_key_takes_effect_once() {
    let served = Served::alone().await;
    let append = async |path: &str, key: &str, text: &str| {
        let body = json!({ "kind": "note.added", "actor": "ada", "payload": { "text": text } });
        served.send(served.request(Method::POST, path).header("Idempotency-Key", key).json(&body)).await
    };
    let path = events();
    assert_eq!(append(&path, "k-1", "hello").await.ok(201)["duplicate"], false);
    assert_eq!(append(&path, "k-1", "hello").await.ok(200), json!({ "position": "1-1", "duplicate": true }));
    assert_eq!(append(&path, "\"k-1\"", "hello").await.ok(200)["duplicate"], true);
    let problem = append(&path, "k-1", "other").await.problem(422, "idempotency_mismatch");
    assert_eq!((&problem["executed"], &problem["key"]), (&json!("no"), &json!(TENANT)));
    for key in ["", "\"\"", &"k".repeat(241)] {
        append(&path, key, "hello").await.problem(400, "invalid_argument");
    }
    let body = json!({ "kind": "a", "actor": "ada", "idem_key": "own" });
    let request = served.request(Method::POST, &path).header("Idempotency-Key", "k-2").json(&body);
    served.send(request).await.problem(400, "invalid_argument");
}

#[tokio::test]
async fn a_batch_is_appended_whole_or_not_at_all() {
    let served = Served::alone().await;
    let batch = |second: &str| json!([{ "kind": "a", "actor": "ada" }, { "kind": second, "actor": "ada" }]);
    let append = async |second: &str| {
        let request = served.request(Method::POST, &events()).header("Idempotency-Key", "k");
        served.send(request.json(&batch(second))).await
    };
    let appended = append("b").await.ok(201);
    assert_eq!(appended[1], json!({ "position": "1-2", "duplicate": false }));
    assert_eq!(append("b").await.ok(200)[0], json!({ "position": "1-1", "duplicate": true }));
    append("c").await.problem(422, "idempotency_mismatch");
    for other in
        [json!([batch("b")[0], batch("b")[1], batch("b")[0]]), json!([batch("b")[0]]), batch("b")[0].clone()]
    {
        let request = served.request(Method::POST, &events()).header("Idempotency-Key", "k").json(&other);
        served.send(request).await.problem(422, "idempotency_mismatch");
    }
    let bad = json!([{ "kind": "d", "actor": "ada" }, { "kind": "", "actor": "ada" }]);
    served.post_json(&events(), &bad).await.problem(400, "invalid_argument");
    assert_eq!(served.kinds(TENANT).await, ["a", "b"]);
}

#[tokio::test]
async fn pages_go_on_where_the_last_one_ended() {
    let served = Served::alone().await;
    for kind in ["a", "b", "a", "b", "a"] {
        served.append(TENANT, kind).await;
    }
    let first = served.get(&format!("{}?limit=2", events())).await.ok(200);
    assert_eq!((&first["next"], &first["has_more"]), (&json!("1-2"), &json!(true)));
    let rest = served.get(&format!("{}?after=1-2", events())).await.ok(200);
    assert_eq!(rest["events"].as_array().unwrap().len(), 3);
    assert_eq!(rest["has_more"], false);
    let of_kind = served.get(&format!("{}?kind=b", events())).await.ok(200);
    assert_eq!(of_kind["events"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_position_of_a_lost_tail_names_the_last_common_one() {
    let served = Served::alone_with(|config| config.snapshot.every = std::time::Duration::ZERO).await;
    served.append(TENANT, "a").await;
    served.post(&format!("{}/snapshot", path_of(TENANT))).await.ok(200);
    let lost = served.append(TENANT, "b").await;
    served.post(&format!("{}/abandon", path_of(TENANT))).await.ok(200);
    served.append(TENANT, "c").await;
    let answered = served.get(&format!("{}?after={lost}", events())).await;
    assert_eq!(answered.problem(409, "history_rewound")["last_common"], "1-1");
    assert_eq!(served.kinds(TENANT).await, ["a", "c"]);
}

#[tokio::test]
async fn reading_never_creates() {
    let served = Served::alone().await;
    let tenant = path_of(TENANT);
    for path in [tenant.clone(), events(), format!("{tenant}/export")] {
        let problem = served.get(&path).await.problem(404, "tenant_unknown");
        assert_eq!(problem["key"], TENANT);
    }
    let query = json!({ "sql": "select 1" });
    served.post_json(&format!("{tenant}/query"), &query).await.problem(404, "tenant_unknown");
    for verb in ["snapshot", "handoff", "pause"] {
        served.post(&format!("{tenant}/{verb}")).await.problem(404, "tenant_unknown");
    }
    served.delete(&tenant).await.problem(404, "tenant_unknown");
    assert_eq!(served.get("/v1/orgs/acme/tenants").await.ok(200)["tenants"], json!([]));
}
