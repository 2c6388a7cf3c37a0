//! Closing a router: everybody is handed off, and exactly who was not is named.

use leasehold_tenure::TenureError;
use leasehold_testkit::{
    BlobOp, EmbeddedPair, Fleet, PATIENCE, by_code, eventually, insert, keys_of, tenant, touch_nothing,
    within,
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
async fn who_would_only_wait_for_another_ones_upload_serves_meanwhile() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica_with("a", |options| options.uploads_max = 1);
    let mut handles = Vec::new();
    for number in 0..3 {
        let handle = a.router.open(&tenant(&format!("turn-{number}"))).await.expect("a opens");
        insert(&handle, "k-1");
        handles.push(handle);
    }
    let held = fleet.blobs().hold_next(BlobOp::Put, |_name| true);
    let router = a.router.clone();
    let closing = tokio::spawn(async move { router.close().await });
    within(PATIENCE, "the first upload", held.reached()).await;
    assert!(touch_nothing(&handles[0]).is_err(), "it is closed");
    for waiting in &handles[1..] {
        insert(waiting, "k-2");
    }
    held.release();
    assert_eq!(within(PATIENCE, "the close", closing).await.expect("close does not panic"), []);
    let b = fleet.replica("b");
    for (handle, kept) in handles.iter().zip([&["k-1"][..], &["k-1", "k-2"], &["k-1", "k-2"]]) {
        assert_eq!(keys_of(&b.router.open(handle.key()).await.expect("b opens")), kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_its_own_work_holds_nobody_up() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica_with("a", |options| options.uploads_max = 1);
    let (stuck_key, other_key) = (tenant("turn-stuck"), tenant("turn-other"));
    let stuck = a.router.open(&stuck_key).await.expect("a opens");
    let other = a.router.open(&other_key).await.expect("a opens");
    insert(&other, "k-1");
    let (end, ends) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(stuck.run_async(|_ledger| async move {
        let _ = ends.await;
        Ok::<_, TenureError>(())
    }));
    let router = a.router.clone();
    let closing = tokio::spawn(async move { router.close().await });
    // Its turn passes after a moment.
    let events = &a.events;
    eventually(PATIENCE, "the other one is handed off", async || events.released_flushed(&other_key)).await;
    let _ = end.send(());
    within(PATIENCE, "the work", work)
        .await
        .expect("no panic")
        .expect("it was let end")
        .expect("it ended well");
    assert_eq!(within(PATIENCE, "the close", closing).await.expect("close does not panic"), []);
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
