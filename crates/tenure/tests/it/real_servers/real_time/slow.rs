//! A blob store that is slower than a lease runs.

use std::time::Duration;

use leasehold_blob::AzureLimits;
use leasehold_tenure::{Backends, Router};
use leasehold_testkit::{
    CloudPair, CloudServers, Cue, Events, Fault, FaultProxy, Fleet, ManualClock, PATIENCE, Pair as _,
    by_code, eventually, insert, keys_of, pass, tenant, touch_nothing, within,
};
use leasehold_types::ErrorCode;

use super::super::stage::{azurite_addr, behind_a_network, short_limits};

const TTL: Duration = Duration::from_secs(4);
const MARGIN: Duration = Duration::from_millis(500);
const RENEW_EVERY: Duration = Duration::from_millis(300);
/// In the request by which an image is put, and in no other.
const IMAGE: &str = ".db HTTP/1.1";

async fn fleet(limits: AzureLimits) -> (Fleet<CloudPair>, FaultProxy) {
    let CloudServers { postgres, azurite, .. } = CloudServers::of_the_run();
    let azurite = azurite.expect("the run's");
    let (proxy, servers) = behind_a_network(postgres, &azurite, azurite_addr(&azurite), limits).await;
    (Fleet::real_time_over(CloudPair::at(&servers).await, TTL, MARGIN).await, proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leases_are_renewed_beside_an_upload_that_takes_two_ttls() {
    let (fleet, proxy) = fleet(AzureLimits::default()).await;
    let a = fleet.replica_with("a", |options| options.renew_every = Some(RENEW_EVERY));
    let (slow, neighbour) = (tenant("slow"), tenant("neighbour"));
    let handle = a.router.open(&slow).await.expect("a opens");
    let beside = a.router.open(&neighbour).await.expect("a opens another one");
    insert(&handle, "k-1");

    let held = proxy.plan(Cue::request(IMAGE), Fault::HoldAnswer);
    let handoff = tokio::spawn(handle.handoff());
    held.met().await;
    let before = a.events.named("renewed");
    pass(2 * TTL).await;
    assert!(!handoff.is_finished());
    assert!(a.events.named("renewed") >= before + 4, "both leases were renewed meanwhile");
    assert_eq!(touch_nothing(&handle), Err(ErrorCode::Draining));
    eventually(PATIENCE, "a neighbour does not wait", || async { touch_nothing(&beside).is_ok() }).await;
    held.release();
    within(PATIENCE, "the handoff", handoff).await.expect("no panic").expect("handed off");
    assert_eq!(a.events.named("lost"), 0);
    let next = fleet.replica("b").router.open(&slow).await.expect("b opens");
    assert_eq!((next.epoch().get(), keys_of(&next)), (2, vec!["k-1".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upload_that_never_ends_is_given_up_and_the_tenant_serves_on() {
    let (fleet, proxy) = fleet(short_limits()).await;
    let a = fleet.replica_with("a", |options| options.renew_every = Some(RENEW_EVERY));
    let key = tenant("stuck");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    // Each attempt of each try is held, as many as there may be.
    let tries = usize::try_from(a.router.options().snapshot.retry.tries).expect("a few");
    let attempts = tries * usize::try_from(short_limits().attempts).expect("a few");
    let held: Vec<_> = (0..attempts).map(|_| proxy.plan(Cue::request(IMAGE), Fault::HoldAnswer)).collect();
    let failed = within(2 * PATIENCE, "the handoff", handle.handoff()).await;
    assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable));
    assert!(held[0].is_met());
    eventually(PATIENCE, "it serves on", || async { touch_nothing(&handle).is_ok() }).await;
    insert(&handle, "k-2");
    assert_eq!(a.events.named("lost"), 0);

    proxy.forget_faults();
    drop(held);
    within(PATIENCE, "the later handoff", handle.handoff()).await.expect("handed off");
    let next = fleet.replica("b").router.open(&key).await.expect("b opens");
    assert_eq!((next.epoch().get(), keys_of(&next)), (2, vec!["k-1".to_owned(), "k-2".to_owned()]));
}

/// Contract H3 in real time: nothing is called flushed that was not proven to be held after it; if nobody took the row meanwhile, nothing is
/// lost either.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upload_that_outlives_the_lease_is_fenced_and_serves_on_if_nobody_took_the_row() {
    let (fleet, proxy) = fleet(AzureLimits::default()).await;
    let a = fleet.replica_with("a", |options| options.renew_every = Some(RENEW_EVERY));
    let key = tenant("outlived");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    let held = proxy.plan(Cue::request(IMAGE), Fault::HoldAnswer);
    let handoff = tokio::spawn(handle.handoff());
    held.met().await;
    fleet.leases().hold_renewals();
    pass(2 * TTL).await;
    held.release();
    let outcome = within(PATIENCE, "the handoff", handoff).await.expect("no panic");
    assert_eq!(by_code(outcome), Err(ErrorCode::Fenced));
    assert!(!a.events.released_flushed(&key));

    fleet.leases().release_renewals();
    eventually(PATIENCE, "it serves on", || async { touch_nothing(&handle).is_ok() }).await;
    assert_eq!(a.events.named("lost"), 0);
    insert(&handle, "k-2");
    within(PATIENCE, "the later handoff", handle.handoff()).await.expect("handed off");
    let next = fleet.replica("b").router.open(&key).await.expect("b opens");
    assert_eq!((next.epoch().get(), keys_of(&next)), (2, vec!["k-1".to_owned(), "k-2".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upload_that_outlives_the_lease_and_the_row_ends_the_tenure() {
    let (fleet, proxy) = fleet(AzureLimits::default()).await;
    let a = fleet.replica_with("a", |options| options.renew_every = Some(RENEW_EVERY));
    let key = tenant("taken");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    insert(&handle, "k-2");
    let held = proxy.plan(Cue::request(IMAGE), Fault::HoldAnswer);
    let handoff = tokio::spawn(handle.handoff());
    held.met().await;
    fleet.leases().hold_renewals();
    // Past the faults: its own renewals are not held.
    let backends = Backends { leases: fleet.pair().leases(), ..fleet.backends(&ManualClock::new()) };
    let b = Router::new(fleet.options("b", "b", &Events::default(), |_| ()), backends)
        .expect("options that are valid");
    let taking = async {
        loop {
            match b.open(&key).await {
                Ok(next) => break next,
                Err(error) => assert_eq!(error.code(), ErrorCode::LeaseHeld),
            }
            pass(RENEW_EVERY).await;
        }
    };
    let next = within(PATIENCE, "the takeover", taking).await;
    held.release();
    let outcome = within(PATIENCE, "the handoff", handoff).await.expect("no panic");
    assert_eq!(by_code(outcome), Err(ErrorCode::Fenced));
    fleet.leases().release_renewals();
    within(PATIENCE, "the end of the old tenure", handle.ended()).await;
    assert!(!a.events.released_flushed(&key));
    assert_eq!((next.epoch().get(), keys_of(&next)), (2, vec!["k-1".to_owned()]));
}
