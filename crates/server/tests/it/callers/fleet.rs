//! Two replicas that ask their callers: a request is judged where it arrives, and its caller's credential goes no further.

use std::sync::{Arc, Mutex};

use axum::{http::HeaderMap, response::IntoResponse as _};
use reqwest::Method;
use serde_json::json;

use super::known::{asking, known};
use crate::{
    forwarding::fleet::{Fleet, Played, SECRET},
    served::{Served, eventually, path_of},
};

const TENANT: &str = "acme/user-1";

async fn by(served: &Served, method: Method, path: &str, token: &str) -> crate::served::Answered {
    let request = served.request(method, path).header("authorization", format!("Bearer {token}"));
    served.send(request.json(&json!({ "kind": "a", "actor": "ada" }))).await
}

async fn a_caller_is_judged_where_it_arrives(fleet: Fleet) {
    let token = known(fleet.stores.tokens.as_ref(), "crm", "acme", "read append").await;
    let (owner, other) = (fleet.start_with(asking).await, fleet.start_with(asking).await);
    let events = format!("{}/events", path_of(TENANT));
    by(&owner, Method::POST, &events, token.reveal()).await.ok(201);
    by(&other, Method::POST, &events, token.reveal()).await.ok(201);
    assert_eq!(owner.router.tenants() + other.router.tenants(), 1, "one of the two was forwarded");
    for replica in [&owner, &other] {
        replica.get(&events).await.problem(401, "unauthenticated");
        by(replica, Method::DELETE, &path_of(TENANT), token.reveal()).await.problem(403, "forbidden");
    }
    // Between replicas the tenant moves without anybody's token.
    let operator = known(fleet.stores.tokens.as_ref(), "ops", "*", "operate").await;
    let handoff = format!("{}/handoff", path_of(TENANT));
    eventually("the operator is known", async || {
        let request = owner.request(Method::POST, &handoff);
        let request = request.header("authorization", format!("Bearer {}", operator.reveal()));
        owner.send(request.json(&json!({ "to": "dev-2" }))).await.status == 200
    })
    .await;
    assert_eq!((owner.router.tenants(), other.router.tenants()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_judged_where_it_arrives_on_the_embedded_pair() {
    a_caller_is_judged_where_it_arrives(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_judged_where_it_arrives_on_the_cloud_pair() {
    a_caller_is_judged_where_it_arrives(Fleet::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_token_goes_no_further_and_who_it_is_does() {
    let fleet = Fleet::new();
    let token = known(fleet.stores.tokens.as_ref(), "crm", "acme", "read append").await;
    let replica = fleet.start_with(asking).await;
    let seen: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
    let noting = Arc::clone(&seen);
    let played = Played::start(move |request| {
        noting.lock().unwrap().push(request.headers().clone());
        async { ([("leasehold-owner-epoch", "1")], "{}").into_response() }
    })
    .await;
    fleet.give(TENANT, "ghost", &played.endpoint, std::time::Duration::from_secs(3_600)).await;
    let request = replica
        .request(Method::GET, &format!("{}/events", path_of(TENANT)))
        .header("authorization", format!("Bearer {}", token.reveal()))
        .header("leasehold-caller", "service root admin");
    assert_eq!(replica.send(request).await.status, 200);
    let headers = seen.lock().unwrap().pop().unwrap();
    assert!(!headers.contains_key("authorization"), "{headers:?}");
    assert_eq!(headers["leasehold-caller"], "service crm read append");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_shows_the_fleets_secret_is_believed() {
    let fleet = Fleet::new();
    let replica = fleet.start_with(asking).await;
    let path = path_of("acme/new");
    let send = async |headers: &[(&str, &str)]| {
        let request = headers.iter().fold(replica.request(Method::PUT, &path), |request, (name, value)| {
            request.header(*name, *value)
        });
        replica.send(request).await
    };
    send(&[("leasehold-caller", "service root append")]).await.problem(401, "unauthenticated");
    let mark = ("leasehold-forwarded-by", "dev-9");
    send(&[mark, ("leasehold-caller", "service root append")]).await.problem(403, "peer_refused");
    let shown = [mark, ("leasehold-peer-secret", SECRET), ("leasehold-caller", "service crm read")];
    send(&shown).await.problem(403, "forbidden");
    let garbled = [mark, ("leasehold-peer-secret", SECRET), ("leasehold-caller", "root")];
    send(&garbled).await.problem(401, "unauthenticated");
    let shown = [mark, ("leasehold-peer-secret", SECRET), ("leasehold-caller", "service crm append")];
    send(&shown).await.ok(201);
}
