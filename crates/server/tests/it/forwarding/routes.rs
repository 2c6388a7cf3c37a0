//! Each route, asked at the owner and at another replica.

use std::collections::BTreeSet;

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::fleet::Fleet;
use crate::served::{Answered, Served, path_of};

/// The body and headers of an operation, and its query string.
struct Ask {
    body: Option<Vec<u8>>,
    kind: &'static str,
    query: &'static str,
    into_new: bool,
}

/// What is asked of each operation about a tenant. One that is added has to be added here.
fn asks(operation: &str, exported: &[u8]) -> Vec<Ask> {
    let bare = |query| Ask { body: None, kind: "application/json", query, into_new: false };
    let with = |body: Value| Ask { body: Some(body.to_string().into_bytes()), ..bare("") };
    match operation {
        "createTenant" | "getTenant" | "exportTenant" | "snapshotTenant" | "abandonTenant"
        | "pauseTenant" | "resumeTenant" => vec![bare("")],
        "handoffTenant" => vec![bare(""), with(json!({ "to": "dev-2" })), with(json!({ "to": "dev-7" }))],
        "forgetTenant" => vec![bare("?dry_run=true"), bare("")],
        "appendEvents" => vec![
            with(json!({ "kind": "x", "actor": "ada" })),
            with(json!([{ "kind": "x", "actor": "ada", "idem_key": "k" }])),
            with(json!({ "kind": 1 })),
        ],
        "readEvents" => vec![bare("?limit=1"), bare("?after=1-1"), bare("?limit=0"), bare("?after=1-99")],
        "query" => {
            vec![with(json!({ "sql": "select kind from events" })), with(json!({ "sql": "delete from t" }))]
        }
        "execute" => vec![with(
            json!({ "statements": [{ "sql": "create table u (a)" }, { "sql": "insert into u values (1)" }] }),
        )],
        "importTenant" => vec![
            Ask { body: Some(exported.to_vec()), kind: "application/vnd.sqlite3", query: "", into_new: true },
            Ask {
                body: Some(exported.to_vec()),
                kind: "application/vnd.sqlite3",
                query: "",
                into_new: false,
            },
        ],
        other => panic!("{other} is not asked through another replica here"),
    }
}

/// The answer without what differs from one tenant, or one moment, to another.
fn comparable(answered: &Answered, tenant: &str) -> (u16, String, Value) {
    fn mask(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let differs = matches!(
                        name.as_str(),
                        "ts" | "at"
                            | "proven_for_ms"
                            | "verified_at"
                            | "recheck_at"
                            | "bytes"
                            | "bytes_deleted"
                            | "took_us"
                    );
                    if differs { *field = Value::Null } else { mask(field) }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(mask),
            _ => {}
        }
    }
    let kind = answered.headers[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    let body = if kind.contains("json") {
        let text = String::from_utf8(answered.body.clone()).unwrap().replace(tenant, "<tenant>");
        let mut body: Value = serde_json::from_str(&text).unwrap();
        mask(&mut body);
        body
    } else {
        json!({ "begins": String::from_utf8_lossy(&answered.body[..16]), "len": answered.body.len() })
    };
    (answered.status.as_u16(), kind, body)
}

async fn prepared(owner: &Served, tenant: &str, ask: &Ask) {
    let path = path_of(&format!("acme/{tenant}"));
    owner.put(&path).await.ok(201);
    if !ask.into_new {
        for kind in ["a", "b"] {
            let event = json!({ "kind": kind, "actor": "ada" });
            owner.post_json(&format!("{path}/events"), &event).await.ok(201);
        }
        let table = json!({ "statements": [{ "sql": "create table t (a)" }] });
        owner.post_json(&format!("{path}/execute"), &table).await.ok(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_route_answers_through_another_replica_what_its_owner_answers() {
    let fleet = Fleet::new();
    let (owner, other) = (fleet.start().await, fleet.start().await);
    owner.append("acme/source", "a").await;
    let exported = owner.get("/v1/orgs/acme/tenants/source/export").await.body;

    let document: Value = serde_json::from_str(&leasehold_server::openapi_json()).unwrap();
    let mut asked = BTreeSet::new();
    for (route, item) in document["paths"].as_object().unwrap() {
        if !route.contains("{tenant}") {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            asked.insert(id.to_owned());
            for (number, ask) in asks(id, &exported).into_iter().enumerate() {
                let mut answers = Vec::new();
                for (through, replica) in [("at", &owner), ("by", &other)] {
                    let tenant = format!("{through}-{number}-{}", id.to_ascii_lowercase());
                    prepared(&owner, &tenant, &ask).await;
                    let path = route.replace("{org}", "acme").replace("{tenant}", &tenant);
                    let method: Method = method.to_ascii_uppercase().parse().unwrap();
                    let mut request = replica.request(method, &format!("{path}{}", ask.query));
                    if let Some(body) = &ask.body {
                        request = request.header(header::CONTENT_TYPE, ask.kind).body(body.clone());
                    }
                    let answered = replica.send(request).await;
                    assert!(!answered.headers.contains_key("leasehold-owner-epoch"), "{id}");
                    answers.push(comparable(&answered, &tenant));
                }
                assert_eq!(answers[0], answers[1], "{id} {number}");
            }
        }
    }
    assert!(asked.len() >= 14, "{asked:?}");
    assert!(other.metric("leasehold_forwarded_requests_total{outcome=\"answered\"}").await >= 14);
    assert_eq!(owner.metric("leasehold_forwarded_requests_total{outcome=\"answered\"}").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_body_has_none_and_a_head_is_a_head() {
    let fleet = Fleet::new();
    let (owner, other) = (fleet.start().await, fleet.start().await);
    owner.append("acme/user-1", "a").await;
    let path = format!("{}/events", path_of("acme/user-1"));
    let head = other.send(other.request(Method::HEAD, &path)).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    let refused = other.send(other.request(Method::POST, &path)).await;
    refused.problem(400, "malformed_body");
    other.get(&format!("{}/nothing", path_of("acme/user-1"))).await.problem(404, "not_found");
    let wrong = other.request(Method::GET, &path).header("Leasehold-Timeout", "soon");
    other.send(wrong).await.problem(400, "invalid_argument");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_the_owner_is_named() {
    let fleet = Fleet::new();
    let owner = fleet.start().await;
    let other = fleet.start_with(|config| config.peers.secret_file = None).await;
    owner.append("acme/user-1", "a").await;
    let path = format!("{}/events", path_of("acme/user-1"));
    assert_eq!(other.get(&path).await.problem(409, "lease_held")["endpoint"], owner.url);
    other.append("acme/user-2", "a").await;
    let path = format!("{}/events", path_of("acme/user-2"));
    assert_eq!(
        owner.get(&path).await.problem(409, "lease_held")["endpoint"],
        other.url,
        "it accepts no mark"
    );
}
