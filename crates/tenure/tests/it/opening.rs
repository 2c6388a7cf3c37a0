//! An opening that others join, stop, or see fail.

use std::{future::Future, pin::Pin};

use leasehold_tenure::{Handle, TenureError};
use leasehold_testkit::{
    BlobOp, EmbeddedPair, Fleet, Held, LeaseOp, PATIENCE, Replica, by_code, eventually, insert, keys_of,
    tenant, within,
};
use leasehold_types::{ErrorCode, LeaseKey};

type Opening<'a> = Pin<Box<dyn Future<Output = Result<Handle, TenureError>> + Send + 'a>>;

/// A replica whose opening of the tenant will be held when it has acquired the lease and looks at what the store has.
async fn held_opening(subject: &str) -> (Fleet<EmbeddedPair>, Replica, LeaseKey, Held) {
    let fleet = Fleet::manual().await;
    let a = fleet.replica("a");
    let key = tenant(subject);
    let prefix = format!("{key}/");
    let held = fleet.blobs().hold_next(BlobOp::List, move |listed| listed == prefix);
    (fleet, a, key, held)
}

/// An opening that has got as far as `held`, and another that joined it.
async fn begun_and_joined<'a>(a: &'a Replica, key: &'a LeaseKey, held: &Held) -> (Opening<'a>, Opening<'a>) {
    let mut begun: Opening<'a> = Box::pin(a.router.open(key));
    let mut joined: Opening<'a> = Box::pin(a.router.open(key));
    assert!(futures::poll!(&mut begun).is_pending());
    assert!(futures::poll!(&mut joined).is_pending());
    within(PATIENCE, "the opening to get to the store", held.reached()).await;
    (begun, joined)
}

async fn both_were_stopped(begun: Opening<'_>, joined: Opening<'_>) {
    for open in [begun, joined] {
        let outcome = within(PATIENCE, "an open that was stopped", open).await;
        assert_eq!(by_code(outcome).map(drop), Err(ErrorCode::Draining));
    }
}

async fn is_free(fleet: &Fleet<EmbeddedPair>, key: &LeaseKey) -> bool {
    let row = fleet.lease_store().read(key).await.expect("the row").expect("there is one");
    row.owner.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_of_one_tenant_join() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("join");
    let opens = (0..16).map(|_| a.router.open(&key));
    let handles =
        within(PATIENCE, "the opens", futures::future::try_join_all(opens)).await.expect("all open");
    insert(&handles[0], "k-1");
    for handle in &handles {
        assert_eq!(handle.epoch().get(), 1, "one acquisition serves them all");
        assert_eq!(keys_of(handle), ["k-1"]);
    }
    assert_eq!(a.events.named("acquired"), 1);
    assert_eq!(a.router.handles().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_replica_holds_names_its_holder() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("held");
    let handle = a.router.open(&key).await.expect("a opens");
    match b.router.open(&key).await {
        Err(TenureError::LeaseHeld { holder, .. }) => {
            assert_eq!(holder.replica.as_str(), "a");
            assert_eq!(holder.epoch, handle.epoch());
        }
        other => panic!("b gets {other:?}"),
    }
    assert!(b.router.handle_of(&key).is_none());
    assert!(handle.is_open());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandon_stops_an_opening_and_those_who_joined_it() {
    let (fleet, a, key, held) = held_opening("opening-abandon").await;
    let (begun, joined) = begun_and_joined(&a, &key, &held).await;
    let mut abandoning = Box::pin(a.router.abandon(&key));
    let _ = futures::poll!(&mut abandoning);
    held.release();

    within(PATIENCE, "the abandon", abandoning).await.expect("abandoned");
    both_were_stopped(begun, joined).await;
    assert!(is_free(&fleet, &key).await, "what was acquired is handed back");
    let again = a.router.open(&key).await.expect("a opens again");
    assert_eq!(again.epoch().get(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forget_stops_an_opening_and_forgets() {
    let (fleet, a, key, held) = held_opening("opening-forget").await;
    let (begun, joined) = begun_and_joined(&a, &key, &held).await;
    let mut forgetting = Box::pin(a.router.forget(&key));
    let _ = futures::poll!(&mut forgetting);
    held.release();

    let receipt = within(PATIENCE, "the forget", forgetting).await.expect("forgotten");
    both_were_stopped(begun, joined).await;
    assert!(receipt.floor.get() >= 1);
    assert!(is_free(&fleet, &key).await);
    assert!(fleet.stored_of(&key).await.is_empty());
    assert!(!a.tenant_root(&key).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_router_stops_an_opening() {
    let (fleet, a, key, held) = held_opening("opening-close").await;
    let (begun, joined) = begun_and_joined(&a, &key, &held).await;
    let mut closing = Box::pin(a.router.close());
    let _ = futures::poll!(&mut closing);
    let late = within(PATIENCE, "an open of a closing router", a.router.open(&tenant("late"))).await;
    assert_eq!(by_code(late).map(drop), Err(ErrorCode::Draining));
    held.release();

    assert_eq!(within(PATIENCE, "the close", closing).await, [], "an opening that is stopped is no failure");
    both_were_stopped(begun, joined).await;
    assert!(is_free(&fleet, &key).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_that_fails_hands_the_lease_back() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("opening-fails");
    fleet.blobs().down(true);
    let failed = within(PATIENCE, "the open over an outage", a.router.open(&key)).await;
    assert_eq!(by_code(failed).map(drop), Err(ErrorCode::BlobStoreUnavailable));
    assert!(is_free(&fleet, &key).await);
    assert!(a.router.handle_of(&key).is_none());

    fleet.blobs().down(false);
    let handle = b.router.open(&key).await.expect("b need not wait");
    insert(&handle, "k-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquisition_whose_answer_was_lost_is_adopted() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("opening-lost-answer");
    fleet.leases().lose_answer_of(LeaseOp::Acquire);
    let handle = within(PATIENCE, "the open", a.router.open(&key)).await.expect("adopted, not waited out");
    assert_eq!(handle.epoch().get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_future_of_a_handoff_changes_nothing() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("dropped-future");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    drop(handle.handoff());
    eventually(PATIENCE, "it is handed off", || async { a.events.released_flushed(&key) }).await;
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_on_open_tenants_is_told_and_harms_no_tenant() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica_with("a", |options| options.open_tenants_max = 1);
    let handle = a.router.open(&tenant("bound-1")).await.expect("a opens");
    let refused = a.router.open(&tenant("bound-2")).await;
    assert_eq!(by_code(refused).map(drop), Err(ErrorCode::Overloaded));
    insert(&handle, "k-1");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    a.router.open(&tenant("bound-2")).await.expect("there is room again");
}
