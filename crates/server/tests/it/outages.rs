//! Stores that are away, and stores that hold damage.

use std::{path::Path, sync::Arc, time::Duration};

use leasehold_blob::BlobStore;
use leasehold_lease::LeaseStore;
use leasehold_server::{Config, Edges, Stores};
use leasehold_testkit::{BlobOp, FaultyBlobs, FaultyLeases};
use serde_json::json;

use crate::served::{Served, config_in, eventually, path_of, soon};

const TENANT: &str = "acme/user-1";

struct Faulty {
    served: Served,
    blobs: FaultyBlobs,
    leases: FaultyLeases,
    _dir: tempfile::TempDir,
}

async fn faulty() -> Faulty {
    faulty_with(|_| {}).await
}

async fn faulty_with(change: impl FnOnce(&mut Config)) -> Faulty {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    config.snapshot.every = Duration::ZERO;
    change(&mut config);
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let (blobs, leases) = (FaultyBlobs::new(stores.blobs), FaultyLeases::new(stores.leases));
    let stores = Stores {
        blobs: Arc::new(blobs.clone()) as Arc<dyn BlobStore>,
        leases: Arc::new(leases.clone()) as Arc<dyn LeaseStore>,
        tokens: stores.tokens,
    };
    Faulty { served: Served::start_on(config, stores).await, blobs, leases, _dir: dir }
}

#[tokio::test]
async fn a_store_that_is_away_costs_no_acknowledged_write() {
    let Faulty { served, blobs, leases, _dir } = faulty().await;
    served.append(TENANT, "a").await;
    blobs.down(true);
    let handoff = soon("the handoff", served.post(&format!("{}/handoff", path_of(TENANT)))).await;
    handoff.problem(503, "blob_store_unavailable");
    assert_eq!(served.append(TENANT, "b").await, "1-2");
    blobs.down(false);
    leases.down(true);
    let unopened = served.put("/v1/orgs/acme/tenants/other").await;
    unopened.problem(503, "lease_store_unavailable");
    assert!(unopened.headers.contains_key("retry-after"));
    assert_eq!(served.append(TENANT, "c").await, "1-3");
    leases.down(false);
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(served.kinds(TENANT).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_replica_that_the_lease_store_does_not_answer_is_not_ready_and_keeps_what_it_holds() {
    let Faulty { served, leases, .. } = &faulty_with(|config| {
        config.ttl = Duration::from_secs(2);
        config.margin = Duration::from_millis(500);
    })
    .await;
    served.append(TENANT, "a").await;
    leases.down(true);
    // Three announcements in a row were lost by then, and what it holds has lapsed.
    eventually("cut off", async || served.get("/readyz").await.json()["status"] == "cut_off").await;
    served.get("/readyz").await.ok(503);
    served.get("/healthz").await.ok(200);
    leases.down(false);
    eventually("ready again", async || served.get("/readyz").await.status == 200).await;
    eventually("it serves again", async || served.get(&path_of(TENANT)).await.json()["state"] == "open")
        .await;
    assert_eq!(served.append(TENANT, "b").await, "1-2", "in the same epoch, with what was not published");
}

#[tokio::test]
async fn who_hangs_up_does_not_stop_a_forget() {
    let Faulty { served, blobs, leases: _, _dir } = faulty().await;
    served.append(TENANT, "a").await;
    served.post(&format!("{}/snapshot", path_of(TENANT))).await.ok(200);
    let held = blobs.hold_next(BlobOp::DeletePrefix, |_| true);
    let caller = tokio::spawn(served.request(reqwest::Method::DELETE, &path_of(TENANT)).send());
    soon("the deletion", held.reached()).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    held.release();
    eventually("forgotten, with a receipt", async || {
        let seen = served.get(&path_of(TENANT)).await.json();
        seen["receipt"]["objects_deleted"].as_u64().is_some_and(|objects| objects > 0)
    })
    .await;
}

/// The only file under `dir` whose name ends so.
fn only_file(dir: &Path, end: &str) -> std::path::PathBuf {
    let mut open = vec![dir.to_owned()];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_str().unwrap().ends_with(end) {
                found.push(path);
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// A tenant with one snapshot in the store, handed off, after `harm` was done to a file of that snapshot.
async fn harmed(end: &str, harm: impl FnOnce(&Path)) -> (Served, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(config_in(dir.path())).await;
    served.append(TENANT, "a").await;
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    harm(&only_file(&dir.path().join("store"), end));
    (served, dir)
}

async fn is_damaged_and_alone(served: &Served, code: &str) {
    let events = format!("{}/events", path_of(TENANT));
    let problem = soon("the refusal", served.get(&events)).await.problem(500, code);
    assert!(problem["detail"].as_str().unwrap().contains("acme/user-1/e00000001/"), "{problem}");
    served.append("acme/user-2", "a").await;
    assert_eq!(served.kinds("acme/user-2").await, ["a"]);
    let receipt = served.delete(&path_of(TENANT)).await.ok(200);
    assert_eq!(receipt["key"], json!(TENANT), "a damaged tenant can be forgotten");
}

#[tokio::test]
async fn a_truncated_image_is_damage_of_one_tenant() {
    let (served, _dir) = harmed(".db", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    })
    .await;
    is_damaged_and_alone(&served, "damaged").await;
}

#[tokio::test]
async fn a_part_that_is_missing_is_damage_of_one_tenant() {
    let (served, _dir) = harmed(".db", |path| std::fs::remove_file(path).unwrap()).await;
    is_damaged_and_alone(&served, "damaged").await;
}

#[tokio::test]
async fn a_manifest_of_a_newer_format_is_told_apart() {
    let (served, _dir) = harmed("snap-000001.json", |path| {
        let mut manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        manifest["format"] = json!(99);
        std::fs::write(path, manifest.to_string()).unwrap();
    })
    .await;
    is_damaged_and_alone(&served, "format_too_new").await;
}
