//! Two processes on one pair of backends are a fleet of two.

use crate::{
    ground::{Ground, over_each_pair},
    process::Replica,
};

over_each_pair!(
    what_another_replica_holds_is_asked_for_there,
    with_a_secret_every_replica_answers_for_every_tenant
);

#[tokio::test(flavor = "multi_thread")]
async fn in_development_a_process_takes_the_next_free_id() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (Replica::start(dir.path()).await, Replica::start(dir.path()).await);
    assert!(one.banner.contains("replica dev-1") && two.banner.contains("replica dev-2"));
    one.write("acme/u", "k-1").await;
    assert_eq!(two.append("acme/u", "k-2").await.assert(409).body["owner"], "dev-1");
}

async fn what_another_replica_holds_is_asked_for_there(ground: Ground) {
    let (one, two) = (ground.start("dev-1").await, ground.start("dev-2").await);
    one.write("acme/u", "k-1").await;

    let held = two.append("acme/u", "k-2").await.assert(409);
    assert_eq!((held.code(), &held.body["endpoint"]), ("lease_held", &one.endpoint.as_str().into()));
    assert_eq!((&held.body["owner"], &held.body["executed"]), (&"dev-1".into(), &"no".into()));

    // Only the holder knows the position.
    let status = two.tenant(["status", "acme/u"]).await.assert(0);
    assert!(status.out.contains("position") && status.out.contains("dev-1"), "{status:?}");
    assert!(status.err.contains(&format!("asking {}", one.endpoint)), "{status:?}");
    let status = two.tenant(["status", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!((&status["state"], &status["position"]), (&"open".into(), &"1-1".into()));

    let to = ground.dir.path().join("u.db");
    two.tenant(["export", "acme/u", "--to", to.to_str().unwrap()]).await.assert(0);
    two.tenant(["snapshot", "acme/u"]).await.assert(0);
    two.tenant(["handoff", "acme/u"]).await.assert(0);
    two.write("acme/u", "k-2").await;
    assert_eq!(two.names("acme/u").await, ["k-1", "k-2"]);

    // Abandoning asks the holder too, although any replica could say that it has nothing to abandon.
    let abandoned = one.tenant(["abandon", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!(abandoned["state"], "released", "{abandoned}");
    assert_eq!(one.names("acme/u").await, ["k-1"], "the tail was abandoned");
    one.stop().await.assert(0);
    two.stop().await.assert(0);
}

async fn with_a_secret_every_replica_answers_for_every_tenant(ground: Ground) {
    let secret = ground.dir.path().join("peer-secret");
    std::fs::write(&secret, "the-secret-of-this-fleet\n").unwrap();
    let environment = [("LEASEHOLD_PEERS__SECRET_FILE", secret.to_str().unwrap())];
    let one = ground.start_in("dev-1", &environment).await;
    let two = ground.start_in("dev-2", &environment).await;
    one.write("acme/u", "k-1").await;
    two.write("acme/u", "k-2").await;
    assert_eq!(two.names("acme/u").await, ["k-1", "k-2"]);
    let status = two.tenant(["status", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!((&status["owner"], &status["position"]), (&"dev-1".into(), &"1-2".into()), "one hop, no move");
    let handed = two.tenant(["handoff", "acme/u", "--to", "dev-2"]).await.assert(0);
    assert_eq!(handed.out, "acme/u is handed over: dev-2 has it open, in epoch 2\n");
    let handed = one.tenant(["handoff", "acme/u", "--to", "dev-1", "--json"]).await.assert(0).document();
    assert_eq!((&handed["owner"], &handed["epoch"]), (&"dev-1".into(), &3.into()));
    let nobody = two.tenant(["handoff", "acme/u", "--to", "dev-7", "--json"]).await;
    assert_eq!(nobody.error_code(), "replica_unavailable");
    one.stop().await.assert(0);
    two.write("acme/u", "k-3").await;
    assert_eq!(two.names("acme/u").await, ["k-1", "k-2", "k-3"]);
    two.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_is_gone_is_no_reason_to_say_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("LEASEHOLD_TTL", "60s")];
    let one = Replica::start_in(dir.path(), &environment).await;
    let two = Replica::start_in(dir.path(), &environment).await;
    one.write("acme/u", "k-1").await;
    let gone = one.endpoint.clone();
    one.kill().await;
    let status = two.tenant(["status", "acme/u"]).await.assert(0);
    assert!(status.err.contains(&format!("{gone} does not answer")), "{status:?}");
    assert!(status.out.contains("held") && status.out.contains("dev-1"), "{status:?}");
    // A verb that changes something is not done by being told so.
    let handoff = two.tenant(["handoff", "acme/u", "--json"]).await.assert(5);
    assert_eq!(handoff.error_code(), "lease_held");
    two.stop().await.assert(0);
}
