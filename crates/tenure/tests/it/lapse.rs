//! A lapsed lease is not yet a lost one.

use std::time::Duration;

use leasehold_lease::Claim;
use leasehold_snapshot::format::Seal;
use leasehold_tenure::{Handle, TenureError, TenureEvent};
use leasehold_testkit::{
    EmbeddedPair, Fleet, PATIENCE, by_code, eventually, insert, insert_through_view, keys_of, tenant,
    touch_nothing, try_insert, within,
};
use leasehold_types::{Entropy, Epoch, ErrorCode, FencedReason, Timestamp};

/// A seal, as the successor of a tenure puts it in the place of that tenure's next manifest.
fn a_successors_seal() -> bytes::Bytes {
    let claim = Claim {
        key: tenant("sealed"),
        replica: "b".parse().expect("a replica id"),
        tenure: Entropy::seeded(99).tenure_id(),
        epoch: Epoch::new(2).expect("an epoch"),
    };
    Seal::new(&claim, Timestamp::from_millis(0)).encode()
}

pub(crate) fn fenced_because(handle: &Handle) -> Option<FencedReason> {
    let outcome =
        handle.run(|_view: &mut leasehold_ledger::View<'_>| Ok::<_, leasehold_ledger::LedgerError>(()));
    match outcome {
        Err(leasehold_tenure::RunError::Tenure(TenureError::Fenced { reason, .. })) => Some(reason),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lapsed_tenure_that_nobody_took_serves_on_with_nothing_lost() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("resumed");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    let view = handle.ledger();

    fleet.outlive_leases().await;
    assert_eq!(try_insert(&handle, "late"), Err(ErrorCode::Fenced));
    assert_eq!(insert_through_view(&view, "late").await, Err(ErrorCode::Fenced));
    assert_eq!(fenced_because(&handle), Some(FencedReason::Lapsed));
    assert!(!handle.is_open());

    within(PATIENCE, "the renewal", handle.renew()).await.expect("the row is still a's");
    assert_eq!(handle.epoch().get(), 1);
    assert!(handle.is_open());
    insert(&handle, "k-2");
    assert_eq!(insert_through_view(&view, "k-3").await, Ok(()));
    assert_eq!(keys_of(&handle), ["k-1", "k-2", "k-3"]);
    assert_eq!(a.events.named("resumed"), 1);
    assert_eq!(a.events.named("lost"), 0);
}

/// Found by the soak: whoever looked after the cadence slept on, up to a minute, by the look that it had taken at a lapsed lease.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_due_while_a_lease_was_lapsed_is_published_once_it_is_resumed() {
    const LONG: Duration = Duration::from_secs(3_000);
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica_with("a", |options| {
        options.ttl = LONG;
        options.snapshot_every = LONG / 2;
    });
    let key = tenant("due");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    fleet.advance(LONG).await;
    assert_eq!(fenced_because(&handle), Some(FencedReason::Lapsed));
    eventually(PATIENCE, "the lapse is noted", || async {
        drop(handle.status());
        a.events.named("lapsed") == 1
    })
    .await;

    within(PATIENCE, "the renewal", handle.renew()).await.expect("the row is still a's");
    // Half of the time after which it would have looked anyway.
    let published = || async { a.events.named("snapshot_published") == 1 };
    eventually(Duration::from_secs(30), "what was due is published", published).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenure_whose_lease_was_taken_ends_at_the_next_refusal() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("taken");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    fleet.outlive_leases().await;
    let next = b.router.open(&key).await.expect("b takes over");

    let refused = within(PATIENCE, "the renewal", handle.renew()).await;
    assert!(matches!(refused, Err(TenureError::Fenced { reason: FencedReason::Lost, .. })), "{refused:?}");
    assert_eq!(fenced_because(&handle), Some(FencedReason::Lost));
    assert!(a.router.handle_of(&key).is_none());
    eventually(PATIENCE, "observers are told", || async { a.events.named("lost") == 1 }).await;
    for outcome in [by_code(handle.handoff().await), by_code(handle.snapshot().await).map(drop)] {
        assert_eq!(outcome, Err(ErrorCode::Fenced));
    }
    insert(&next, "b-1");
    assert_eq!(keys_of(&next), ["b-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lapsed_tenure_whose_epoch_was_sealed_is_not_resumed_by_the_row_alone() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("sealed");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    // What a successor leaves in the store when the row, restored from an old backup, has forgotten it.
    fleet.put(&format!("{key}/e00000001/snap-000001.json"), a_successors_seal()).await;

    fleet.outlive_leases().await;
    let refused = within(PATIENCE, "the renewal", handle.renew()).await;
    assert!(matches!(refused, Err(TenureError::Fenced { reason: FencedReason::Sealed, .. })), "{refused:?}");
    assert_eq!(touch_nothing(&handle), Err(ErrorCode::Fenced));
    let lost =
        a.events.count(|event| matches!(event, TenureEvent::Lost { reason: FencedReason::Sealed, .. }));
    assert_eq!(lost, 1);
    assert_eq!(a.events.named("resumed"), 0);
}
