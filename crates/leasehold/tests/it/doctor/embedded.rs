//! The embedded pair: a file, a directory, a disk.

use std::fs;

use leasehold_testkit::SmallDisk;

use super::patient::{Report, directory, left_in};
use crate::process::{Replica, leasehold};

async fn doctor(data_dir: &std::path::Path) -> Report {
    Report::of(leasehold(["doctor", "--json", "--data-dir", data_dir.to_str().unwrap()]).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_for_a_first_start_is_well_and_stays_as_it_was() {
    let dir = directory();
    let report = doctor(&dir.path().join("data")).await;
    report.assert_well(&[]);
    assert!(report.ended.out.contains("the first start makes it"), "{report:?}");
    assert_eq!(report.verdict("store.put_if_absent"), "ok");
    assert_eq!(left_in(dir.path()).len(), 0, "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_replicas_place_is_well_and_it_serves_on() {
    let dir = directory();
    let replica = Replica::start(dir.path()).await;
    replica.write("acme/u", "k-1").await;
    let (before, report) = (left_in(dir.path()).len(), doctor(dir.path()).await);
    report.assert_well(&[]);
    assert_eq!(report.verdict("derivation_key.bound"), "ok");
    assert_eq!(left_in(dir.path()).len(), before);
    assert!(!dir.path().join("store/_doctor").exists(), "the probes are gone, and what they lay in");
    assert_eq!(replica.names("acme/u").await, ["k-1"]);
    replica.stop().await.assert(0);
    fs::write(dir.path().join("derivation.key"), "00".repeat(32)).unwrap();
    doctor(dir.path()).await.assert_fails(&["derivation_key.bound"], "it would orphan every tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_lease_store_and_a_store_that_is_none_fail() {
    let dir = directory();
    fs::write(dir.path().join("leases.db"), "no database, whatever its name, and long enough").unwrap();
    let report = doctor(dir.path()).await;
    report.assert_fails(&["leases.file"], "move it away");
    report.assert_skips("derivation_key.bound", "leases.file failed");
    fs::remove_file(dir.path().join("leases.db")).unwrap();
    fs::create_dir(dir.path().join("store")).unwrap();
    fs::write(dir.path().join("store/objects"), b"").unwrap();
    let report = doctor(dir.path()).await;
    report.assert_fails(&["store.put_if_absent"], "local disk");
    report.assert_skips("store.", "store.put_if_absent failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_no_place_for_leases_and_images() {
    let disk = match SmallDisk::mount(128 * 1024 * 1024) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk here: {reason}"),
    };
    doctor(disk.path()).await.assert_fails(&["state_root.file_system"], "a reboot takes away every tenant");
}
