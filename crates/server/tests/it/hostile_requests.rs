//! Requests that nobody would send: always an answer, never a defect, and a refusal is a problem with a stable code.

use std::time::Duration;

use leasehold_types::ErrorCode;
use proptest::{
    collection::vec, prelude::*, sample::select, strategy::ValueTree as _, test_runner::TestRunner,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Served, eventually, path_of, soon};

const REQUESTS: usize = 1_500;

#[derive(Clone, Debug)]
struct Hostile {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

/// What stands where something else should: close to right, far from it, and too much of it.
fn odd() -> impl Strategy<Value = String> {
    let known = select(vec![
        "",
        "0",
        "1",
        "-1",
        "7-42",
        "0-0",
        "18446744073709551615-1",
        "18446744073709551616",
        "1e3",
        "500ms",
        "0s",
        "5",
        "9999999999m",
        "NaN",
        "null",
        "true",
        "..",
        "%00",
        "%2e%2e%2f",
        "%ff%fe",
        "%",
        "a b",
        "*",
        "\"7\"",
        "W/\"7\"",
        "é",
        "Acme",
        "acme",
        "user-1",
        "application/json",
        "text/event-stream;q=0",
        "' or 1=1 --",
        "\u{202e}x",
        "a,b",
        "{}",
        "[]",
    ])
    .prop_map(str::to_owned);
    prop_oneof![4 => known, 2 => "[ -~]{0,40}", 1 => "\\PC{0,20}", 1 => "[a-z]{300,400}"]
}

fn path() -> impl Strategy<Value = String> {
    let org = prop_oneof![6 => Just("acme".to_owned()), 1 => odd()];
    let tenant =
        prop_oneof![6 => select(vec!["user-1", "user-2", "user-3"]).prop_map(str::to_owned), 1 => odd()];
    let rest = select(vec![
        "",
        "/",
        "/events",
        "/query",
        "/execute",
        "/export",
        "/import",
        "/snapshot",
        "/handoff",
        "/abandon",
        "/pause",
        "/resume",
        "/nothing",
    ]);
    let of_tenant =
        (org, tenant, rest).prop_map(|(org, tenant, rest)| format!("/v1/orgs/{org}/tenants/{tenant}{rest}"));
    let others = select(vec![
        "/v1/orgs/acme/tenants",
        "/v1/orgs/acme/tenants:resolve",
        "/v1/replicas",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/",
        "//",
    ])
    .prop_map(str::to_owned);
    let names = select(vec!["after", "limit", "kind", "subject", "dry_run", "other"]);
    let query = vec((names, odd()), 0..3).prop_map(|pairs| {
        let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    });
    let junk = odd().prop_map(|text| format!("/{text}"));
    (prop_oneof![8 => of_tenant, 2 => others, 1 => junk], query)
        .prop_map(|(path, query)| format!("{path}{query}"))
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        odd().prop_map(Value::from),
        odd().prop_map(|text| json!({ "base64": text })),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((odd(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let sql = prop_oneof![
        3 => select(vec![
            "select 1", "select ?, ?2", "select * from events", "create table if not exists t (x)", "insert into t values (?)",
            "delete from t returning *", "select json(?)", "select zeroblob(9000000)", "select abs(-9223372036854775808)", "select 1/0",
            "drop table events", "vacuum", "select \0", "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n",
            "select load_extension(?)", "insert into t select randomblob(100000) from t, t, t",
        ]).prop_map(str::to_owned),
        1 => odd(),
    ];
    let query = (sql, vec(json_value(), 0..3))
        .prop_map(|(sql, params)| json!({ "sql": sql, "params": params }))
        .boxed();
    let execute = vec(query.clone(), 0..3).prop_map(|statements| json!({ "statements": statements }));
    let event = (odd(), odd(), json_value(), json_value()).prop_map(|(kind, actor, payload, other)| {
        json!({ "kind": kind, "actor": actor, "payload": payload, "subject_id": other })
    })
    .boxed();
    let named = (odd(), odd(), odd())
        .prop_map(|(kind, key, ts)| json!({ "kind": kind, "actor": "a", "idem_key": key, "ts": ts }));
    let good = select(vec![json!({ "kind": "k", "actor": "a" }), json!([{ "kind": "k", "actor": "a" }])]);
    let resolve =
        (odd(), odd()).prop_map(|(issuer, subject)| json!({ "issuer": issuer, "subject": subject }));
    let document = prop_oneof![
        query,
        execute,
        event.clone(),
        vec(event, 0..3).prop_map(Value::from),
        named,
        good,
        resolve,
        odd().prop_map(|to| json!({ "to": to })),
        json_value(),
    ]
    .prop_map(|document| document.to_string().into_bytes())
    .boxed();
    let cut = (document.clone(), any::<prop::sample::Index>()).prop_map(|(mut text, at)| {
        text.truncate(at.index(text.len().max(1)));
        text
    });
    let deep = Just([b"[".repeat(2_000), b"]".repeat(2_000)].concat());
    prop_oneof![6 => document, 1 => cut, 1 => vec(any::<u8>(), 0..200), 1 => deep, 2 => Just(Vec::new())]
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let method = select(vec![
        "GET", "GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "BREW",
    ]);
    let names = select(vec![
        "leasehold-timeout",
        "idempotency-key",
        "if-match",
        "last-event-id",
        "accept",
        "content-type",
        "content-encoding",
        "range",
        "expect",
        "origin",
        "authorization",
        "leasehold-forwarded-by",
        "leasehold-peer-secret",
        "x-forwarded-for",
    ]);
    let json = Just(("content-type", "application/json".to_owned()));
    let headers = vec(prop_oneof![3 => json, 2 => (names, odd())], 0..4);
    (method, path(), headers, body()).prop_map(|(method, path, headers, body)| Hostile {
        method,
        path,
        headers,
        body,
    })
}

/// Sends one; `None` where no client could.
async fn send(served: &Served, hostile: &Hostile) -> Option<()> {
    let method = Method::from_bytes(hostile.method.as_bytes()).unwrap();
    let mut request = served.request(method, &hostile.path).body(hostile.body.clone());
    let says_timeout = hostile.headers.iter().any(|(name, _)| *name == "leasehold-timeout");
    if !says_timeout {
        request = request.header("leasehold-timeout", "200ms");
    }
    for (name, value) in &hostile.headers {
        request = request.header(*name, value.as_bytes());
    }
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) if error.is_builder() => return None,
        Err(error) => panic!("no answer to {hostile:?}: {error}"),
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let kind = headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
    if status < 400 {
        // A stream of events has no end.
        if !kind.starts_with("text/event-stream") {
            response.bytes().await.unwrap();
        }
        return Some(());
    }
    assert!(status < 500 || matches!(status, 503 | 504), "{status} for {hostile:?}");
    if status >= 500 || status == 429 {
        assert!(headers.contains_key("retry-after"), "{status} for {hostile:?}");
    }
    assert_eq!(kind, "application/problem+json", "{status} for {hostile:?}");
    let body = response.bytes().await.unwrap();
    if hostile.method == "HEAD" {
        assert!(body.is_empty());
        return Some(());
    }
    let problem: Value = serde_json::from_slice(&body).unwrap();
    let code = problem["code"].as_str().unwrap();
    assert!(ErrorCode::ALL.iter().any(|known| known.as_str() == code), "{problem}");
    assert_eq!(problem["status"], status, "{problem}");
    assert!(body.len() < 16 * 1024, "{} bytes for {hostile:?}", body.len());
    Some(())
}

#[tokio::test]
async fn whatever_is_sent_is_answered_and_no_request_meets_a_defect() {
    let served = Served::alone_with(|config| {
        config.limits.statement_time_max = Duration::from_millis(100);
        config.limits.timeout_max = Duration::from_millis(500);
        config.snapshot.every = Duration::ZERO;
    })
    .await;
    served.append("acme/user-1", "a").await;
    // The same requests in every run.
    let mut runner = TestRunner::deterministic();
    let strategy = hostile();
    let mut sent = 0;
    for _ in 0..REQUESTS {
        let hostile = strategy.new_tree(&mut runner).unwrap().current();
        sent += usize::from(soon("an answer", send(&served, &hostile)).await.is_some());
    }
    assert!(sent > REQUESTS / 2, "{sent} of {REQUESTS} could be sent");
    served.post(&format!("{}/resume", path_of("acme/user-4"))).await;
    eventually("it serves as before", async || {
        served
            .post_json(&format!("{}/events", path_of("acme/user-4")), &json!({ "kind": "k", "actor": "a" }))
            .await
            .status
            == 201
    })
    .await;
}
