//! Forgotten tenants are looked at again, in the store and on the local disks.

use std::{sync::Arc, time::Duration};

use leasehold_tenure::Router;
use leasehold_testkit::{
    EmbeddedPair, Events, Fleet, LeaseOp, ManualClock, ManualTimer, PATIENCE, eventually, insert, keys_of,
    tenant, within,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_late_upload_into_a_forgotten_tenant_goes_without_an_open() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let (key, neighbour) = (tenant("recheck"), tenant("recheck-neighbour"));
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    let other = a.router.open(&neighbour).await.expect("a opens a neighbour");
    insert(&other, "k-1");
    within(PATIENCE, "the neighbour's snapshot", other.snapshot()).await.expect("published");
    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");

    let late = format!("{key}/e00000001/snap-000009.db");
    fleet.put(&late, "late").await;
    assert_eq!(b.router.keep_house().await.rechecked, 0, "it is not due at once");
    fleet.outlive_leases().await;
    let kept = b.router.keep_house().await;
    assert_eq!((kept.rechecked, kept.objects_deleted), (1, 1));
    assert!(fleet.stored_of(&key).await.is_empty());
    assert!(!fleet.stored_of(&neighbour).await.is_empty());

    // After a ttl, an hour and a day.
    for wait in [Duration::from_secs(3_600), Duration::from_secs(86_400)] {
        assert_eq!(b.router.keep_house().await.rechecked, 0, "it is not due before {wait:?}");
        fleet.put(&late, "late").await;
        fleet.advance(wait).await;
        assert_eq!(b.router.keep_house().await.objects_deleted, 1);
    }
    fleet.advance(Duration::from_secs(10 * 86_400)).await;
    assert_eq!(b.router.keep_house().await.rechecked, 0, "and then no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_drops_its_unheld_ledger_of_a_tenant_that_was_forgotten_elsewhere() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let (key, other_key) = (tenant("dropped"), tenant("kept"));
    for key in [&key, &other_key] {
        let handle = a.router.open(key).await.expect("a opens");
        insert(&handle, "k-1");
        within(PATIENCE, "the abandon", handle.abandon()).await.expect("abandoned");
        assert!(a.tenant_root(key).exists());
    }
    within(PATIENCE, "the forget", b.router.forget(&key)).await.expect("forgotten");

    assert_eq!(a.router.keep_house().await.local_removed, 1);
    assert!(!a.tenant_root(&key).exists());
    assert!(a.tenant_root(&other_key).exists(), "one that was not forgotten stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_held_is_not_dropped() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("held-anew");
    let handle = a.router.open(&key).await.expect("a opens");
    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    let anew = a.router.open(&key).await.expect("it begins anew");
    insert(&anew, "k-1");
    assert_eq!(a.router.keep_house().await.local_removed, 0);
    assert_eq!(keys_of(&anew), ["k-1"]);
    assert!(a.tenant_root(&key).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn housekeeping_goes_on_by_itself_until_the_router_is_gone() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("by-itself");
    let handle = a.router.open(&key).await.expect("a opens");
    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    fleet.put(&format!("{key}/e00000001/snap-000009.db"), "late").await;
    fleet.outlive_leases().await;

    let timer = ManualTimer::new();
    let backends =
        leasehold_tenure::Backends { timer: Arc::new(timer.clone()), ..fleet.backends(&ManualClock::new()) };
    let router = Router::new(fleet.options("b", "b", &Events::default(), |_| ()), backends)
        .expect("options that are valid");
    router.spawn_housekeeping();
    eventually(PATIENCE, "the late upload goes in the first round", || async {
        fleet.stored_of(&key).await.is_empty()
    })
    .await;
    // The time limits of a round's calls wait on this timer too; no such call comes after this one.
    within(PATIENCE, "the end of the round", fleet.leases().until_calls(LeaseOp::ScheduleRecheck, 1)).await;
    within(PATIENCE, "it waits for the next round", timer.until_sleepers(1)).await;

    fleet.put(&format!("{key}/e00000001/snap-000010.db"), "later").await;
    fleet.advance(Duration::from_secs(3_600)).await;
    timer.elapse(Duration::from_secs(60));
    eventually(PATIENCE, "the later one goes in the second", || async {
        fleet.stored_of(&key).await.is_empty()
    })
    .await;
}
