//! How a replica goes.

use std::{sync::Arc, time::Duration};

use leasehold_lease::{Acquisition, LeaseStore};
use leasehold_server::{Edges, ServeError, Shutdown, Stores};
use leasehold_testkit::{FaultyLeases, LeaseOp};
use leasehold_types::LeaseKey;
use reqwest::Method;
use serde_json::json;

use crate::served::{Served, config_in, eventually, path_of, soon};

const TENANT: &str = "acme/user-1";

fn key(text: &str) -> LeaseKey {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_graceful_end_hands_everything_off() {
    let dir = tempfile::tempdir().unwrap();
    let one = Served::start(config_in(dir.path())).await;
    for tenant in ["acme/a", "acme/b", "acme/c"] {
        one.append(tenant, "a").await;
    }
    soon("the end", one.stop()).await.unwrap();
    let next = Served::start(config_in(dir.path())).await;
    for tenant in ["acme/a", "acme/b", "acme/c"] {
        assert_eq!(next.kinds(tenant).await, ["a"], "at once, without waiting a lease out");
    }
}

#[tokio::test]
async fn after_a_crash_requests_wait_the_old_lease_out() {
    let dir = tempfile::tempdir().unwrap();
    let edges = Edges::system();
    let stores = Stores::embedded(&config_in(dir.path()), &edges).unwrap();
    let (replica, tenure) = ("dev-1".parse().unwrap(), edges.entropy.tenure_id());
    let granted = stores.leases.acquire(&key(TENANT), &replica, tenure, Duration::from_millis(500)).await;
    assert!(matches!(granted, Ok(Acquisition::Granted(_))));
    let one = Served::start_on(config_in(dir.path()), stores).await;
    assert_eq!(soon("the append", one.append(TENANT, "a")).await, "2-1");
}

#[tokio::test]
async fn a_stuck_tenant_is_named_and_the_others_are_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    config.drain_timeout = Duration::from_millis(100);
    config.grace_period = Duration::from_secs(1);
    let one = Served::start(config).await;
    one.append("acme/stuck", "a").await;
    one.append("acme/free", "a").await;
    let stuck = one.router.handle_of(&key("acme/stuck")).unwrap();
    let work = tokio::spawn(stuck.run_async(|_| std::future::pending::<()>()));
    let error = soon("the end", one.stop()).await.unwrap_err();
    work.abort();
    let ServeError::NotFlushed(report) = error else { panic!("{error}") };
    assert_eq!(report.not_flushed, [key("acme/stuck")]);
    assert!(!report.abandoned && report.to_string().contains("acme/stuck"), "{report}");
    let next = Served::start(config_in(dir.path())).await;
    assert_eq!(next.kinds("acme/free").await, ["a"]);
}

#[tokio::test]
async fn a_second_message_abandons() {
    let one = Served::alone().await;
    one.append("acme/stuck", "a").await;
    let stuck = one.router.handle_of(&key("acme/stuck")).unwrap();
    let work = tokio::spawn(stuck.run_async(|_| std::future::pending::<()>()));
    one.tell(Shutdown::Graceful).await;
    eventually("unready", async || one.get("/readyz").await.status == 503).await;
    one.tell(Shutdown::Abandon).await;
    let error = soon("the end", one.ended()).await.unwrap_err();
    work.abort();
    let ServeError::NotFlushed(report) = error else { panic!("{error}") };
    assert!(report.abandoned && report.not_flushed == [key("acme/stuck")], "{report}");
}

#[tokio::test]
async fn an_end_does_not_wait_for_streams_and_idle_connections() {
    let one = Served::alone().await;
    one.append(TENANT, "a").await;
    let stream = one
        .request(Method::GET, &format!("{}/events", path_of(TENANT)))
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    soon("the end", one.stop()).await.unwrap();
    let rest = soon("the stream's end", stream.text()).await.unwrap();
    assert!(rest.contains("event: moved"), "{rest}");
}

/// A replica whose first announcement is held up, as by a lease store that is slow or a process before it that is waited out.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_comes_up_answers_its_probes_and_fails_nobody() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("peers"), "the-secret-of-this-fleet").unwrap();
    let mut config = config_in(dir.path());
    config.peers.secret_file = Some(dir.path().join("peers"));
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let leases = FaultyLeases::new(Arc::clone(&stores.leases));
    let held = leases.hold(LeaseOp::Announce);
    let stores = Stores { leases: Arc::new(leases) as Arc<dyn LeaseStore>, ..stores };
    let listener = tokio::net::TcpListener::bind(config.listen_addr()).await.unwrap();
    let one = Served::begin_at(listener, config, stores).await;

    soon("its liveness", one.get("/healthz")).await.ok(200);
    assert_eq!(soon("its readiness", one.get("/readyz")).await.ok(503)["status"], "starting");
    let events = format!("{}/events", path_of(TENANT));
    let append = || one.request(Method::POST, &events).json(&json!({ "kind": "a", "actor": "ada" }));
    let impatient = append().header("Leasehold-Timeout", "10ms");
    let problem = soon("a refusal", one.send(impatient)).await.problem(503, "draining");
    assert_eq!(problem["executed"], "no");
    let of_peer = append()
        .header("Leasehold-Forwarded-By", "b")
        .header("Leasehold-Peer-Secret", "the-secret-of-this-fleet");
    soon("a refusal at once", one.send(of_peer)).await.problem(503, "draining");
    let early = tokio::spawn(append().send());
    // Nothing was done for anybody before the fleet knows of this replica.
    soon("another look", one.get("/readyz")).await.ok(503);
    assert!(one.router.handles().is_empty() && !early.is_finished());
    held.let_go();
    assert_eq!(soon("the early append", early).await.unwrap().unwrap().status(), 201);
    assert_eq!(one.kinds(TENANT).await, ["a"]);
    soon("the end", one.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_goes_is_unready_first_answers_on_and_keeps_no_connection() {
    let one = Served::alone().await;
    one.append(TENANT, "a").await;
    assert!(!one.get(&path_of(TENANT)).await.headers.contains_key("connection"));
    let handle = one.router.handle_of(&key(TENANT)).unwrap();
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_| async { held.await.ok() }));
    eventually("work is under way", async || handle.status().in_flight == 1).await;
    one.tell(Shutdown::Graceful).await;
    let leaves = async || handle.status().phase == leasehold_tenure::Phase::Draining;
    eventually("the tenant leaves", leaves).await;
    // Unready before it; and answering, until everything is away.
    assert_eq!(one.get("/readyz").await.ok(503)["status"], "draining");
    one.get("/healthz").await.ok(200);
    let status = one.get(&path_of(TENANT)).await;
    assert_eq!(status.ok(200)["phase"], "draining");
    assert_eq!(status.headers["connection"], "close", "the next request is for another replica");
    let_go.send(()).unwrap();
    work.await.unwrap().unwrap();
    soon("the end", one.ended()).await.unwrap();
}
