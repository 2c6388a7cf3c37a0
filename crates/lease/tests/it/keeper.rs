//! The one renewal chain: its rhythm, its chunks, and what does not disturb it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_lease::{
    HeldLease, HeldOptions, Keeper, KeeperOptions, LeaseTimesError, Registration, RenewalOutcome, RenewalSink,
};
use leasehold_testkit::{LeaseOp, ManualTimer};
use leasehold_types::{Clock as _, Epoch, NoPoints};
use tokio::sync::watch;

use crate::stage::{MARGIN, SECOND, Stage, TTL};

/// Below the attempt limit of 4 s, as the default of a third of the ttl is.
const EVERY: Duration = Duration::from_secs(3);
const MILLISECOND: Duration = Duration::from_millis(1);
/// `EVERY` without that millisecond.
const JUST_BELOW: Duration = Duration::from_millis(2_999);

/// A keeper over a store with faults, in time that is moved by hand.
struct Chain {
    stage: Stage,
    timer: ManualTimer,
    keeper: Keeper,
}

/// A registered lease, and what it was told so far.
struct Kept {
    lease: Arc<HeldLease>,
    told: Told,
    registration: Registration,
}

/// `granted`, `lapsed` (granted after the deadline), `refused` or `failed`.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<&'static str>>>);

struct Sink(Told, Arc<HeldLease>);

impl RenewalSink for Sink {
    fn told(&self, outcome: RenewalOutcome) {
        let word = match outcome {
            RenewalOutcome::Granted { sent_at } if self.1.extend_if_proven(sent_at) => "granted",
            RenewalOutcome::Granted { .. } => "lapsed",
            RenewalOutcome::Refused => "refused",
            RenewalOutcome::Failed(_) => "failed",
        };
        self.0.0.lock().unwrap().push(word);
    }
}

impl Told {
    fn now(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

impl Chain {
    fn new(chunk: usize) -> Self {
        let options = KeeperOptions::new(Stage::times()).with_every(EVERY).unwrap();
        let options = options.with_chunk(chunk).unwrap();
        let (stage, timer) = (Stage::new(), ManualTimer::new());
        let clock = Arc::new(stage.clock.clone());
        let keeper = Keeper::start(
            Arc::clone(&stage.store),
            clock,
            Arc::new(timer.clone()),
            Arc::new(NoPoints),
            options,
        );
        Self { stage, timer, keeper }
    }

    async fn keep(&self, tenant: &str) -> Kept {
        let lease = self.stage.hold(&format!("acme/{tenant}"), "a", 1).await;
        let told = Told::default();
        let sink = Arc::new(Sink(told.clone(), Arc::clone(&lease)));
        let registration = self.keeper.register(Arc::clone(&lease), sink).unwrap();
        Kept { lease, told, registration }
    }

    /// Time passes for everybody, and the chain acts on it until it waits for time, or for a call that does not reach the store.
    async fn pass(&self, time: Duration) {
        self.stage.clock.advance(time);
        self.timer.elapse(time);
        self.settle().await;
    }

    async fn settle(&self) {
        // An answer may let the chain ask again, for as many chunks as there are.
        for _ in 0..16 {
            // These tests run on one thread: each yield lets the chain run until it waits.
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            self.stage.faults.until_quiet().await;
        }
    }

    /// The tenants of each renewal that was started.
    fn renewals(&self) -> Vec<Vec<String>> {
        let renewals = self.stage.faults.renewals().into_iter();
        renewals.map(|batch| batch.iter().map(|claim| claim.key.tenant().to_string()).collect()).collect()
    }

    fn started(&self) -> u64 {
        self.stage.faults.renewals_started()
    }
}

#[tokio::test]
async fn all_leases_are_renewed_together_once_in_an_interval() {
    let chain = Chain::new(1_000);
    let kept = [chain.keep("c").await, chain.keep("a").await, chain.keep("b").await];
    chain.pass(JUST_BELOW).await;
    assert_eq!(chain.started(), 0);
    chain.pass(MILLISECOND).await;
    for _ in 0..4 {
        chain.pass(EVERY).await;
    }
    assert!(kept.iter().all(|kept| kept.told.now() == ["granted"; 5]));
    assert_eq!(chain.renewals(), [["a", "b", "c"]; 5]);
}

#[tokio::test]
async fn leases_travel_in_chunks_a_few_at_a_time() {
    let chain = Chain::new(2);
    let mut kept = Vec::new();
    for tenant in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        kept.push(chain.keep(tenant).await);
    }
    chain.stage.faults.hold_renewals();
    chain.pass(EVERY).await;
    assert_eq!(chain.renewals(), [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]], "four side by side");
    chain.stage.faults.release_renewals();
    chain.settle().await;
    assert!(kept.iter().all(|kept| kept.told.now() == ["granted"]));
    assert_eq!(chain.renewals().last().unwrap(), &["i"]);
}

#[tokio::test]
async fn a_slow_round_delays_the_next_and_doubles_none() {
    let chain = Chain::new(1_000);
    let kept = chain.keep("a").await;
    chain.stage.faults.hold_renewals();
    chain.pass(EVERY).await;
    chain.pass(2 * SECOND).await;
    assert_eq!(chain.started(), 1);
    chain.stage.faults.release_renewals();
    chain.settle().await;
    assert_eq!(kept.told.now(), ["granted"]);
    // The interval counts from the round's end.
    chain.pass(JUST_BELOW).await;
    assert_eq!(chain.started(), 1);
    chain.pass(MILLISECOND).await;
    assert_eq!(chain.started(), 2);
    assert_eq!(kept.told.now(), ["granted", "granted"]);
}

#[tokio::test]
async fn a_renewal_that_outlasts_its_interval_holds_up_nobody_else_and_is_never_doubled() {
    let chain = Chain::new(1);
    let (slow, other) = (chain.keep("slow").await, chain.keep("other").await);
    chain.stage.faults.hang_renewals_of(|claim| claim.key.tenant().as_str() == "slow");
    chain.pass(EVERY).await;
    chain.pass(EVERY).await;
    assert_eq!(other.told.now(), ["granted", "granted"]);
    let of_slow = |chain: &Chain| chain.renewals().iter().filter(|batch| *batch == &["slow"]).count();
    assert_eq!(of_slow(&chain), 1, "one is outstanding");
    chain.stage.faults.unhang_renewals();
    chain.settle().await;
    assert_eq!(slow.told.now(), ["granted"]);
    chain.settle().await;
    // It waits its own interval out from the end of that, while the others' rounds go on.
    chain.pass(JUST_BELOW).await;
    assert_eq!(of_slow(&chain), 1);
    chain.pass(MILLISECOND).await;
    assert_eq!(of_slow(&chain), 2);
    chain.pass(EVERY).await;
    assert!(slow.lease.proven(chain.stage.clock.now()));
}

#[tokio::test]
async fn one_hung_row_is_soon_alone_and_the_rest_are_kept() {
    const LIMIT: Duration = Duration::from_secs(4);
    let chain = Chain::new(1_000);
    let mut kept = Vec::new();
    for tenant in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        kept.push(chain.keep(tenant).await);
    }
    chain.stage.faults.hang_renewals_of(|claim| claim.key.tenant().as_str() == "c");
    chain.pass(EVERY).await;
    chain.pass(LIMIT).await;
    // The first attempt tripped its limit and was asked again at once, in halves: the half without the hung row is kept in time.
    assert!(kept[4..].iter().all(|kept| kept.told.now() == ["failed", "granted"]));
    assert_eq!(chain.renewals()[1..], [["a", "b", "c", "d"], ["e", "f", "g", "h"]]);
    chain.pass(LIMIT).await;
    chain.pass(LIMIT).await;
    assert_eq!(chain.renewals().iter().filter(|batch| *batch == &["c"]).count(), 1, "it is alone");
    let all_but_c = ["a", "b", "d", "e", "f", "g", "h"];
    for _ in 0..3 {
        chain.pass(EVERY).await;
    }
    assert!(chain.renewals().iter().any(|batch| *batch == all_but_c), "the rest are together again");
    assert_eq!(chain.renewals().concat().iter().filter(|tenant| *tenant == "c").count(), 5);

    chain.stage.faults.unhang_renewals();
    chain.settle().await;
    for _ in 0..5 {
        chain.pass(EVERY).await;
    }
    assert_eq!(chain.renewals().last().unwrap(), &["a", "b", "c", "d", "e", "f", "g", "h"]);
    assert_eq!(kept[2].told.now().last(), Some(&"lapsed"), "its own still; its holder decides");
}

#[tokio::test]
async fn a_store_that_is_down_is_asked_on() {
    let chain = Chain::new(1_000);
    let kept = chain.keep("a").await;
    chain.stage.faults.down(true);
    for round in 1..=5 {
        chain.pass(EVERY).await;
        assert_eq!(kept.told.now(), ["failed"].repeat(round));
    }
    assert_eq!(chain.started(), 5, "no faster than usual");
    chain.stage.faults.down(false);
    chain.pass(EVERY).await;
    assert_eq!(kept.told.now().last(), Some(&"lapsed"), "its own still; its holder decides");
}

#[tokio::test]
async fn a_lost_lease_is_told_and_an_ended_one_is_not_asked_for() {
    let chain = Chain::new(1_000);
    let (lost, released, dropped) =
        (chain.keep("lost").await, chain.keep("released").await, chain.keep("dropped").await);
    chain.stage.clock.advance(TTL + SECOND);
    chain.stage.hold("acme/lost", "b", 2).await;
    released.lease.release().await.unwrap();
    drop(dropped.registration);
    assert_eq!(chain.keeper.registered(), 2);
    chain.pass(EVERY).await;
    assert_eq!(lost.told.now(), ["refused"]);
    assert_eq!(chain.renewals(), [["lost"]]);
    assert!(released.told.now().is_empty() && dropped.told.now().is_empty());
}

#[tokio::test]
async fn a_refusal_after_the_release_is_nothing() {
    let chain = Chain::new(1_000);
    let (released, kept) = (chain.keep("released").await, chain.keep("kept").await);
    chain.stage.faults.hold_renewals();
    chain.pass(EVERY).await;
    assert_eq!(chain.renewals(), [["kept", "released"]]);
    released.lease.release().await.unwrap();
    chain.stage.faults.release_renewals();
    chain.settle().await;
    assert_eq!(kept.told.now(), ["granted"]);
    assert!(released.told.now().is_empty());
}

#[tokio::test]
async fn a_refusal_of_an_epoch_that_was_raised_meanwhile_is_nothing() {
    let chain = Chain::new(1_000);
    let raised = chain.keep("raised").await;
    chain.stage.faults.hold_renewals();
    chain.pass(EVERY).await;
    raised.lease.advance_past(Epoch::new(7).unwrap()).await.unwrap();
    chain.stage.faults.release_renewals();
    chain.settle().await;
    assert!(raised.told.now().is_empty());
    chain.pass(EVERY).await;
    assert_eq!(raised.told.now(), ["granted"], "by its new epoch");
}

#[tokio::test]
async fn whoever_panics_when_told_harms_nobody() {
    let chain = Chain::new(1_000);
    let lease = chain.stage.hold("acme/a", "a", 1).await;
    let panics = |_: RenewalOutcome| panic!("on purpose");
    let _registration = chain.keeper.register(lease, Arc::new(panics)).unwrap();
    let kept = chain.keep("b").await;
    for round in 1..=3 {
        chain.pass(EVERY).await;
        assert_eq!(kept.told.now().len(), round);
    }
}

#[tokio::test]
async fn a_store_that_panics_is_asked_on() {
    let chain = Chain::new(1_000);
    let kept = chain.keep("a").await;
    chain.stage.faults.after_next(LeaseOp::Renew, || Box::pin(async { panic!("on purpose") }));
    chain.pass(EVERY).await;
    chain.pass(EVERY).await;
    assert_eq!(kept.told.now(), ["failed", "granted"]);
}

#[tokio::test]
async fn a_sink_may_end_registrations_and_begin_them() {
    let chain = Arc::new(Chain::new(1_000));
    let lease = chain.stage.hold("acme/a", "a", 1).await;
    let own: Arc<Mutex<Option<Registration>>> = Arc::default();
    let (slot, again) = (Arc::clone(&own), Arc::clone(&lease));
    let inner = Arc::downgrade(&chain);
    let (told, heard) = watch::channel(0);
    let sink = move |_: RenewalOutcome| {
        let chain = inner.upgrade().unwrap();
        let next = chain.keeper.register(Arc::clone(&again), Arc::new(|_: RenewalOutcome| ())).unwrap();
        *slot.lock().unwrap() = Some(next);
        told.send_modify(|told| *told += 1);
    };
    *own.lock().unwrap() = Some(chain.keeper.register(lease, Arc::new(sink)).unwrap());
    chain.pass(EVERY).await;
    assert_eq!(*heard.borrow(), 1);
    assert_eq!(chain.keeper.registered(), 1);
}

#[tokio::test]
async fn a_stopped_keeper_asks_no_more_even_while_a_call_hangs() {
    let chain = Chain::new(1_000);
    let kept = chain.keep("a").await;
    chain.stage.faults.hold_renewals();
    chain.pass(EVERY).await;
    assert_eq!(chain.started(), 1);
    chain.keeper.stop().await;
    chain.keeper.stop().await;
    chain.stage.faults.release_renewals();
    chain.pass(10 * EVERY).await;
    assert_eq!((chain.started(), chain.timer.sleepers()), (1, 0));
    assert!(kept.told.now().is_empty());
}

#[tokio::test]
async fn a_dropped_keeper_asks_no_more() {
    let Chain { stage, timer, keeper } = Chain::new(1_000);
    timer.until_sleepers(1).await;
    drop(keeper);
    timer.until_sleepers(0).await;
    assert_eq!(stage.faults.renewals_started(), 0);
}

#[tokio::test]
async fn a_lease_of_other_times_is_refused() {
    let stage = Stage::new();
    let options = KeeperOptions::new(HeldOptions::new(TTL / 2, MARGIN).unwrap());
    let clock = Arc::new(stage.clock.clone());
    let keeper = Keeper::start(
        Arc::clone(&stage.store),
        clock,
        Arc::new(ManualTimer::new()),
        Arc::new(NoPoints),
        options,
    );
    let lease = stage.hold("acme/a", "a", 1).await;
    let error = keeper.register(lease, Arc::new(|_: RenewalOutcome| ())).unwrap_err();
    assert!(matches!(error, LeaseTimesError::Mismatch { .. }));
    assert_eq!(error.code().as_str(), "invalid_configuration");
}
