//! The verbs that need no replica: snapshots in the store, salvage on the disk.

use std::{fs, path::Path};

use leasehold_ledger::verify_file;

use crate::process::{Ended, Replica, leasehold};

/// Three snapshots of one tenant in two epochs.
async fn three_snapshots(data_dir: &Path) {
    let replica = Replica::start_in(data_dir, &[("LEASEHOLD_SNAPSHOT__EVERY", "0s")]).await;
    for name in ["k-1", "k-2"] {
        replica.write("acme/u", name).await;
        replica.tenant(["snapshot", "acme/u"]).await.assert(0);
    }
    replica.tenant(["handoff", "acme/u"]).await.assert(0);
    replica.write("acme/u", "k-3").await;
    replica.stop().await.assert(0);
}

async fn offline(data_dir: &Path, arguments: &[&str]) -> Ended {
    leasehold(arguments.iter().copied().chain(["--data-dir", data_dir.to_str().unwrap()])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_listed_verified_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    three_snapshots(&data_dir).await;

    let listed = offline(&data_dir, &["snapshot", "list", "acme/u"]).await.assert(0);
    let rows: Vec<Vec<&str>> = listed.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..2], ["SNAPSHOT", "POSITION"]);
    assert_eq!(rows[1][..2], ["2.1", "2-3"]);
    assert_eq!(rows[1].last(), Some(&"there"));
    let listed = offline(&data_dir, &["snapshot", "list", "acme/u", "--json"]).await.assert(0).document();
    let names: Vec<&str> =
        listed["snapshots"].as_array().unwrap().iter().map(|s| s["snapshot"].as_str().unwrap()).collect();
    assert_eq!(names, ["2.1", "1.2", "1.1"]);

    let verified = offline(&data_dir, &["snapshot", "verify", "acme/u"]).await.assert(0);
    assert!(verified.out.starts_with("2.1  ok\n"), "{verified:?}");
    let verified = offline(&data_dir, &["snapshot", "verify", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!(verified["damaged"], 0);
    assert_eq!(verified["snapshots"][0]["state"], "ok");
    // Each of them can be had, by its name and in other ways.
    for (at, seq) in [("latest", 3), ("2.1", 3), ("2-3", 3), ("1", 3), ("1.2", 2), ("2", 2), ("1-1", 1)] {
        let to = dir.path().join(format!("{at}.db"));
        let arguments = ["snapshot", "restore", "acme/u", "--at", at, "--to", to.to_str().unwrap(), "--json"];
        let restored = offline(&data_dir, &arguments).await.assert(0).document();
        assert_eq!(verify_file(&to).unwrap().position.unwrap().seq, seq, "{at}: {restored}");
        let again = offline(&data_dir, &arguments).await.assert(2);
        assert_eq!(again.error_code(), "invalid_argument", "never overwritten");
    }
    let to = dir.path().join("early.db");
    let early =
        ["snapshot", "restore", "acme/u", "--at", "2001-01-01T00:00:00Z", "--to", to.to_str().unwrap()];
    let none = offline(&data_dir, &early).await.assert(3);
    assert!(none.err.contains("error[not_found]") && none.err.contains("2001-01-01"), "{none:?}");
    let to = dir.path().join("human.db");
    let restored = offline(&data_dir, &["snapshot", "restore", "acme/u", "--to", to.to_str().unwrap()]).await;
    assert!(restored.assert(0).out.contains("snapshot 2.1 of acme/u"));
    let left = fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0, "nothing unfinished is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn superseded_snapshots_are_swept_and_not_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start_in(dir.path(), &[("LEASEHOLD_SNAPSHOT__EVERY", "0s")]).await;
    for name in ["k-1", "k-2", "k-3", "k-4", "k-5", "k-6"] {
        replica.write("acme/u", name).await;
        replica.tenant(["snapshot", "acme/u"]).await.assert(0);
    }
    replica.stop().await.assert(0);
    let verified = offline(dir.path(), &["snapshot", "verify", "acme/u"]).await.assert(0);
    let lines: Vec<&str> = verified.out.lines().collect();
    assert_eq!((lines[0], lines.last()), ("1.6  ok", Some(&"1.1  swept")), "{verified:?}");
    let listed =
        offline(dir.path(), &["snapshot", "list", "acme/u", "--limit", "1", "--json"]).await.assert(0);
    assert_eq!(listed.document()["snapshots"].as_array().unwrap().len(), 1);
    let to = dir.path().join("u.db");
    let restore = ["snapshot", "restore", "acme/u", "--at", "1.1", "--to", to.to_str().unwrap(), "--json"];
    assert_eq!(offline(dir.path(), &restore).await.assert(3).error_code(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_no_replica_is_told_and_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    for verb in [["snapshot", "list"], ["snapshot", "verify"], ["salvage", "list"]] {
        let arguments = [verb[0], verb[1], "acme/u", "--json"];
        for data_dir in [nowhere.as_path(), dir.path()] {
            let ended = offline(data_dir, &arguments).await.assert(3);
            assert_eq!(ended.error_code(), "not_found");
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_without_snapshots_is_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    Replica::start(dir.path()).await.stop().await.assert(0);
    let listed = offline(dir.path(), &["snapshot", "list", "acme/u"]).await.assert(0);
    assert!(listed.out.contains("acme/u has no snapshot"), "{listed:?}");
    let verified = offline(dir.path(), &["snapshot", "verify", "acme/u", "--json"]).await.assert(3);
    assert_eq!(verified.error_code(), "not_found");
    let to = dir.path().join("u.db");
    offline(dir.path(), &["snapshot", "restore", "acme/u", "--to", to.to_str().unwrap()]).await.assert(3);
    assert!(!to.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn salvage_is_found_over_all_replicas() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("LEASEHOLD_SNAPSHOT__EVERY", "0s")];
    let (one, two) = (
        Replica::start_in(dir.path(), &environment).await,
        Replica::start_in(dir.path(), &environment).await,
    );
    for (replica, name) in [(&one, "k-one"), (&two, "k-two")] {
        replica.write("acme/u", name).await;
        replica.tenant(["abandon", "acme/u"]).await.assert(0);
    }
    let listed = offline(dir.path(), &["salvage", "list", "acme/u"]).await.assert(0);
    assert!(listed.out.contains("dev-1") && listed.out.contains("dev-2"), "{listed:?}");
    let listed = offline(dir.path(), &["salvage", "list", "acme/u", "--json", "--replica", "dev-2"]).await;
    let listed = listed.assert(0).document();
    let kept = listed["salvages"].as_array().unwrap();
    assert_eq!((kept.len(), &kept[0]["epoch"]), (1, &2.into()));
    let name = kept[0]["name"].as_str().unwrap();

    let to = dir.path().join("tail.db");
    let to = to.to_str().unwrap();
    let several = offline(dir.path(), &["salvage", "export", "acme/u", "--to", to]).await.assert(2);
    assert!(several.err.contains("--name") && several.err.contains(name), "{several:?}");
    let none =
        offline(dir.path(), &["salvage", "export", "acme/u", "--to", to, "--name", "x", "--json"]).await;
    assert_eq!(none.assert(3).error_code(), "not_found");
    let exported = offline(dir.path(), &["salvage", "export", "acme/u", "--to", to, "--name", name]).await;
    assert!(exported.assert(0).out.contains("of dev-2, up to 2-1"));
    assert_eq!(verify_file(Path::new(to)).unwrap().position.unwrap().epoch.get(), 2);
    let again =
        offline(dir.path(), &["salvage", "export", "acme/u", "--to", to, "--name", name, "--json"]).await;
    assert_eq!(again.assert(2).error_code(), "invalid_argument");
    let nothing = offline(dir.path(), &["salvage", "list", "acme/nobody"]).await.assert(0);
    assert!(nothing.out.contains("nothing of acme/nobody"), "{nothing:?}");
}
