//! Disks that are full, as callers see them. Mounting one takes a privilege; without it the tests say so and check nothing.

use std::{os::unix::fs::symlink, path::Path};

use leasehold_testkit::SmallDisk;
use serde_json::{Value, json};

use crate::served::{Answered, Served, config_in, path_of};

const TENANT: &str = "acme/user-1";
const SMALL: u64 = 2 * 1024 * 1024;
const LARGE: u64 = 64 * 1024 * 1024;

/// A data directory of which one directory lies on a small disk.
fn data_dir_with_small(name: &str) -> Option<(tempfile::TempDir, SmallDisk)> {
    let disk = SmallDisk::mount(SMALL)
        .inspect_err(|reason| println!("skipped, no small disk here: {reason}"))
        .ok()?;
    let dir = tempfile::tempdir().unwrap();
    symlink(disk.path(), dir.path().join(name)).unwrap();
    Some((dir, disk))
}

async fn serve_in(dir: &Path) -> Served {
    let mut config = config_in(dir);
    config.snapshot.every = std::time::Duration::ZERO;
    Served::start(config).await
}

/// An event of about 100 kB that does not compress.
fn bulky(number: u64) -> Value {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let noise: String = (0..100_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + (state % 90) as u8)
        })
        .collect();
    json!({ "kind": format!("n-{number}"), "actor": "ada", "payload": noise })
}

async fn append(served: &Served, number: u64) -> Answered {
    served.post_json(&format!("{}/events", path_of(TENANT)), &bulky(number)).await
}

#[tokio::test]
async fn a_full_local_disk_refuses_writes_and_loses_none() {
    let Some((dir, disk)) = data_dir_with_small("nodes") else { return };
    let served = serve_in(dir.path()).await;
    let mut kept = Vec::new();
    let refused = loop {
        let number = kept.len() as u64;
        let answered = append(&served, number).await;
        if answered.status != 201 {
            break answered;
        }
        kept.push(format!("n-{number}"));
        assert!(kept.len() < 100, "2 MiB are full before that");
    };
    assert_eq!(refused.problem(507, "disk_full")["executed"], "no");
    assert_eq!(served.kinds(TENANT).await, kept);
    disk.grow(LARGE).unwrap();
    append(&served, kept.len() as u64).await.ok(201);
    kept.push(format!("n-{}", kept.len()));
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(served.kinds(TENANT).await, kept);
}

#[tokio::test]
async fn a_full_store_fails_a_handoff_and_the_tenant_stays() {
    let Some((dir, disk)) = data_dir_with_small("store") else { return };
    let served = serve_in(dir.path()).await;
    for number in 0..30 {
        append(&served, number).await.ok(201);
    }
    served.post(&format!("{}/handoff", path_of(TENANT))).await.problem(507, "disk_full");
    append(&served, 30).await.ok(201);
    disk.grow(LARGE).unwrap();
    served.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(served.kinds(TENANT).await.len(), 31);
}
