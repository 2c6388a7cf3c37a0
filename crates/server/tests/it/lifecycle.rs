//! How a replica goes.

use std::time::Duration;

use leasehold_lease::Acquisition;
use leasehold_server::{Edges, ServeError, Shutdown, Stores};
use leasehold_types::LeaseKey;

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
        .request(reqwest::Method::GET, &format!("{}/events", path_of(TENANT)))
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    soon("the end", one.stop()).await.unwrap();
    let rest = soon("the stream's end", stream.text()).await.unwrap();
    assert!(rest.contains("event: moved"), "{rest}");
}
