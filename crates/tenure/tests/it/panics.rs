//! A panic at any step of what a tenure's tasks do is the failure of that step: whoever waits is told, the tenant can be opened again, and
//! nothing that was acknowledged is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_tenure::{Backends, Handle, LeaseState, Phase, Router, RouterOptions, TenureError};
use leasehold_testkit::{
    EmbeddedPair, Events, Fleet, ManualClock, PATIENCE, Pair, TTL, by_code, event, eventually, insert,
    keys_of, tenant, within,
};
use leasehold_types::{
    Act, ErrorCode, LeaseKey,
    Point::{self, After, Before},
    Points,
};

/// Panics once at the point that it is armed with.
#[derive(Debug, Default)]
struct Mine {
    at: Mutex<Option<Point>>,
    met: AtomicU64,
    /// Checkpoints that came to their end.
    checkpoints: AtomicU64,
}

impl Points for Mine {
    fn reached(&self, point: Point, _: Option<&LeaseKey>) {
        if point == After(Act::LedgerCheckpoint) {
            self.checkpoints.fetch_add(1, Ordering::SeqCst);
        }
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if *at == Some(point) {
            *at = None;
            drop(at);
            self.met.fetch_add(1, Ordering::SeqCst);
            panic!("at {point}");
        }
    }
}

struct Stage<P> {
    fleet: Fleet<P>,
    mine: Arc<Mine>,
    router: Router,
    events: Events,
    clock: ManualClock,
}

impl<P: Pair> Stage<P> {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(adjust: impl FnOnce(&mut RouterOptions)) -> Self {
        let fleet = Fleet::<P>::manual().await;
        let (mine, events) = (Arc::new(Mine::default()), Events::default());
        let clock = ManualClock::new();
        let backends = Backends { points: mine.clone(), ..fleet.backends(&clock) };
        let router = Router::new(fleet.options("a", "a", &events, adjust), backends).expect("valid options");
        Self { fleet, mine, router, events, clock }
    }

    fn arm(&self, point: Point) {
        *self.mine.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(point);
    }

    /// That it panicked where it was to, once, and is disarmed.
    fn panicked(&self, point: Point) {
        assert_eq!(self.mine.met.swap(0, Ordering::SeqCst), 1, "{point} was not reached");
    }

    async fn open(&self, key: &LeaseKey) -> Handle {
        within(PATIENCE, "an open", self.router.open(key))
            .await
            .unwrap_or_else(|error| panic!("{key}: {error}"))
    }

    /// Opens it anew, after what is there was handed off.
    async fn reopened_with(&self, key: &LeaseKey, keys: &[&str], point: Point) {
        let handle = self.open(key).await;
        assert_eq!(keys_of(&handle), keys, "{point}");
        within(PATIENCE, "the handoff", handle.handoff())
            .await
            .unwrap_or_else(|error| panic!("{point}: {error}"));
    }

    async fn time_passes(&self) {
        self.fleet.advance(TTL + Duration::from_millis(1)).await;
        self.clock.advance(TTL + Duration::from_millis(1));
    }

    async fn is_free(&self, key: &LeaseKey) -> bool {
        let row = self.fleet.lease_store().read(key).await.expect("the row");
        row.is_none_or(|row| row.owner.is_none())
    }
}

fn both(acts: &[Act]) -> Vec<Point> {
    acts.iter().flat_map(|act| [Before(*act), After(*act)]).collect()
}

fn told<T>(point: Point, outcome: Result<T, TenureError>) {
    match by_code(outcome) {
        Err(ErrorCode::Internal) => {}
        Err(code) => panic!("{point}: {code}"),
        Ok(_) => panic!("{point}: it succeeded"),
    }
}

async fn an_opening<P: Pair>() {
    let stage = Stage::<P>::new().await;
    for point in both(&[
        Act::OpenAcquire,
        Act::OpenRoot,
        Act::OpenFloors,
        Act::OpenList,
        Act::OpenReadEntry,
        Act::OpenSeal,
        Act::OpenPin,
        Act::OpenFetch,
        Act::OpenRenew,
        Act::OpenSalvage,
        Act::OpenInstall,
        Act::OpenLedger,
    ]) {
        let key = tenant(&point.to_string());
        let handle = stage.open(&key).await;
        insert(&handle, "k-1");
        handle.handoff().await.expect("handed off");

        stage.arm(point);
        let opens = futures::future::join(stage.router.open(&key), stage.router.open(&key));
        let (begun, joined) = within(PATIENCE, "who waits for the opening", opens).await;
        told(point, begun);
        told(point, joined);
        stage.panicked(point);
        assert_eq!(stage.router.tenants(), 0, "{point}");
        // Where nobody knows whether it was taken the lease runs out.
        let is_known = point != After(Act::OpenAcquire);
        assert_eq!(stage.is_free(&key).await, is_known, "{point}");
        if !is_known {
            let held = within(PATIENCE, "an open", stage.router.open(&key)).await;
            assert_eq!(by_code(held).map(drop), Err(ErrorCode::LeaseHeld));
            stage.time_passes().await;
        }
        stage.reopened_with(&key, &["k-1"], point).await;
    }
}

async fn an_upload<P: Pair>() {
    let stage = Stage::<P>::new().await;
    for point in both(&[
        Act::PublishImage,
        Act::PublishEncode,
        Act::PublishUpload,
        Act::PublishManifest,
        Act::PublishRow,
        Act::PublishDeadline,
        Act::HandoffImage,
        Act::HandoffUpload,
        Act::HandoffManifest,
        Act::HandoffDeadline,
    ]) {
        let key = tenant(&point.to_string());
        let handle = stage.open(&key).await;
        insert(&handle, "k-1");
        stage.arm(point);
        if point.act().name().starts_with("publish.") {
            told(point, within(PATIENCE, "the snapshot", handle.snapshot()).await);
        } else {
            told(point, within(PATIENCE, "the handoff", handle.handoff()).await);
        }
        stage.panicked(point);
        assert_eq!(handle.status().phase, Phase::Serving, "{point}");
        insert(&handle, "k-2");
        within(PATIENCE, "the next one", handle.snapshot())
            .await
            .unwrap_or_else(|error| panic!("{point}: {error}"));
        within(PATIENCE, "the handoff", handle.handoff())
            .await
            .unwrap_or_else(|error| panic!("{point}: {error}"));
        stage.reopened_with(&key, &["k-1", "k-2"], point).await;
    }
}

async fn a_release<P: Pair>() {
    let stage = Stage::<P>::new().await;
    for point in both(&[Act::ReleaseDiscard, Act::ReleaseRow, Act::ReleaseSalvage]) {
        let key = tenant(&point.to_string());
        let handle = stage.open(&key).await;
        insert(&handle, "k-1");
        let is_abandoned = point.act() == Act::ReleaseSalvage;
        if is_abandoned {
            handle.snapshot().await.expect("published");
            insert(&handle, "k-2");
        }
        stage.arm(point);
        let ended = if is_abandoned {
            within(PATIENCE, "the abandon", handle.abandon()).await
        } else {
            within(PATIENCE, "the handoff", handle.handoff()).await
        };
        ended.unwrap_or_else(|error| panic!("{point}: {error}"));
        stage.panicked(point);
        assert!(stage.is_free(&key).await, "{point}: the release was asked for again");
        stage.reopened_with(&key, &["k-1"], point).await;
    }
}

async fn a_forget<P: Pair>() {
    let stage = Stage::<P>::new().await;
    for point in both(&[
        Act::ForgetRaiseFloor,
        Act::ForgetFloorObject,
        Act::ForgetList,
        Act::ForgetDelete,
        Act::ForgetLocal,
        Act::ForgetReceipt,
        // Of a tenant that is not open: it is acquired to be forgotten.
        Act::OpenAcquire,
    ]) {
        let key = tenant(&point.to_string());
        let handle = stage.open(&key).await;
        insert(&handle, "k-1");
        handle.snapshot().await.expect("published");
        if point.act() == Act::OpenAcquire {
            handle.handoff().await.expect("handed off");
        }
        stage.arm(point);
        let forgets = stage.router.forget(&key);
        told(point, within(PATIENCE, "who waits for the forget", forgets).await);
        stage.panicked(point);
        if point == After(Act::OpenAcquire) {
            stage.time_passes().await;
        }
        let receipt = within(PATIENCE, "the next forget", stage.router.forget(&key)).await;
        receipt.unwrap_or_else(|error| panic!("{point}: {error}"));
        assert!(stage.fleet.stored(&format!("{key}/")).await.is_empty(), "{point}");
        stage.reopened_with(&key, &[], point).await;
    }
}

async fn what_is_done_beside<P: Pair>() {
    let stage = Stage::<P>::new().await;
    for point in both(&[Act::SweepFloors, Act::SweepList]) {
        let key = tenant(&point.to_string());
        stage.events.clear();
        stage.arm(point);
        let handle = stage.open(&key).await;
        eventually(PATIENCE, "the sweep has failed", async || stage.events.named("sweep_failed") == 1).await;
        stage.panicked(point);
        insert(&handle, "k-1");
        within(PATIENCE, "the handoff", handle.handoff())
            .await
            .unwrap_or_else(|error| panic!("{point}: {error}"));
        stage.reopened_with(&key, &["k-1"], point).await;
    }

    let key = tenant("recheck");
    stage.open(&key).await.forget().await.expect("forgotten");
    stage.time_passes().await;
    stage.arm(Before(Act::RecheckList));
    assert_eq!(within(PATIENCE, "a round", stage.router.keep_house()).await.rechecked, 0);
    stage.panicked(Before(Act::RecheckList));
    assert_eq!(within(PATIENCE, "the next", stage.router.keep_house()).await.rechecked, 1, "it stayed due");
}

macro_rules! over_each_pair {
    ($($row:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $row() {
                    Box::pin(super::$row::<leasehold_testkit::EmbeddedPair>()).await;
                }
            )*
        }
        mod cloud {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $row() {
                    Box::pin(super::$row::<leasehold_testkit::CloudPair>()).await;
                }
            )*
        }
    };
}

over_each_pair!(an_opening, an_upload, a_release, a_forget, what_is_done_beside);

/// What comes with time is one task for a tenure's whole life.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_with_time_goes_on() {
    let stage = Stage::<EmbeddedPair>::new().await;
    let handle = stage.open(&tenant("clockwork")).await;
    stage.arm(Before(Act::LedgerCheckpoint));
    let big = |number: usize| {
        let text = serde_json::json!({
            "kind": "test.write", "actor": "test", "payload": "x".repeat(200_000), "subject_id": number.to_string(),
        });
        serde_json::from_value(text).expect("an event")
    };
    for number in 0..32 {
        handle.append(vec![big(number)]).await.expect("appended");
    }
    eventually(PATIENCE, "it panics", async || stage.mine.met.load(Ordering::SeqCst) == 1).await;
    eventually(PATIENCE, "a checkpoint", async || stage.mine.checkpoints.load(Ordering::SeqCst) > 0).await;
    handle.append(vec![event("after")]).await.expect("appended");
}

/// The question whether a lapsed lease may be resumed is asked again by the next renewal.
#[tokio::test(flavor = "multi_thread")]
async fn a_lapsed_lease_is_asked_about_again() {
    let stage = Stage::<EmbeddedPair>::with(|options| options.auto_renew = true).await;
    let handle = stage.open(&tenant("lapsed")).await;
    insert(&handle, "k-1");
    stage.arm(Before(Act::ResumeReadBase));
    stage.time_passes().await;
    eventually(PATIENCE, "it panics", async || stage.mine.met.load(Ordering::SeqCst) == 1).await;
    eventually(PATIENCE, "it is resumed", async || handle.status().lease == LeaseState::Held).await;
    assert_eq!(keys_of(&handle), ["k-1"]);
}
