//! What bad input gets: a problem with a code that says what and where, and nothing lost.

use reqwest::{Method, header};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::served::{Served, path_of};

const TENANT: &str = "acme/user-1";

#[tokio::test]
async fn ids_that_are_none_are_refused_before_anything_is_looked_up() {
    let served = Served::alone().await;
    let long = "a".repeat(10 * 1024);
    for id in ["a%2fb", "a%5cb", "User", "a.b", "-a", "%00", "%C3%A9", "%ff", long.as_str()] {
        for path in [format!("/v1/orgs/acme/tenants/{id}"), format!("/v1/orgs/{id}/tenants/user-1")] {
            for method in [Method::GET, Method::PUT, Method::DELETE] {
                let answered = served.send(served.request(method, &path)).await;
                let problem = answered.problem(400, "invalid_argument");
                assert!(problem.to_string().len() < 1_000, "the answer does not repeat 10 kB");
            }
        }
    }
    // As they are: a client would take the dots away.
    for id in ["..", "%2e%2e", ".", "%2e%2e%2f%2e%2e"] {
        let answer = raw(&served, &format!("GET /v1/orgs/acme/tenants/{id} HTTP/1.1")).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("\"invalid_argument\""), "{answer}");
    }
    served.get("/v1/orgs/Acme/tenants").await.problem(400, "invalid_argument");
    served.get("/v1/orgs/acme/tenants?after=..").await.problem(400, "invalid_argument");
    let body = json!({ "issuer": "", "subject": "x" });
    served.post_json("/v1/orgs/acme/tenants:resolve", &body).await.problem(400, "invalid_argument");
}

/// What is answered to a request line that no client would send.
async fn raw(served: &Served, line: &str) -> String {
    let address = served.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("{line}\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn bodies_that_are_none_say_where() {
    let served = Served::alone().await;
    let events = format!("{}/events", path_of(TENANT));
    let send = async |path: &str, body: &str| {
        let request = served.request(Method::POST, path).header(header::CONTENT_TYPE, "application/json");
        served.send(request.body(body.to_owned())).await
    };
    for body in [
        "",
        "{",
        "7",
        "{\"kind\":\"a\"}",
        "{\"kind\":\"a\",\"actor\":\"ada\",\"other\":1}",
        "{\"kind\":7,\"actor\":\"ada\"}",
        "[1]",
        "{\"kind\":\"a\",\"actor\":\"ada\"} x",
        "\u{feff}{}",
    ] {
        let problem = send(&events, body).await.problem(400, "malformed_body");
        assert!(problem["detail"].as_str().unwrap().contains("line"), "{problem}");
    }
    let deep =
        format!("{{\"kind\":\"a\",\"actor\":\"ada\",\"payload\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let refused = send(&events, &deep).await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    send(&events, "[]").await.problem(400, "invalid_argument");
    for path in ["query", "execute"] {
        send(&format!("{}/{path}", path_of(TENANT)), "{\"sqll\":\"select 1\"}")
            .await
            .problem(400, "malformed_body");
    }
    let untyped = served.request(Method::POST, &events).body("{\"kind\":\"a\",\"actor\":\"ada\"}");
    let problem = served.send(untyped).await.problem(400, "malformed_body");
    assert!(problem["detail"].as_str().unwrap().contains("content-type"), "{problem}");
    served.get(&path_of(TENANT)).await.problem(404, "tenant_unknown");
}

#[tokio::test]
async fn what_is_past_a_bound_is_413() {
    let served = Served::alone_with(|config| {
        config.limits.body_bytes_max = 64 * 1024;
        config.limits.batch_events_max = 3;
    })
    .await;
    let events = format!("{}/events", path_of(TENANT));
    let of_len = |len: usize| json!({ "kind": "a", "actor": "ada", "payload": "x".repeat(len) });
    served.post_json(&events, &of_len(70 * 1024)).await.problem(413, "too_large");
    // Without a length that says so beforehand.
    let pieces = futures::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024])));
    let request = served
        .request(Method::POST, &events)
        .header(header::CONTENT_TYPE, "application/json")
        .body(reqwest::Body::wrap_stream(pieces));
    served.send(request).await.problem(413, "too_large");
    let batch: Vec<Value> = (0..4).map(|_| json!({ "kind": "a", "actor": "ada" })).collect();
    served.post_json(&events, &json!(batch)).await.problem(413, "too_large");
    served.post_json(&events, &of_len(60 * 1024)).await.ok(201);
}

#[tokio::test]
async fn headers_and_queries_that_are_none_are_refused() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    let events = format!("{}/events", path_of(TENANT));
    for query in
        ["limit=0", "limit=1001", "limit=x", "after=7", "after=0-1", "subject_id=x", "limit=1&limit=2"]
    {
        served.get(&format!("{events}?{query}")).await.problem(400, "invalid_argument");
    }
    for wait in ["soon", "1.5", "-1", ""] {
        let request = served.request(Method::GET, &events).header("Leasehold-Timeout", wait);
        served.send(request).await.problem(400, "invalid_argument");
    }
    let request = served.request(Method::DELETE, &path_of(TENANT)).header(header::IF_MATCH, "x");
    served.send(request).await.problem(400, "invalid_argument");
    served.delete(&format!("{}?dryrun=true", path_of(TENANT))).await.problem(400, "invalid_argument");
    assert_eq!(served.kinds(TENANT).await, ["a"]);
}

#[tokio::test]
async fn addresses_and_methods_that_are_none_are_told() {
    let served = Served::alone().await;
    served.get("/").await.problem(404, "not_found");
    served.get("/v1/orgs/acme/tenants/user-1/nothing").await.problem(404, "not_found");
    let answered = served.send(served.request(Method::PATCH, &path_of(TENANT))).await;
    answered.problem(405, "method_not_allowed");
    let allowed = answered.headers[header::ALLOW].to_str().unwrap();
    assert!(allowed.contains("PUT") && allowed.contains("DELETE"), "{allowed}");
}

#[tokio::test]
async fn pages_of_other_sites_are_not_answered() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    let drain = served.request(Method::POST, "/v1/drain").header(header::ORIGIN, "https://other.example");
    served.send(drain).await.problem(400, "invalid_argument");
    let rebound = served.request(Method::GET, &path_of(TENANT)).header(header::HOST, "other.example:7400");
    served.send(rebound).await.problem(400, "invalid_argument");
    assert_eq!(served.kinds(TENANT).await, ["a"]);
}
