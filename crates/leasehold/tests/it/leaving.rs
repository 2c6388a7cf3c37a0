//! How a replica goes: gracefully, with a tenant that cannot be flushed, at once, and not at all.

use std::{fs, path::Path, time::Duration};

use leasehold_testkit::{PATIENCE, eventually};
use leasehold_types::{Clock as _, SystemClock};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    ground::{Ground, over_each_pair},
    process::{Replica, leasehold},
};

over_each_pair!(
    after_a_sigterm_another_process_opens_at_once,
    ctrl_c_is_not_held_up_by_who_follows,
    a_crash_takes_the_unpublished_tail_and_salvage_has_it,
);

/// Far longer than anything here takes, even on a busy machine.
const LONG_TTL: &[(&str, &str)] = &[("LEASEHOLD_TTL", "60s")];
/// Far below that: nothing was waited out.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Puts a file where a tenant's directory is, so that nothing can be put there.
fn make_unusable(data_dir: &Path, key: &str) {
    let objects = data_dir.join("store/objects").join(key);
    fs::remove_dir_all(&objects).unwrap();
    fs::write(&objects, b"in the way").unwrap();
}

async fn after_a_sigterm_another_process_opens_at_once(ground: Ground) {
    let first = ground.start_in("a", LONG_TTL).await;
    for name in ["k-1", "k-2"] {
        first.write("acme/u", name).await;
    }
    let before = SystemClock.now();
    let ended = first.stop().await.assert(0);
    assert_eq!(ended.out, "");
    let second = ground.start("b").await;
    assert_eq!(second.names("acme/u").await, ["k-1", "k-2"]);
    let took = SystemClock.now().since(before);
    assert!(took < AT_ONCE, "{took:?}");
    second.stop().await.assert(0);
}

async fn ctrl_c_is_not_held_up_by_who_follows(ground: Ground) {
    let replica = ground.start_in("a", LONG_TTL).await;
    replica.write("acme/u", "k-1").await;
    let mut stream = replica.follow("acme/u").await;
    assert!(stream.chunk().await.unwrap().is_some());
    replica.signal(Signal::INT);
    replica.ended(AT_ONCE).await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_cannot_be_flushed_is_named_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let replica =
        Replica::start_in(dir.path(), &[("LEASEHOLD_GRACE_PERIOD", "2s"), ("LEASEHOLD_DRAIN_TIMEOUT", "1s")])
            .await;
    replica.write("acme/fine", "k-1").await;
    replica.write("acme/stuck", "k-1").await;
    make_unusable(dir.path(), "acme/stuck");
    let ended = replica.stop().await.assert(6);
    let said = ended.err.lines().last().unwrap();
    assert!(said.contains("1 tenant was not flushed: acme/stuck;"), "{said}");
    assert!(!said.contains("acme/fine"), "{said}");

    // The one that went was published; of the other one its disk has everything.
    let next = Replica::start(dir.path()).await;
    assert_eq!(next.names("acme/fine").await, ["k-1"]);
    let data_dir = dir.path().to_str().unwrap();
    let listed =
        leasehold(["salvage", "list", "acme/stuck", "--json", "--data-dir", data_dir]).await.assert(0);
    assert_eq!(listed.document()["salvages"].as_array().unwrap().len(), 1, "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_read_where_it_listens_and_what_was_not_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("LEASEHOLD_GRACE_PERIOD", "1s"), ("LEASEHOLD_DRAIN_TIMEOUT", "1s")];
    let replica = Replica::start_with(dir.path(), &environment, &["--json"]).await;
    let started: Value = serde_json::from_str(&replica.banner).unwrap();
    assert_eq!(
        (&started["replica"], &started["data_dir"]),
        (&"dev-1".into(), &dir.path().to_str().unwrap().into())
    );
    replica.write("acme/stuck", "k-1").await;
    make_unusable(dir.path(), "acme/stuck");
    let ended = replica.stop().await.assert(6);
    assert_eq!(ended.error_code(), "drain_timeout");
    assert_eq!(ended.document()["error"]["not_flushed"], json!(["acme/stuck"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_abandons() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    replica.write("acme/stuck", "k-1").await;
    make_unusable(dir.path(), "acme/stuck");
    replica.terminate();
    // It has heard the first one, and would try for a minute.
    eventually(PATIENCE, "the replica drains", async || !replica.is_ready().await).await;
    replica.terminate();
    let ended = replica.ended(Duration::from_secs(20)).await.assert(6);
    assert!(ended.err.contains("(abandoned on demand): acme/stuck"), "{ended:?}");
}

async fn a_crash_takes_the_unpublished_tail_and_salvage_has_it(ground: Ground) {
    let environment =
        [("LEASEHOLD_TTL", "1s"), ("LEASEHOLD_MARGIN", "200ms"), ("LEASEHOLD_SNAPSHOT__EVERY", "0s")];
    let replica = ground.start_in("dev-1", &environment).await;
    replica.write("acme/u", "k-1").await;
    replica.tenant(["snapshot", "acme/u"]).await.assert(0);
    replica.write("acme/u", "k-2").await;
    let data_dir = ground.data_dir("dev-1");
    let data_dir = data_dir.to_str().unwrap();
    let list = ["salvage", "list", "acme/u", "--data-dir", data_dir];
    assert!(leasehold(list).await.assert(0).out.contains("nothing of acme/u"), "it is open");
    replica.kill().await;
    assert!(leasehold(list).await.assert(0).out.contains("in-place"));
    let early = ground.dir.path().join("early.db");
    let export = ["salvage", "export", "acme/u", "--data-dir", data_dir, "--to", early.to_str().unwrap()];
    assert!(leasehold(export).await.assert(0).out.contains("up to 1-2"));

    // The lock went with the process.
    let next = ground.start_in("dev-1", &environment).await;
    // The old lease is another owner's, and runs out.
    eventually(PATIENCE, "the old lease runs out", async || {
        let answer = next.events("acme/u").await;
        assert!(answer.status == 200 || answer.code() == "lease_held", "{answer:?}");
        answer.status == 200
    })
    .await;
    assert_eq!(next.names("acme/u").await, ["k-1"]);

    let listed = leasehold(list).await.assert(0);
    assert!(listed.out.lines().count() == 2 && !listed.out.contains("in-place"), "{listed:?}");
    let tail = ground.dir.path().join("tail.db");
    let export =
        ["salvage", "export", "acme/u", "--json", "--data-dir", data_dir, "--to", tail.to_str().unwrap()];
    let exported = leasehold(export).await.assert(0).document();
    assert_eq!((&exported["position"], &exported["replica"]), (&"1-2".into(), &"dev-1".into()));
    assert_eq!(exported["bytes"], fs::metadata(&tail).unwrap().len());
    next.stop().await.assert(0);
}
