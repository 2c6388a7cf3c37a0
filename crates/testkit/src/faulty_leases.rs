//! A lease store whose failures a test chooses.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use leasehold_lease::{
    Acquisition, Announced, Announcement, Claim, LeaseError, LeaseRow, LeaseStore, Recheck, Renewal,
    ReplicaRow,
};
use leasehold_types::{Epoch, Floor, LeaseKey, OrgSlug, ReplicaId, TenantId, TenureId};
use tokio::sync::watch;
use uuid::Uuid;

/// An operation of a lease store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseOp {
    /// [`LeaseStore::acquire`] and [`LeaseStore::acquire_to_forget`].
    Acquire,
    /// [`LeaseStore::pause`].
    Pause,
    /// [`LeaseStore::resume`].
    Resume,
    /// [`LeaseStore::renew`].
    Renew,
    /// [`LeaseStore::release`].
    Release,
    /// [`LeaseStore::raise_floor`].
    RaiseFloor,
    /// [`LeaseStore::store_receipt`].
    StoreReceipt,
    /// [`LeaseStore::advance_epoch`].
    AdvanceEpoch,
    /// [`LeaseStore::read`].
    Read,
    /// [`LeaseStore::list`].
    List,
    /// [`LeaseStore::due_rechecks`].
    DueRechecks,
    /// [`LeaseStore::schedule_recheck`].
    ScheduleRecheck,
    /// [`LeaseStore::announce`].
    Announce,
    /// [`LeaseStore::retire`].
    Retire,
    /// [`LeaseStore::replicas`].
    Replicas,
    /// [`LeaseStore::bind_derivation_key`].
    BindDerivationKey,
}

const OPS: usize = LeaseOp::BindDerivationKey as usize + 1;

/// How many renewals are remembered; older ones are forgotten.
const RENEWALS_MAX: usize = 1_000;

type Hook = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;
type Hangs = Option<Box<dyn Fn(&Claim) -> bool + Send + Sync>>;

/// A wrapper that is a lease store itself and does what the one inside does, except where a test said otherwise.
///
/// A call meets its faults in this order: it is counted, it waits while its operation is held, the outage, the store inside, the
/// hook after it, the loss of its answer. Clones share their faults.
#[derive(Clone)]
pub struct FaultyLeases {
    inner: Arc<dyn LeaseStore>,
    shared: Arc<Shared>,
}

struct Shared {
    faults: Mutex<Faults>,
    /// Per operation: how many calls were started, and how many holds are on it.
    ops: [(watch::Sender<u64>, watch::Sender<usize>); OPS],
    /// Which claims make a renewal hang that carries one of them.
    hangs: watch::Sender<Hangs>,
    /// How many calls are in the store inside.
    inside: watch::Sender<usize>,
}

/// A call that is in the store inside.
struct Inside<'a>(&'a watch::Sender<usize>);

impl<'a> Inside<'a> {
    fn enter(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|inside| *inside += 1);
        Self(count)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|inside| *inside -= 1);
    }
}

#[derive(Default)]
struct Faults {
    is_down: bool,
    /// Whether `hold_renewals` holds them.
    are_renewals_held: bool,
    after: Vec<(LeaseOp, Hook)>,
    lost_answers: Vec<LeaseOp>,
    renewals: VecDeque<Vec<Claim>>,
}

/// A hold on an operation: its calls wait in front of the store until this is dropped.
#[must_use = "dropping it lets the calls go"]
pub struct HeldCalls {
    shared: Arc<Shared>,
    op: LeaseOp,
}

impl HeldCalls {
    /// Lets the calls go, unless another hold is on them.
    pub fn let_go(self) {}
}

impl Drop for HeldCalls {
    fn drop(&mut self) {
        self.shared.ops[self.op as usize].1.send_modify(|holds| *holds -= 1);
    }
}

impl fmt::Debug for HeldCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldCalls").field(&self.op).finish()
    }
}

impl FaultyLeases {
    /// `inner` without any fault yet.
    #[must_use]
    pub fn new(inner: Arc<dyn LeaseStore>) -> Self {
        let ops = std::array::from_fn(|_| (watch::Sender::new(0), watch::Sender::new(0)));
        let (hangs, inside) = (watch::Sender::new(None), watch::Sender::new(0));
        Self { inner, shared: Arc::new(Shared { faults: Mutex::default(), ops, hangs, inside }) }
    }

    /// Takes the store down (every call that has not reached the store inside fails with an injected outage) or brings it
    /// back.
    pub fn down(&self, is_down: bool) {
        self.faults().is_down = is_down;
    }

    /// Holds the calls of `op` that come from now on in front of the store.
    pub fn hold(&self, op: LeaseOp) -> HeldCalls {
        self.shared.ops[op as usize].1.send_modify(|holds| *holds += 1);
        HeldCalls { shared: Arc::clone(&self.shared), op }
    }

    /// Holds renewals in front of the store until [`release_renewals`](Self::release_renewals).
    pub fn hold_renewals(&self) {
        if !std::mem::replace(&mut self.faults().are_renewals_held, true) {
            self.shared.ops[LeaseOp::Renew as usize].1.send_modify(|holds| *holds += 1);
        }
    }

    /// Lets the renewals go that [`hold_renewals`](Self::hold_renewals) held.
    pub fn release_renewals(&self) {
        if std::mem::take(&mut self.faults().are_renewals_held) {
            self.shared.ops[LeaseOp::Renew as usize].1.send_modify(|holds| *holds -= 1);
        }
    }

    /// Makes every renewal hang in front of the store that carries a claim which is `hung`, until
    /// [`unhang_renewals`](Self::unhang_renewals): one row that somebody else has locked.
    pub fn hang_renewals_of(&self, hung: impl Fn(&Claim) -> bool + Send + Sync + 'static) {
        self.shared.hangs.send_replace(Some(Box::new(hung)));
    }

    /// Ends what [`hang_renewals_of`](Self::hang_renewals_of) began, for the renewals that hang too.
    pub fn unhang_renewals(&self) {
        self.shared.hangs.send_replace(None);
    }

    /// Waits until the store inside has answered every call that reached it; held and hanging ones have not.
    pub async fn until_quiet(&self) {
        let quiet = self.shared.inside.subscribe().wait_for(|inside| *inside == 0).await.is_ok();
        assert!(quiet, "the sender lives as long as the store");
    }

    /// The claims of each renewal that was started, oldest first.
    #[must_use]
    pub fn renewals(&self) -> Vec<Vec<Claim>> {
        self.faults().renewals.iter().cloned().collect()
    }

    /// How many renewals were started, held and failed ones included.
    #[must_use]
    pub fn renewals_started(&self) -> u64 {
        self.calls(LeaseOp::Renew)
    }

    /// How many calls of `op` were started, held and failed ones included.
    #[must_use]
    pub fn calls(&self, op: LeaseOp) -> u64 {
        *self.shared.ops[op as usize].0.borrow()
    }

    /// Waits until `count` calls of `op` were started.
    pub async fn until_calls(&self, op: LeaseOp, count: u64) {
        let started =
            self.shared.ops[op as usize].0.subscribe().wait_for(|calls| *calls >= count).await.is_ok();
        assert!(started, "the sender lives as long as the store");
    }

    /// Runs `hook` after the next `op` that succeeds, before its answer is given.
    pub fn after_next(&self, op: LeaseOp, hook: impl FnOnce() -> BoxFuture<'static, ()> + Send + 'static) {
        self.faults().after.push((op, Box::new(hook)));
    }

    /// Pauses the next forget right after it raised the floor, for as long as `hook` takes (contract row F7).
    pub fn after_raise_floor(&self, hook: impl FnOnce() -> BoxFuture<'static, ()> + Send + 'static) {
        self.after_next(LeaseOp::RaiseFloor, hook);
    }

    /// Executes the next `op` and tells its caller an error.
    pub fn lose_answer_of(&self, op: LeaseOp) {
        self.faults().lost_answers.push(op);
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T>(
        &self,
        op: LeaseOp,
        inner: impl Future<Output = Result<T, LeaseError>>,
    ) -> Result<T, LeaseError> {
        self.call_about(op, &[], inner).await
    }

    async fn call_about<T>(
        &self,
        op: LeaseOp,
        claims: &[Claim],
        inner: impl Future<Output = Result<T, LeaseError>>,
    ) -> Result<T, LeaseError> {
        let (calls, holds) = &self.shared.ops[op as usize];
        calls.send_modify(|calls| *calls += 1);
        // The senders live in `self`, so that a wait ends by what it waits for alone.
        let _ = holds.subscribe().wait_for(|holds| *holds == 0).await;
        let goes_on = |hangs: &Hangs| hangs.as_ref().is_none_or(|hung| !claims.iter().any(hung));
        let _ = self.shared.hangs.subscribe().wait_for(goes_on).await;
        if self.faults().is_down {
            return Err(injected(op, "injected outage"));
        }
        let inside = Inside::enter(&self.shared.inside);
        let answer = inner.await;
        drop(inside);
        let answer = answer?;
        let hook = {
            let mut faults = self.faults();
            let at = faults.after.iter().position(|(after, _)| *after == op);
            at.map(|at| faults.after.remove(at).1)
        };
        if let Some(hook) = hook {
            hook().await;
        }
        let mut faults = self.faults();
        match faults.lost_answers.iter().position(|lost| *lost == op) {
            None => Ok(answer),
            Some(at) => {
                faults.lost_answers.remove(at);
                Err(injected(op, "the answer was lost (injected)"))
            }
        }
    }
}

fn injected(op: LeaseOp, detail: &str) -> LeaseError {
    LeaseError::Unavailable { action: format!("{op:?}"), detail: detail.into() }
}

impl fmt::Debug for FaultyLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyLeases").field(&self.inner).finish()
    }
}

#[async_trait]
impl LeaseStore for FaultyLeases {
    async fn acquire(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        self.call(LeaseOp::Acquire, self.inner.acquire(key, replica, tenure, ttl)).await
    }

    async fn acquire_to_forget(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        self.call(LeaseOp::Acquire, self.inner.acquire_to_forget(key, replica, tenure, ttl)).await
    }

    async fn pause(&self, key: &LeaseKey) -> Result<Option<bool>, LeaseError> {
        self.call(LeaseOp::Pause, self.inner.pause(key)).await
    }

    async fn resume(&self, key: &LeaseKey) -> Result<bool, LeaseError> {
        self.call(LeaseOp::Resume, self.inner.resume(key)).await
    }

    async fn renew(&self, claims: &[Claim], ttl: Duration) -> Result<Vec<Renewal>, LeaseError> {
        {
            let mut faults = self.faults();
            if faults.renewals.len() == RENEWALS_MAX {
                faults.renewals.pop_front();
            }
            faults.renewals.push_back(claims.to_vec());
        }
        self.call_about(LeaseOp::Renew, claims, self.inner.renew(claims, ttl)).await
    }

    async fn release(&self, claim: &Claim) -> Result<bool, LeaseError> {
        self.call(LeaseOp::Release, self.inner.release(claim)).await
    }

    async fn raise_floor(&self, claim: &Claim, recheck_after: Duration) -> Result<Option<Floor>, LeaseError> {
        self.call(LeaseOp::RaiseFloor, self.inner.raise_floor(claim, recheck_after)).await
    }

    async fn store_receipt(&self, claim: &Claim, receipt: &str) -> Result<bool, LeaseError> {
        self.call(LeaseOp::StoreReceipt, self.inner.store_receipt(claim, receipt)).await
    }

    async fn advance_epoch(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, LeaseError> {
        self.call(LeaseOp::AdvanceEpoch, self.inner.advance_epoch(claim, beyond)).await
    }

    async fn read(&self, key: &LeaseKey) -> Result<Option<LeaseRow>, LeaseError> {
        self.call(LeaseOp::Read, self.inner.read(key)).await
    }

    async fn list(
        &self,
        org: &OrgSlug,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<LeaseRow>, LeaseError> {
        self.call(LeaseOp::List, self.inner.list(org, after, limit)).await
    }

    async fn due_rechecks(&self, limit: u32) -> Result<Vec<Recheck>, LeaseError> {
        self.call(LeaseOp::DueRechecks, self.inner.due_rechecks(limit)).await
    }

    async fn schedule_recheck(&self, recheck: &Recheck, next: Option<Duration>) -> Result<bool, LeaseError> {
        self.call(LeaseOp::ScheduleRecheck, self.inner.schedule_recheck(recheck, next)).await
    }

    async fn announce(
        &self,
        announcement: &Announcement,
        alive: Duration,
        supersede: bool,
    ) -> Result<Announced, LeaseError> {
        self.call(LeaseOp::Announce, self.inner.announce(announcement, alive, supersede)).await
    }

    async fn retire(&self, replica: &ReplicaId, instance: Uuid) -> Result<(), LeaseError> {
        self.call(LeaseOp::Retire, self.inner.retire(replica, instance)).await
    }

    async fn replicas(&self) -> Result<Vec<ReplicaRow>, LeaseError> {
        self.call(LeaseOp::Replicas, self.inner.replicas()).await
    }

    async fn bind_derivation_key(&self, fingerprint: &str) -> Result<String, LeaseError> {
        self.call(LeaseOp::BindDerivationKey, self.inner.bind_derivation_key(fingerprint)).await
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join};
    use leasehold_lease::SqliteLeaseStore;
    use tempfile::TempDir;

    use super::*;
    use crate::ManualClock;

    const TTL: Duration = Duration::from_secs(10);

    fn stores() -> (TempDir, Arc<dyn LeaseStore>, FaultyLeases) {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new());
        let inner: Arc<dyn LeaseStore> =
            Arc::new(SqliteLeaseStore::open(&dir.path().join("leases.db"), clock).unwrap());
        (dir, Arc::clone(&inner), FaultyLeases::new(inner))
    }

    fn claim(tenant: &str) -> Claim {
        Claim {
            key: format!("acme/{tenant}").parse().unwrap(),
            replica: "a".parse().unwrap(),
            tenure: TenureId::new(Uuid::from_u128(1)),
            epoch: Epoch::FIRST,
        }
    }

    async fn acquire(store: &dyn LeaseStore, claim: &Claim) -> Result<Acquisition, LeaseError> {
        store.acquire(&claim.key, &claim.replica, claim.tenure, TTL).await
    }

    #[tokio::test]
    async fn an_outage_refuses_every_call_until_it_ends() {
        let (_dir, inner, faulty) = stores();
        faulty.down(true);
        let error = acquire(&faulty, &claim("t")).await.unwrap_err();
        assert!(error.to_string().contains("injected outage"), "{error}");
        assert!(faulty.read(&claim("t").key).await.is_err());
        faulty.down(false);
        assert_eq!(faulty.read(&claim("t").key).await.unwrap(), None);
        assert_eq!(inner.read(&claim("t").key).await.unwrap(), None, "nothing was executed");
        assert_eq!((faulty.calls(LeaseOp::Acquire), faulty.calls(LeaseOp::Read)), (1, 2));
    }

    #[tokio::test]
    async fn a_held_operation_waits_in_front_of_the_store_until_the_last_hold_goes() {
        let (_dir, _, faulty) = stores();
        acquire(&faulty, &claim("t")).await.unwrap();
        faulty.hold_renewals();
        faulty.hold_renewals();
        let hold = faulty.hold(LeaseOp::Renew);
        let claims = [claim("t")];
        let mut renewal = faulty.renew(&claims, TTL);
        assert!((&mut renewal).now_or_never().is_none());
        faulty.until_calls(LeaseOp::Renew, 1).await;
        assert_eq!(faulty.renewals_started(), 1);
        faulty.release_renewals();
        assert!((&mut renewal).now_or_never().is_none());
        faulty.until_quiet().await;
        assert!(faulty.read(&claim("t").key).await.unwrap().is_some(), "other operations go on");
        hold.let_go();
        assert_eq!(renewal.await.unwrap(), [Renewal::Granted]);
    }

    #[tokio::test]
    async fn what_is_let_go_into_an_outage_fails() {
        let (_dir, _, faulty) = stores();
        let hold = faulty.hold(LeaseOp::Acquire);
        let wanted = claim("t");
        let mut call = faulty.acquire(&wanted.key, &wanted.replica, wanted.tenure, TTL);
        assert!((&mut call).now_or_never().is_none());
        faulty.down(true);
        drop(hold);
        assert!(call.await.is_err());
    }

    #[tokio::test]
    async fn a_hook_runs_once_when_the_floor_is_raised_and_before_that_is_told() {
        let (_dir, inner, faulty) = stores();
        acquire(&faulty, &claim("t")).await.unwrap();
        let (hook, seen) = tokio::sync::oneshot::channel();
        let looks = Arc::clone(&inner);
        faulty.after_raise_floor(move || {
            Box::pin(async move {
                let _ = hook.send(looks.read(&claim("t").key).await.unwrap().unwrap().floor);
            })
        });
        let wanted = claim("t");
        let (raised, seen) = join(faulty.raise_floor(&wanted, TTL), seen).await;
        assert_eq!(
            (raised.unwrap(), seen.unwrap()),
            (Some(Floor::at(Epoch::FIRST)), Floor::at(Epoch::FIRST))
        );
        assert!(faulty.raise_floor(&wanted, TTL).await.is_ok(), "once");
    }

    #[tokio::test]
    async fn a_lost_answer_is_of_an_executed_call() {
        let (_dir, inner, faulty) = stores();
        faulty.lose_answer_of(LeaseOp::Acquire);
        assert!(acquire(&faulty, &claim("t")).await.is_err());
        assert!(inner.read(&claim("t").key).await.unwrap().unwrap().is_of(&claim("t")));
        assert!(acquire(&faulty, &claim("t")).await.is_ok(), "once");
    }

    #[tokio::test]
    async fn a_renewal_hangs_by_one_of_its_claims() {
        let (_dir, _, faulty) = stores();
        acquire(&faulty, &claim("t")).await.unwrap();
        faulty.hang_renewals_of(|claim| claim.key.tenant().as_str() == "hung");
        let both = [claim("t"), claim("hung")];
        let mut renewal = faulty.renew(&both, TTL);
        assert!((&mut renewal).now_or_never().is_none());
        assert_eq!(faulty.renew(&both[..1], TTL).await.unwrap(), [Renewal::Granted]);
        faulty.unhang_renewals();
        assert_eq!(renewal.await.unwrap(), [Renewal::Granted, Renewal::Refused]);
        assert_eq!(faulty.renewals(), [both.to_vec(), both[..1].to_vec()]);
    }
}
