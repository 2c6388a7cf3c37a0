//! When images are published without being asked for, and when a tenant is let go without being asked.

use std::time::Duration;

use leasehold_ledger::Json;
use leasehold_tenure::TenureEvent;
use leasehold_testkit::{
    BlobOp, EmbeddedPair, Fleet, PATIENCE, event, eventually, insert, keys_of, tenant, touch_nothing, within,
};

const TTL: Duration = Duration::from_secs(5);
const MARGIN: Duration = Duration::from_millis(500);
const NEVER: Duration = Duration::from_secs(86_400);

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tenant_is_published_at_its_cadence_and_an_unchanged_one_is_not() {
    let fleet = Fleet::<EmbeddedPair>::real_time(TTL, MARGIN).await;
    let a = fleet.replica_with("a", |options| options.snapshot_every = Duration::from_millis(100));
    let b = fleet.replica("b");
    let key = tenant("cadence");
    let handle = a.router.open(&key).await.expect("a opens");
    for (count, written) in ["k-1", "k-2"].into_iter().enumerate() {
        insert(&handle, written);
        eventually(PATIENCE, "it is published", || async {
            a.events.named("snapshot_published") == count + 1
        })
        .await;
        let position = handle.status().position;
        let published = handle.status().published.expect("a published state");
        assert_eq!(published.position, position);
    }
    assert_eq!(handle.status().unflushed_bytes, 0);

    let puts = fleet.blobs().count(BlobOp::Put);
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    assert_eq!(fleet.blobs().count(BlobOp::Put), puts, "nothing was left to upload");
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_unpublished_bytes_bring_the_next_snapshot_forward() {
    let fleet = Fleet::<EmbeddedPair>::real_time(TTL, MARGIN).await;
    let a = fleet.replica_with("a", |options| {
        options.snapshot_every = NEVER;
        options.unflushed_bytes_max = 256 << 10;
    });
    let handle = a.router.open(&tenant("bytes")).await.expect("a opens");
    insert(&handle, "small");
    for number in 0..64 {
        let mut large = event(&format!("k-{number}"));
        large.payload = Json::parse(format!("\"{}\"", "x".repeat(16 << 10))).expect("a payload");
        handle.append(vec![large]).await.expect("appended");
    }
    eventually(PATIENCE, "it is published", || async { a.events.named("snapshot_published") >= 1 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_snapshot_is_tried_again_at_the_cadence() {
    let fleet = Fleet::<EmbeddedPair>::real_time(TTL, MARGIN).await;
    let a = fleet.replica_with("a", |options| options.snapshot_every = Duration::from_millis(100));
    let handle = a.router.open(&tenant("again")).await.expect("a opens");
    fleet.blobs().down(true);
    insert(&handle, "k-1");
    eventually(PATIENCE, "it fails", || async { a.events.named("snapshot_failed") >= 1 }).await;
    insert(&handle, "k-2");
    fleet.blobs().down(false);
    eventually(PATIENCE, "it is published", || async { a.events.named("snapshot_published") >= 1 }).await;
    assert_eq!(keys_of(&handle), ["k-1", "k-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_tenant_is_handed_off_and_opens_again_at_the_next_call() {
    let fleet = Fleet::<EmbeddedPair>::real_time(TTL, MARGIN).await;
    let a = fleet.replica_with("a", |options| options.idle_after = Some(Duration::from_secs(1)));
    let key = tenant("idle");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the end of an idle tenant's tenure", handle.ended()).await;
    assert!(a.events.released_flushed(&key));
    assert!(touch_nothing(&handle).is_err());
    assert!(a.router.handle_of(&key).is_none());

    let again = a.router.open(&key).await.expect("a opens again");
    assert_eq!(keys_of(&again), ["k-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_running_work_is_not_idle() {
    let fleet = Fleet::<EmbeddedPair>::real_time(TTL, MARGIN).await;
    let a = fleet.replica_with("a", |options| options.idle_after = Some(Duration::from_secs(1)));
    let key = tenant("busy");
    let handle = a.router.open(&key).await.expect("a opens");
    let (finish, held) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_ledger| held));
    leasehold_testkit::pass(Duration::from_millis(1_500)).await;
    assert_eq!(a.events.count(|event| matches!(event, TenureEvent::Released { .. })), 0);
    assert!(handle.is_open());
    finish.send(()).expect("the work waits");
    work.await.expect("no panic").expect("the work ends").expect("it was let go");
    eventually(PATIENCE, "it is handed off", || async { a.events.released_flushed(&key) }).await;
}
