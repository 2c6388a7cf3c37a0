//! D: the drain is bounded, and whoever waits for one is settled.

use std::{future, time::Duration};

use leasehold_tenure::{Handle, LedgerRef, Router, RouterOptions, TenureError};
use leasehold_testkit::{
    Events, Fleet, LeaseOp, ManualClock, PATIENCE, Pair, Replica, by_code, eventually, insert,
    insert_through_view, keys_of, pass, tenant, touch_nothing, waits, within,
};
use leasehold_types::{ErrorCode, LeaseKey};
use tokio::{sync::oneshot, task::JoinHandle};

pub(crate) async fn d1_a_drain_that_never_ends_is_bounded<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_secs(2), Duration::from_millis(200)).await;
    let a = fleet.replica_with("a", |options| {
        options.drain_timeout = Duration::from_millis(300);
        options.renew_every = Some(Duration::from_millis(200));
    });
    let key = tenant("d1");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    let _stuck = work_without_end(&handle);

    let outcome = within(Duration::from_secs(3), "the handoff", handle.handoff()).await;
    assert_eq!(by_code(outcome), Err(ErrorCode::DrainTimeout));
    assert_eq!(a.events.named("drain_timeout"), 1);
    assert!(handle.is_open(), "the tenant serves again");
    insert(&handle, "k-2");
    within(PATIENCE, "a snapshot", handle.snapshot()).await.expect("published");
    assert_eq!(keys_of(&handle), ["k-1", "k-2"]);
    assert_eq!(a.events.named("released"), 0);
}

pub(crate) async fn d2_a_stuck_tenant_holds_nobody_else<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_secs(3), Duration::from_millis(300)).await;
    let a = fleet.replica_with("a", |options| {
        options.drain_timeout = Duration::from_millis(1_500);
        options.renew_every = Some(Duration::from_millis(300));
    });
    let (stuck_key, other_key) = (tenant("d2-stuck"), tenant("d2-other"));
    let stuck = a.router.open(&stuck_key).await.expect("a opens the first");
    let other = a.router.open(&other_key).await.expect("a opens the second");
    insert(&stuck, "k-1");
    insert(&other, "k-1");
    let _stuck = work_without_end(&stuck);

    let router = a.router.clone();
    let closing = tokio::spawn(async move { router.close().await });
    eventually(Duration::from_secs(1), "the second is released flushed", || async {
        a.events.released_flushed(&other_key)
    })
    .await;
    let failed = within(PATIENCE, "the close", closing).await.expect("close does not panic");
    assert_eq!(failed, [stuck_key]);
}

pub(crate) async fn d3_abandon_settles_a_handoff_that_waits_for_ever<P: Pair>() {
    let stuck = Stuck::<P>::begin("d3-abandon").await;
    within(PATIENCE, "the abandon", stuck.handle.abandon()).await.expect("abandoned");
    stuck.ends_rejected().await;
}

pub(crate) async fn d3_forget_settles_a_handoff_that_waits_for_ever<P: Pair>() {
    let stuck = Stuck::<P>::begin("d3-forget").await;
    within(PATIENCE, "the forget", stuck.handle.forget()).await.expect("forgotten");
    stuck.ends_rejected().await;
}

pub(crate) async fn d3_lost_settles_a_handoff_that_waits_for_ever<P: Pair>() {
    let stuck = Stuck::<P>::begin("d3-lost").await;
    let b = stuck.fleet.replica("b");
    stuck.fleet.outlive_leases().await;
    b.router.open(&stuck.key).await.expect("b takes over");
    assert_eq!(by_code(stuck.handle.renew().await), Err(ErrorCode::Fenced), "the renewal is refused");
    stuck.ends_rejected().await;
    assert_eq!(stuck.a.events.named("lost"), 1);
}

/// A handoff that waits for work that never returns.
struct Stuck<P> {
    fleet: Fleet<P>,
    a: Replica,
    key: LeaseKey,
    handle: Handle,
    handing_off: std::sync::Mutex<Option<JoinHandle<Result<(), TenureError>>>>,
    _work: JoinHandle<Result<(), TenureError>>,
}

impl<P: Pair> Stuck<P> {
    async fn begin(subject: &str) -> Self {
        let fleet = Fleet::<P>::manual().await;
        let a = fleet.replica_with("a", |options| options.drain_timeout = Duration::from_secs(10));
        let key = tenant(subject);
        let handle = a.router.open(&key).await.expect("a opens");
        insert(&handle, "k-1");
        let work = work_without_end(&handle);
        let handing_off = std::sync::Mutex::new(Some(tokio::spawn(handle.handoff())));
        Self { fleet, a, key, handle, handing_off, _work: work }
    }

    async fn ends_rejected(&self) {
        let handing_off = self.handing_off.lock().expect("no panic before").take().expect("asked once");
        let outcome = within(Duration::from_secs(1), "the handoff", handing_off).await;
        assert_eq!(by_code(outcome.expect("the handoff does not panic")), Err(ErrorCode::Draining));
        assert!(!self.handle.is_open());
        assert!(!self.a.events.released_flushed(&self.key));
    }
}

pub(crate) async fn d4_calls_are_refused_while_running_work_ends_and_is_flushed<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("d4");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    let (finish, held) = oneshot::channel::<()>();
    let running = tokio::spawn(handle.run_async(|ledger: LedgerRef| async move {
        held.await.expect("the test lets it go");
        insert_through_view(&ledger, "k-2").await
    }));
    let mut handing_off = Box::pin(handle.handoff());
    assert_eq!(touch_nothing(&handle), Err(ErrorCode::Draining), "whatever the callback does");
    assert_eq!(by_code(handle.run_async(|_ledger| async {}).await), Err(ErrorCode::Draining));
    assert!(!handle.is_open());
    waits("the handoff", &mut handing_off).await;
    finish.send(()).expect("the work still waits");

    let written = within(PATIENCE, "the work", running).await.expect("the work does not panic");
    assert_eq!(by_code(written), Ok(Ok(())));
    within(PATIENCE, "the handoff", handing_off).await.expect("handed off");
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
}

pub(crate) async fn d5_a_tenant_being_abandoned_refuses_calls_and_ends_once<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("d5")).await.expect("a opens");
    insert(&handle, "k-1");

    let held = fleet.leases().hold(LeaseOp::Release);
    let abandoning = handle.abandon();
    assert_eq!(touch_nothing(&handle), Err(ErrorCode::Draining));
    let refused = within(Duration::from_secs(1), "a forget beside the abandon", handle.forget()).await;
    assert_eq!(by_code(refused).map(drop), Err(ErrorCode::Draining));
    held.let_go();
    within(PATIENCE, "the abandon", abandoning).await.expect("abandoned");

    assert_eq!(a.events.named("released"), 1, "the tenure ended once");
    assert_eq!(touch_nothing(&handle), Err(ErrorCode::Fenced));
}

pub(crate) async fn d6_drain_options_are_checked_and_one_lane_closes_in_order<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_secs(3), Duration::from_millis(300)).await;
    // Negative, fractional and NaN have no spelling in a Duration and a usize; what has one is refused.
    for bad in [
        Duration::ZERO,
        Duration::from_micros(999),
        Duration::from_micros(1_500),
        Duration::from_millis(1 << 31),
        Duration::MAX,
    ] {
        assert_eq!(refusal(&fleet, |options| options.drain_timeout = bad), Some(INVALID), "{bad:?}");
    }
    for good in [Duration::from_millis(1), Duration::from_millis((1 << 31) - 1)] {
        assert_eq!(refusal(&fleet, |options| options.drain_timeout = good), None, "{good:?}");
    }
    assert_eq!(refusal(&fleet, |options| options.close_concurrency = 0), Some(INVALID));

    let a = fleet.replica_with("a", |options| {
        options.drain_timeout = Duration::from_secs(2);
        options.renew_every = Some(Duration::from_millis(300));
        options.close_concurrency = 1;
    });
    let (stuck_key, other_key) = (tenant("d6-stuck"), tenant("d6-other"));
    let stuck = a.router.open(&stuck_key).await.expect("a opens the first");
    let other = a.router.open(&other_key).await.expect("a opens the second");
    insert(&stuck, "k-1");
    insert(&other, "k-1");
    let _stuck = work_without_end(&stuck);

    let router = a.router.clone();
    let closing = tokio::spawn(async move { router.close().await });
    pass(Duration::from_millis(400)).await;
    assert_eq!(a.events.named("released"), 0, "with one lane the second waits behind the first");
    let failed = within(PATIENCE, "the close", closing).await.expect("close does not panic");
    assert_eq!(failed, [stuck_key]);
    assert!(a.events.released_flushed(&other_key), "handed off once the first had given up");
}

const INVALID: ErrorCode = ErrorCode::InvalidConfiguration;

/// Why a router with such options is refused; `None`: it is not.
fn refusal<P: Pair>(fleet: &Fleet<P>, adjust: impl FnOnce(&mut RouterOptions)) -> Option<ErrorCode> {
    let options = fleet.options("x", "x", &Events::default(), adjust);
    Router::new(options, fleet.backends(&ManualClock::new())).err().map(|error| error.code())
}

/// Work that never returns, counted from this call on.
fn work_without_end(handle: &Handle) -> JoinHandle<Result<(), TenureError>> {
    tokio::spawn(handle.run_async(|_ledger| future::pending::<()>()))
}
