//! A lease store that has forgotten: restored from an old backup, or lost.

use std::{path::Path, sync::Arc};

use leasehold_lease::SqliteLeaseStore;
use leasehold_tenure::{Backends, Router};
use leasehold_testkit::{
    EmbeddedPair, Events, Fleet, ManualClock, PATIENCE, insert, keys_of, tenant, within,
};

/// A replica whose lease store begins anew, over the fleet's blob store.
fn with_new_leases(fleet: &Fleet<EmbeddedPair>, id: &str, leases: &Path) -> Router {
    let clock = ManualClock::new();
    std::fs::create_dir_all(leases.parent().expect("a directory")).expect("a directory");
    let store = SqliteLeaseStore::open(leases, Arc::new(clock.clone())).expect("a lease store");
    let backends = Backends { leases: Arc::new(store), ..fleet.backends(&clock) };
    Router::new(fleet.options(id, id, &Events::default(), |_| ()), backends).expect("options that are valid")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_fell_back_resurrects_no_epoch_and_loses_no_publish() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("rewound");
    for written in ["k-1", "k-2", "k-3"] {
        let handle = a.router.open(&key).await.expect("a opens");
        insert(&handle, written);
        within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    }

    let router = with_new_leases(&fleet, "b", &fleet.scratch().join("leases.db"));
    let handle = router.open(&key).await.expect("b opens");
    assert!(handle.epoch().get() > 3, "epoch {} was never given before", handle.epoch());
    assert_eq!(keys_of(&handle), ["k-1", "k-2", "k-3"]);
    insert(&handle, "k-4");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    let again = router.open(&key).await.expect("b opens again");
    assert_eq!(keys_of(&again), ["k-1", "k-2", "k-3", "k-4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_a_fallen_back_row_does_not_know_publishes_nothing_more() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("two-rows");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    insert(&handle, "k-2");

    // By its own lease store a still holds the tenant; the store of what counts decides.
    let router = with_new_leases(&fleet, "b", &fleet.scratch().join("leases.db"));
    let next = router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1"]);
    assert!(next.epoch() > handle.epoch());
    let refused = within(PATIENCE, "a's handoff", handle.handoff()).await.expect_err("a is superseded");
    assert_eq!(refused.code(), leasehold_types::ErrorCode::Fenced);
    insert(&next, "b-1");
    within(PATIENCE, "b's handoff", next.handoff()).await.expect("handed off");
    let last = router.open(&key).await.expect("b opens again");
    assert_eq!(keys_of(&last), ["k-1", "b-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_forgot_its_floor_brings_nothing_back() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("floor");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    let image = fleet.stored_of(&key).await;
    let bodies = futures::future::join_all(image.iter().map(|name| {
        let (store, key) = (fleet.store_behind(), name.parse().expect("an object key"));
        async move { store.get(&key, 64 << 20).await.expect("read").expect("it is there") }
    }))
    .await;
    let receipt = within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    // Everything that was forgotten lands once more, whole, as a late writer's retries would bring it.
    for (name, body) in image.iter().zip(bodies) {
        fleet.put(name, body).await;
    }

    let router = with_new_leases(&fleet, "b", &fleet.scratch().join("leases.db"));
    let next = router.open(&key).await.expect("b opens");
    assert!(!receipt.floor.covers(next.epoch()));
    assert!(keys_of(&next).is_empty(), "what was forgotten is never served");
}
