//! H: a handoff loses nothing that was acknowledged.

use std::time::Duration;

use leasehold_tenure::LedgerRef;
use leasehold_testkit::{
    BlobOp, Fleet, PATIENCE, Pair, by_code, insert, insert_through_view, keys_of, pass, read_through_view,
    tenant, within,
};
use leasehold_types::ErrorCode;
use tokio::sync::oneshot;

use super::is_image;

pub(crate) async fn h1_a_write_during_the_flush_is_refused_and_nothing_acknowledged_is_lost<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("h1");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    insert(&handle, "k-2");

    let view = handle.ledger();
    let (tell, told) = oneshot::channel();
    fleet.blobs().before_next(BlobOp::Put, is_image, move || {
        Box::pin(async move {
            let _ = tell.send(insert_through_view(&view, "late").await);
        })
    });
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("the handoff succeeds");

    assert_eq!(told.await.expect("the write was tried"), Err(ErrorCode::Draining));
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
}

pub(crate) async fn h2_a_read_during_the_flush_is_refused_and_a_failed_flush_serves_again<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("h2");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let view = handle.ledger();
    let (tell, told) = oneshot::channel();
    let hooked = (fleet.clone(), view.clone());
    fleet.blobs().before_next(BlobOp::Put, is_image, move || {
        Box::pin(async move {
            let (fleet, view) = hooked;
            let _ = tell.send(read_through_view(&view).await);
            fleet.blobs().down(true);
        })
    });
    let failed = within(PATIENCE, "the handoff over an outage", handle.handoff()).await;

    assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable), "the store's own error");
    assert_eq!(told.await.expect("the read was tried"), Err(ErrorCode::Draining));
    fleet.blobs().down(false);
    assert!(handle.is_open(), "a flush that failed for want of a store leaves the tenant serving");
    insert(&handle, "k-2");
    assert_eq!(keys_of(&handle), ["k-1", "k-2"]);
    assert_eq!(insert_through_view(&view, "k-3").await, Ok(()));

    within(PATIENCE, "the later handoff", handle.handoff()).await.expect("the later handoff succeeds");
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2", "k-3"]);
}

pub(crate) async fn h3_a_flush_that_outlasts_the_lease_is_fenced<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("h3");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let hooked = fleet.clone();
    fleet
        .blobs()
        .before_next(BlobOp::Put, is_image, move || Box::pin(async move { hooked.outlive_leases().await }));
    let outcome = within(PATIENCE, "the handoff", handle.handoff()).await;

    assert_eq!(by_code(outcome), Err(ErrorCode::Fenced));
    assert!(!a.events.released_flushed(&key), "nothing says that the tenant was flushed");
    assert_eq!(a.events.named("snapshot_failed"), 1);
    assert_eq!(a.events.named("snapshot_published"), 0);
}

pub(crate) async fn h3b_successor_keeps_its_pin<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("h3b");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("k-1 is published");
    insert(&handle, "k-2");
    insert(&handle, "k-3");

    let (tell, told) = oneshot::channel();
    let hooked = (fleet.clone(), b.clone(), key.clone());
    fleet.blobs().before_next(BlobOp::Put, is_image, move || {
        Box::pin(async move {
            let (fleet, b, key) = hooked;
            fleet.outlive_leases().await;
            let _ = tell.send(b.router.open(&key).await);
        })
    });
    let outcome = within(PATIENCE, "the handoff", handle.handoff()).await;

    assert_eq!(by_code(outcome), Err(ErrorCode::Fenced));
    assert!(!a.events.released_flushed(&key));
    let next = told.await.expect("b took over during the upload").expect("b opens");
    assert_eq!(keys_of(&next), ["k-1"], "what lies above the pin is never read");
    within(PATIENCE, "b's handoff", next.handoff()).await.expect("b hands off");
    let later = fleet.replica("c").router.open(&key).await.expect("c opens");
    assert_eq!(keys_of(&later), ["k-1"], "nor by whoever comes later");
}

pub(crate) async fn h4_the_lease_is_renewed_while_work_drains<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_millis(1_200), Duration::from_millis(200)).await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("h4");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let work = tokio::spawn(handle.run_async(|ledger: LedgerRef| async move {
        pass(Duration::from_secs(2)).await;
        insert_through_view(&ledger, "k-2").await
    }));
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("the handoff succeeds");

    let written = within(PATIENCE, "the work", work).await.expect("the work does not panic");
    assert_eq!(by_code(written), Ok(Ok(())), "the work outlived the first lease and wrote");
    assert_eq!(a.events.named("lost"), 0);
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
}

pub(crate) async fn h5_failed_handoffs_leave_one_renewal_chain<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_millis(900), Duration::from_millis(100)).await;
    let a = fleet.replica("a");
    let key = tenant("h5");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    for _ in 0..3 {
        fleet.blobs().down(true);
        let failed = within(PATIENCE, "a handoff over an outage", handle.handoff()).await;
        assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable));
        fleet.blobs().down(false);
    }

    a.events.clear();
    pass(Duration::from_millis(1_300)).await;
    let renewals = a.events.named("renewed");
    assert!((2..=6).contains(&renewals), "one chain renews every 300 ms; {renewals} renewals in 1.3 s");

    within(PATIENCE, "the later handoff", handle.handoff()).await.expect("the later handoff succeeds");
}

pub(crate) async fn h6_an_abandon_overtakes_a_draining_handoff<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("h6");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let (let_go, held) = oneshot::channel::<()>();
    let work = tokio::spawn(handle.run_async(|_ledger| held));
    let handing_off = handle.handoff();
    within(PATIENCE, "the abandon, while the work has not ended", handle.abandon())
        .await
        .expect("the abandon succeeds");
    let_go.send(()).expect("the work still waits");
    let _ = within(PATIENCE, "the work", work).await.expect("the work does not panic");

    let outcome = within(PATIENCE, "the handoff", handing_off).await;
    assert_eq!(by_code(outcome), Err(ErrorCode::Draining));
    assert!(!handle.is_open());
    assert!(a.router.handle_of(&key).is_none(), "the router no longer has it");
    assert_eq!(fleet.stored_of(&key).await, [format!("{key}/e00000001/base.json")], "nothing was flushed");
}
