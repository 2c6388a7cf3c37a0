//! F: a forgotten tenant leaves nothing behind.

use std::{sync::Arc, time::Duration};

use leasehold_lease::TokioTimer;
use leasehold_testkit::{
    BlobOp, Fleet, LeaseOp, PATIENCE, Pair, by_code, insert, insert_through_view, keys_of, read_through_view,
    tenant, touch_nothing, try_insert, waits, within,
};
use leasehold_types::ErrorCode;
use tokio::sync::oneshot;

use super::is_image;

/// What the contract gives a forget, once nothing holds it up any more.
const SOON: Duration = Duration::from_secs(3);

pub(crate) async fn f1_an_upload_under_way_leaves_nothing_behind<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("f1");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let held = fleet.blobs().hold_next(BlobOp::Put, is_image);
    let uploading = handle.snapshot();
    within(PATIENCE, "the upload to begin", held.reached()).await;
    let mut forgetting = Box::pin(handle.forget());
    waits("the forget", &mut forgetting).await;
    held.release();

    let _ = within(PATIENCE, "the upload", uploading).await;
    within(PATIENCE, "the forget", forgetting).await.expect("forgotten");
    assert!(fleet.stored_of(&key).await.is_empty());
    assert!(!a.tenant_root(&key).exists());
}

pub(crate) async fn f2_a_snapshot_after_forget_began_is_refused<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("f2");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let held = fleet.leases().hold(LeaseOp::RaiseFloor);
    let forgetting = handle.forget();
    let before = fleet.blobs().count(BlobOp::Put);
    let refused = within(PATIENCE, "the snapshot", handle.snapshot()).await;
    assert_eq!(by_code(refused).map(drop), Err(ErrorCode::Draining));
    assert_eq!(fleet.blobs().count(BlobOp::Put), before, "nothing was uploaded");
    held.let_go();

    within(PATIENCE, "the forget", forgetting).await.expect("forgotten");
    assert!(fleet.stored_of(&key).await.is_empty());
}

pub(crate) async fn f3_forget_beats_the_final_flush_of_a_handoff<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("f3");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    insert(&handle, "k-2");

    let held = fleet.blobs().hold_next(BlobOp::Put, is_image);
    let handing_off = handle.handoff();
    within(PATIENCE, "the final flush to begin", held.reached()).await;
    let mut forgetting = Box::pin(handle.forget());
    waits("the forget", &mut forgetting).await;
    held.release();

    within(SOON, "the forget", forgetting).await.expect("forgotten");
    let outcome = within(SOON, "the handoff", handing_off).await;
    assert_eq!(by_code(outcome), Err(ErrorCode::Draining));
    assert!(fleet.stored_of(&key).await.is_empty());
    assert!(!a.events.released_flushed(&key));
    let next = b.router.open(&key).await.expect("b opens");
    assert!(keys_of(&next).is_empty());
}

pub(crate) async fn f4_the_lease_is_renewed_while_forget_waits_for_a_slow_upload<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_secs(1), Duration::from_millis(150)).await;
    let a = fleet.replica_with("a", |options| options.renew_every = Some(Duration::from_millis(250)));
    let key = tenant("f4");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the first snapshot", handle.snapshot()).await.expect("published");
    insert(&handle, "k-2");

    let (arrive, begun) = oneshot::channel();
    fleet.blobs().before_next(BlobOp::Put, is_image, move || {
        Box::pin(async move {
            let _ = arrive.send(());
        })
    });
    fleet.blobs().slow_puts(is_image, Duration::from_secs(2), Arc::new(TokioTimer));
    let uploading = handle.snapshot();
    within(PATIENCE, "the upload to begin", begun).await.expect("it begins");
    let mut forgetting = Box::pin(handle.forget());
    waits("the forget", &mut forgetting).await;
    within(Duration::from_secs(10), "the forget over a slow upload", forgetting).await.expect("forgotten");
    let _ = within(PATIENCE, "the upload", uploading).await;

    assert_eq!(a.events.named("lost"), 0);
    assert!(fleet.stored_of(&key).await.is_empty(), "the late image is gone too");
}

pub(crate) async fn f5_calls_are_refused_while_forget_waits<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("f5")).await.expect("a opens");
    insert(&handle, "k-1");
    let view = handle.ledger();

    let held = fleet.blobs().hold_next(BlobOp::Put, is_image);
    let uploading = handle.snapshot();
    within(PATIENCE, "the upload to begin", held.reached()).await;
    let mut forgetting = Box::pin(handle.forget());
    waits("the forget", &mut forgetting).await;
    let draining = Err(ErrorCode::Draining);
    assert_eq!(try_insert(&handle, "late-1"), draining);
    assert_eq!(touch_nothing(&handle), draining, "a callback that touches nothing is refused too");
    assert_eq!(by_code(handle.run_async(|_ledger| async {}).await), draining);
    assert_eq!(insert_through_view(&view, "late-2").await, draining);
    assert_eq!(read_through_view(&view).await, draining);
    assert!(!handle.is_open());
    held.release();

    let _ = within(PATIENCE, "the upload", uploading).await;
    within(PATIENCE, "the forget", forgetting).await.expect("forgotten");
}

pub(crate) async fn f6_neither_abandon_nor_a_second_forget_disturbs_a_forget<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("f6");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let held = fleet.blobs().hold_next(BlobOp::Put, is_image);
    let uploading = handle.snapshot();
    within(PATIENCE, "the upload to begin", held.reached()).await;
    let mut forgetting = Box::pin(handle.forget());
    let second = Duration::from_secs(1);
    within(second, "an abandon beside the forget", handle.abandon()).await.expect("the abandon returns");
    let row = fleet.lease_store().read(&key).await.expect("the row").expect("there is one");
    assert!(row.owner.is_some(), "the lease is still held");
    let refused = within(second, "a second forget", handle.forget()).await;
    assert_eq!(by_code(refused).map(drop), Err(ErrorCode::Draining));
    waits("the first forget", &mut forgetting).await;
    held.release();

    let _ = within(PATIENCE, "the upload", uploading).await;
    within(SOON, "the forget", forgetting).await.expect("the first one finishes what it began");
    assert!(fleet.stored_of(&key).await.is_empty());
}

pub(crate) async fn f7_forget_deletes_only_at_or_below_its_own_floor<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b, c) = (fleet.replica("a"), fleet.replica("b"), fleet.replica("c"));
    let key = tenant("f7");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "a-1");
    within(PATIENCE, "a's snapshot", handle.snapshot()).await.expect("published");

    let (tell, told) = oneshot::channel();
    let hooked = (fleet.clone(), b.clone(), key.clone());
    fleet.leases().after_raise_floor(move || {
        Box::pin(async move {
            let (fleet, b, key) = hooked;
            fleet.outlive_leases().await;
            let successor = b.router.open(&key).await.expect("b takes over");
            insert(&successor, "b-1");
            successor.snapshot().await.expect("b publishes");
            let _ = tell.send(successor);
        })
    });
    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");

    let successor = told.await.expect("b took over while the forget paused");
    let kept = fleet.stored(&format!("{key}/e00000002/")).await;
    assert!(kept.iter().any(|name| is_image(name)), "the successor keeps its image: {kept:?}");
    assert!(fleet.stored(&format!("{key}/e00000001/")).await.is_empty());
    within(PATIENCE, "b's abandon", successor.abandon()).await.expect("abandoned");
    let next = c.router.open(&key).await.expect("c opens");
    assert_eq!(keys_of(&next), ["b-1"]);
}

pub(crate) async fn f8_closing_the_router_waits_for_a_forget<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("f8");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let held = fleet.blobs().hold_next(BlobOp::Put, is_image);
    let uploading = handle.snapshot();
    within(PATIENCE, "the upload to begin", held.reached()).await;
    let forgetting = handle.forget();
    let mut closing = Box::pin(a.router.close());
    waits("the close", &mut closing).await;
    held.release();

    assert_eq!(within(SOON, "the close", closing).await, []);
    within(SOON, "the forget", forgetting).await.expect("forgotten");
    let _ = within(PATIENCE, "the upload", uploading).await;
    assert!(fleet.stored_of(&key).await.is_empty());
    assert!(a.events.released_unflushed(&key));
    assert!(!a.events.released_flushed(&key));
}
