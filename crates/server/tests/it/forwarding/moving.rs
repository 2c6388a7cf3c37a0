//! Tenants that move while they are asked for.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::fleet::Fleet;
use crate::{
    follow::Followed,
    served::{Served, path_of, pause, soon},
};

const TENANT: &str = "acme/user-1";

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_misses_nothing_and_sees_nothing_twice_when_its_tenant_moves() {
    follow(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_follower_misses_nothing_and_sees_nothing_twice_when_its_tenant_moves() {
    follow(Fleet::new().over_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_on_the_cloud_pair_a_follower_misses_nothing_and_sees_nothing_twice_when_its_tenant_moves() {
    follow(Fleet::cloud().await.over_tls()).await;
}

async fn follow(fleet: Fleet) {
    let (a, b, c) = (fleet.start().await, fleet.start().await, fleet.start().await);
    a.append(TENANT, "1").await;
    a.append(TENANT, "2").await;
    let mut stream = Followed::open(&b, "", None).await;
    let mut kinds = vec![stream.event().await.1, stream.event().await.1];
    a.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(c.append(TENANT, "3").await, "2-3");
    let moved = stream.next().await.unwrap();
    assert!(moved.contains(&"event: moved".to_owned()), "{moved:?}");
    assert_eq!(stream.next().await, None);

    // Through the replica that still takes the old owner for the owner, and through that one itself.
    for replica in [&b, &a] {
        let mut again = Followed::open(replica, "", Some("1-2")).await;
        assert_eq!(again.event().await, ("2-3".to_owned(), "3".to_owned()));
    }
    let mut again = Followed::open(&a, "", Some("1-2")).await;
    kinds.push(again.event().await.1);
    b.append(TENANT, "4").await;
    kinds.push(again.event().await.1);
    assert_eq!(kinds, ["1", "2", "3", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_while_a_tenant_is_flushed_elsewhere_waits_for_it() {
    let fleet = Fleet::new();
    let (owner, other) = (fleet.start().await, fleet.start().await);
    owner.append(TENANT, "a").await;
    other.kinds(TENANT).await;
    let handle = owner.router.handle_of(&TENANT.parse().unwrap()).unwrap();
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_| async { held.await.ok() }));
    crate::served::eventually("work is under way", async || handle.status().in_flight == 1).await;
    let drain = tokio::spawn(owner.request(reqwest::Method::POST, "/v1/drain").send());
    let leaves = async || handle.status().phase == leasehold_tenure::Phase::Draining;
    crate::served::eventually("the tenant leaves", leaves).await;

    let append = |replica: &Served| {
        let request = replica
            .request(reqwest::Method::POST, &format!("{}/events", path_of(TENANT)))
            .json(&json!({ "kind": "b", "actor": "ada" }));
        tokio::spawn(async move { request.send().await.unwrap().status() })
    };
    let parked = [append(&other), append(&owner)];
    pause(Duration::from_millis(300)).await;
    assert!(parked.iter().all(|append| !append.is_finished()), "they wait");
    let_go.send(()).unwrap();
    for append in parked {
        assert_eq!(soon("the parked append", append).await.unwrap(), 201);
    }
    work.await.unwrap().unwrap();
    assert_eq!(soon("the drain", drain).await.unwrap().unwrap().status(), 200);
    assert_eq!(other.kinds(TENANT).await, ["a", "b", "b"]);
    assert_eq!(owner.kinds(TENANT).await, ["a", "b", "b"], "one that leaves forwards still");
    assert_eq!(owner.metric("leasehold_tenants_open").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_handed_to_the_replica_that_is_named() {
    hand_around(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_tenant_is_handed_to_the_replica_that_is_named() {
    hand_around(Fleet::new().over_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_on_the_cloud_pair_a_tenant_is_handed_to_the_replica_that_is_named() {
    hand_around(Fleet::cloud().await.over_tls()).await;
}

async fn hand_around(fleet: Fleet) {
    let (a, b, c) = (fleet.start().await, fleet.start().await, fleet.start().await);
    a.append(TENANT, "1").await;
    let handoff = format!("{}/handoff", path_of(TENANT));
    // Asked of the owner, of the one that is to have it, and of one that is neither.
    for (asked, to, taker, epoch) in [(&a, "dev-2", &b, 2), (&c, "dev-3", &c, 3), (&b, "dev-1", &a, 4)] {
        let status = asked.post_json(&handoff, &json!({ "to": to })).await.ok(200);
        assert_eq!((&status["state"], &status["owner"]), (&json!("open"), &json!(to)), "{status}");
        assert_eq!((&status["endpoint"], &status["epoch"]), (&json!(taker.endpoint), &json!(epoch)));
    }
    for replica in [&a, &b, &c] {
        assert_eq!(
            replica.metric("leasehold_move_write_gap_seconds_count").await,
            1,
            "each of them gave it away once"
        );
        assert_eq!(replica.metric("leasehold_handoff_closed_seconds_count").await, 1);
    }
    let again = a.post_json(&handoff, &json!({ "to": "dev-1" })).await.ok(200);
    assert_eq!(again["epoch"], 4, "who has it keeps it");
    // Nobody has it: it is opened there.
    a.post(&handoff).await.ok(200);
    assert_eq!(b.post_json(&handoff, &json!({ "to": "dev-3" })).await.ok(200)["epoch"], 5);
    assert_eq!(a.metric("leasehold_move_write_gap_seconds_count").await, 1, "nobody served it before");
    assert_eq!(a.kinds(TENANT).await, ["1"]);

    b.post("/v1/drain").await.ok(200);
    for to in ["dev-2", "dev-9"] {
        let problem = a.post_json(&handoff, &json!({ "to": to })).await.problem(409, "replica_unavailable");
        assert_eq!(problem["executed"], "no", "{problem}");
    }
    a.post_json(&handoff, &json!({ "to": "../x" })).await.problem(400, "malformed_body");
    let unknown = format!("{}/handoff", path_of("acme/nobody"));
    a.post_json(&unknown, &json!({ "to": "dev-3" })).await.problem(404, "tenant_unknown");
    let status = a.get(&path_of(TENANT)).await.ok(200);
    assert_eq!((&status["owner"], &status["epoch"]), (&json!("dev-3"), &json!(5)), "refusals move nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_opens_a_tenant_again_where_it_is_handed_over_from() {
    let fleet = Fleet::new();
    let (a, b) = (fleet.start().await, fleet.start().await);
    a.append(TENANT, "first").await;
    let stop = Arc::new(AtomicBool::new(false));
    let urls = vec![a.url.clone(), b.url.clone()];
    let writer = writer(urls, TENANT.to_owned(), false, Arc::clone(&stop));
    for round in 0..6 {
        let (to, epoch) = (["dev-2", "dev-1"][round % 2], round + 2);
        let handoff = json!({ "to": to });
        let status = a.post_json(&format!("{}/handoff", path_of(TENANT)), &handoff).await.ok(200);
        assert_eq!((&status["owner"], &status["epoch"]), (&json!(to), &json!(epoch)), "one move, one epoch");
    }
    stop.store(true, Ordering::SeqCst);
    let (acknowledged, errors) = soon("the writer", writer).await.unwrap();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(all_kinds(&a, TENANT).await[1..], acknowledged[..]);
}

/// Appends one after the other to its own tenant until it is told to stop; what was acknowledged, and what was no success.
pub(super) fn writer(
    urls: Vec<String>,
    tenant: String,
    is_keyed: bool,
    stop: Arc<AtomicBool>,
) -> JoinHandle<(Vec<String>, Vec<String>)> {
    let client = Client::builder().no_proxy().build().unwrap();
    tokio::spawn(async move {
        let (mut acknowledged, mut errors) = (Vec::new(), Vec::new());
        for number in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let kind = format!("n-{number}");
            let url = format!("{}{}/events", urls[number % urls.len()], path_of(&tenant));
            let mut request = client.post(url).json(&json!({ "kind": kind, "actor": "ada" }));
            if is_keyed {
                request = request.header("Idempotency-Key", &kind);
            }
            let response = request.send().await.unwrap();
            let (status, text) = (response.status(), response.text().await.unwrap());
            if status == StatusCode::CREATED {
                acknowledged.push(kind);
            } else {
                errors.push(format!("{tenant} {kind}: {status} {text}"));
            }
        }
        (acknowledged, errors)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_go_and_come_under_load_and_no_client_sees_it() {
    roll(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_go_and_come_on_the_cloud_pair_and_no_client_sees_it() {
    roll(Fleet::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_replicas_go_and_come_under_load_and_no_client_sees_it() {
    roll(Fleet::new().over_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_replicas_go_and_come_on_the_cloud_pair_and_no_client_sees_it() {
    roll(Fleet::cloud().await.over_tls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_with_ports_of_their_own_go_and_come_under_load_and_no_client_sees_it() {
    roll(Fleet::new().apart()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_replicas_with_ports_of_their_own_go_and_come_on_the_cloud_pair_and_no_client_sees_it() {
    roll(Fleet::cloud().await.over_tls().apart()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_go_and_come_under_load_where_tenants_have_a_place_and_no_client_sees_it() {
    roll(Fleet::new().placed()).await;
}

async fn roll(fleet: Fleet) {
    let (entry, mut others) = (fleet.start().await, Vec::new());
    for _ in 0..2 {
        others.push(fleet.start().await);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let tenants: Vec<String> = (0..6).map(|number| format!("acme/user-{number}")).collect();
    // Held by each of the three, so that each handoff moves something.
    for (number, tenant) in tenants.iter().enumerate() {
        let holder = if number % 3 == 0 { &entry } else { &others[number % 3 - 1] };
        holder.put(&path_of(tenant)).await.ok(201);
    }
    let writers: Vec<_> = tenants
        .iter()
        .enumerate()
        .map(|(number, tenant)| {
            writer(vec![entry.url.clone()], tenant.clone(), number % 2 == 0, Arc::clone(&stop))
        })
        .collect();
    for _ in 0..2 {
        let gone = others.remove(0);
        soon("its drain", gone.post("/v1/drain")).await.ok(200);
        soon("its end", gone.stop()).await.unwrap();
        others.push(fleet.start().await);
        for tenant in &tenants {
            entry.post(&format!("{}/handoff", path_of(tenant))).await.ok(200);
        }
    }
    // The one that the clients know leaves the fleet, and answers for it still.
    soon("the drain", entry.post("/v1/drain")).await.ok(200);
    pause(Duration::from_millis(300)).await;
    stop.store(true, Ordering::SeqCst);
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut errors: Vec<String> = Vec::new();
    for (writer, tenant) in writers.into_iter().zip(&tenants) {
        let (acknowledged, failed) = soon("a writer", writer).await.unwrap();
        told.insert(tenant.clone(), acknowledged);
        errors.extend(failed);
    }
    assert!(errors.is_empty(), "{errors:#?}");
    for (tenant, acknowledged) in told {
        assert!(!acknowledged.is_empty());
        let kept = all_kinds(&others[0], &tenant).await;
        assert_eq!(kept, acknowledged, "{tenant}: each once, in its order");
    }
}

pub(super) async fn all_kinds(served: &Served, tenant: &str) -> Vec<String> {
    let (mut kinds, mut after) = (Vec::new(), "1-0".to_owned());
    loop {
        let page = served.get(&format!("{}/events?limit=1000&after={after}", path_of(tenant))).await.ok(200);
        let events = page["events"].as_array().unwrap();
        kinds.extend(events.iter().map(|event| event["kind"].as_str().unwrap().to_owned()));
        match &page["next"] {
            Value::String(next) if page["has_more"] == true => after.clone_from(next),
            _ => return kinds,
        }
    }
}
