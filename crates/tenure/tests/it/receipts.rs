//! What a forget answers, and what is known of a forgotten tenant afterwards.

use leasehold_tenure::TenureError;
use leasehold_testkit::{BlobOp, EmbeddedPair, Fleet, PATIENCE, by_code, insert, keys_of, tenant, within};
use leasehold_types::ErrorCode;

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_forget_answers_the_stored_receipt() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("receipt");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    let there = fleet.stored_of(&key).await.len();

    let receipt = within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    assert_eq!(receipt.key, key);
    assert_eq!(receipt.floor.get(), 1);
    assert_eq!(receipt.objects_deleted, there as u64);
    assert!(receipt.bytes_deleted > 0);
    assert!(!receipt.recheck_at.is_empty(), "it says when the tenant is looked at again");

    for replica in [&a, &b] {
        let again = within(PATIENCE, "a repeated forget", replica.router.forget(&key)).await;
        assert_eq!(again.expect("answered"), receipt);
    }
    assert_eq!(a.events.named("forgotten"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_not_open_anywhere_is_forgotten_without_being_restored() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("unopened");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");

    fleet.blobs().clear_calls();
    let receipt = within(PATIENCE, "the forget", b.router.forget(&key)).await.expect("forgotten");
    assert_eq!(receipt.floor.get(), 2, "it was acquired for the forget");
    assert_eq!(fleet.blobs().count(BlobOp::Download), 0);
    assert!(fleet.stored_of(&key).await.is_empty());
    assert!(b.router.handle_of(&key).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_says_whether_a_tenant_is_unknown_or_forgotten() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("known");
    assert_eq!(by_code(a.router.open_existing(&key).await).map(drop), Err(ErrorCode::TenantUnknown));
    assert_eq!(by_code(a.router.forget(&key).await).map(drop), Err(ErrorCode::TenantUnknown));
    assert!(fleet.lease_store().read(&key).await.expect("the row").is_none(), "asking creates nothing");

    let handle = a.router.open_unless_forgotten(&key).await.expect("an unknown one is created");
    insert(&handle, "k-1");
    let receipt = within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    for refused in [a.router.open_existing(&key).await, a.router.open_unless_forgotten(&key).await] {
        match refused {
            Err(TenureError::TenantForgotten { receipt: told, floor, .. }) => {
                assert_eq!(told.as_deref(), Some(&receipt));
                assert_eq!(floor, receipt.floor);
            }
            other => panic!("{other:?}"),
        }
    }

    let created = a.router.open(&key).await.expect("an open creates it again");
    assert!(keys_of(&created).is_empty());
    assert_eq!(created.epoch().get(), 2);
    insert(&created, "k-2");
    within(PATIENCE, "the handoff", created.handoff()).await.expect("handed off");
    let existing = a.router.open_existing(&key).await.expect("it exists again");
    assert_eq!(keys_of(&existing), ["k-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forget_that_failed_half_way_is_finished_by_the_next_one() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("half");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");

    let hooked = fleet.clone();
    fleet.leases().after_raise_floor(move || Box::pin(async move { hooked.blobs().down(true) }));
    let failed = within(PATIENCE, "the forget over an outage", handle.forget()).await;
    assert_eq!(by_code(failed).map(drop), Err(ErrorCode::BlobStoreUnavailable));
    assert!(!handle.is_open(), "a tenure whose floor was raised never serves again");
    fleet.blobs().down(false);

    let receipt = within(PATIENCE, "the second forget", b.router.forget(&key)).await.expect("forgotten");
    assert!(receipt.objects_deleted > 0);
    assert!(fleet.stored_of(&key).await.is_empty());
    let next = a.router.open(&key).await.expect("a opens again");
    assert!(keys_of(&next).is_empty());
}
