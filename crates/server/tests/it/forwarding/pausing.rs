//! Tenants that an operator holds still, fleet-wide.

use reqwest::header;
use serde_json::{Value, json};

use super::fleet::Fleet;
use crate::served::{Served, path_of};

const TENANT: &str = "acme/user-1";

async fn status(replica: &Served) -> (Value, Value) {
    let status = replica.get(&path_of(TENANT)).await.ok(200);
    (status["state"].clone(), status["paused"].clone())
}

async fn refuses(replica: &Served) {
    let tenant = path_of(TENANT);
    let append = json!({ "kind": "late", "actor": "ada" });
    for refused in [
        replica.put(&tenant).await,
        replica.get(&format!("{tenant}/events")).await,
        replica.post_json(&format!("{tenant}/events"), &append).await,
        replica.post_json(&format!("{tenant}/query"), &json!({ "sql": "SELECT 1" })).await,
    ] {
        assert_eq!(refused.problem(503, "paused")["executed"], "no");
        assert!(refused.headers.contains_key(header::RETRY_AFTER));
    }
    assert_eq!(status(replica).await, (json!("released"), json!(true)));
}

async fn hold_still(fleet: Fleet) {
    let (a, b, c) = (fleet.start().await, fleet.start().await, fleet.start().await);
    let tenant = path_of(TENANT);
    b.post(&format!("{tenant}/pause")).await.problem(404, "tenant_unknown");
    a.append(TENANT, "1").await;
    // Asked of one that does not hold it, and twice.
    for _ in 0..2 {
        let paused = b.post(&format!("{tenant}/pause")).await.ok(200);
        assert_eq!((&paused["state"], &paused["paused"]), (&json!("released"), &json!(true)));
    }
    for replica in [&a, &b, &c] {
        refuses(replica).await;
    }
    // Whoever goes and comes, it is held still.
    for replica in [a, b] {
        replica.stop().await.unwrap();
    }
    let d = fleet.start().await;
    refuses(&d).await;
    assert_eq!(c.post(&format!("{tenant}/resume")).await.ok(200)["paused"], false);
    assert_eq!(d.kinds(TENANT).await, ["1"]);
    assert_eq!(status(&c).await, (json!("open"), json!(false)));

    // A forget is not held up, and what begins anew is not paused.
    c.post(&format!("{tenant}/pause")).await.ok(200);
    d.delete(&tenant).await.ok(200);
    c.post(&format!("{tenant}/pause")).await.problem(410, "tenant_forgotten");
    c.put(&tenant).await.ok(201);
    assert!(d.kinds(TENANT).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_tenant_is_opened_by_no_replica_until_it_is_resumed() {
    hold_still(Fleet::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_azure_a_paused_tenant_is_opened_by_no_replica_until_it_is_resumed() {
    hold_still(Fleet::cloud().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_cannot_be_handed_off_serves_on_and_is_not_paused() {
    let fleet = Fleet::new();
    let owner = fleet.start_with(|config| config.drain_timeout = std::time::Duration::from_millis(50)).await;
    owner.append(TENANT, "1").await;
    let handle = owner.router.handle_of(&TENANT.parse().unwrap()).unwrap();
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_| async { held.await.ok() }));
    crate::served::eventually("work is under way", async || handle.status().in_flight == 1).await;
    owner.post(&format!("{}/pause", path_of(TENANT))).await.problem(503, "drain_timeout");
    owner.append(TENANT, "2").await;
    let_go.send(()).unwrap();
    work.await.unwrap().unwrap();
    owner.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(owner.kinds(TENANT).await, ["1", "2"], "it is opened again");
}
