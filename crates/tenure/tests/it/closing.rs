//! Closing a router: everybody is handed off, and exactly who was not is named.

use leasehold_testkit::{
    BlobOp, EmbeddedPair, Fleet, PATIENCE, by_code, insert, keys_of, tenant, touch_nothing, within,
};
use leasehold_types::ErrorCode;

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_handed_off_and_nothing_opens_any_more() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica_with("a", |options| options.close_concurrency = 3);
    let b = fleet.replica("b");
    let keys: Vec<_> = (0..10).map(|number| tenant(&format!("close-{number}"))).collect();
    for key in &keys {
        insert(&a.router.open(key).await.expect("a opens"), "k-1");
    }
    let opened: Vec<_> = a.router.handles().iter().map(|handle| handle.key().clone()).collect();
    assert_eq!(opened, keys, "handles stand in the order of their opening");

    assert_eq!(within(PATIENCE, "the close", a.router.close()).await, []);
    assert!(a.router.handles().is_empty());
    assert_eq!(by_code(a.router.open(&keys[0]).await).map(drop), Err(ErrorCode::Draining));
    for key in &keys {
        assert!(a.events.released_flushed(key));
        assert_eq!(keys_of(&b.router.open(key).await.expect("b opens")), ["k-1"]);
    }
    assert_eq!(within(PATIENCE, "a second close", a.router.close()).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_flush_failed_is_named_serves_on_and_can_be_closed_again() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let (bad, good) = (tenant("close-bad"), tenant("close-good"));
    let unflushed = a.router.open(&bad).await.expect("a opens");
    let flushed = a.router.open(&good).await.expect("a opens");
    insert(&unflushed, "k-1");
    within(PATIENCE, "a snapshot", flushed.snapshot()).await.expect("published");

    fleet.blobs().down(true);
    let failed = within(PATIENCE, "the close", a.router.close()).await;
    assert_eq!(failed, std::slice::from_ref(&bad));
    assert!(a.events.released_flushed(&good), "what needs no upload needs no store");
    assert_eq!(touch_nothing(&unflushed), Ok(()), "it serves on here");
    fleet.blobs().down(false);
    assert_eq!(within(PATIENCE, "the second close", a.router.close()).await, []);
    assert!(a.events.released_flushed(&bad));
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoning_all_waits_for_no_upload() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let (uploading, other) = (tenant("abandon-1"), tenant("abandon-2"));
    let first = a.router.open(&uploading).await.expect("a opens");
    let second = a.router.open(&other).await.expect("a opens");
    insert(&first, "k-1");
    insert(&second, "k-1");
    let held = fleet.blobs().hold_next(BlobOp::Put, |_name| true);
    let upload = first.snapshot();
    within(PATIENCE, "the upload to begin", held.reached()).await;

    within(PATIENCE, "the abandon of all", a.router.abandon_all()).await;
    assert!(a.events.released_unflushed(&uploading) && a.events.released_unflushed(&other));
    assert!(
        b.router.open(&uploading).await.is_ok() && b.router.open(&other).await.is_ok(),
        "the leases are free"
    );
    held.release();
    let late = within(PATIENCE, "the upload", upload).await;
    assert_eq!(
        by_code(late).map(drop),
        Err(ErrorCode::Fenced),
        "what comes too late is not called published"
    );
}
