//! What callers hold: the handle runs work, and ends or moves the tenure.

use std::{
    fmt,
    future::Future,
    sync::{Arc, PoisonError},
    time::Duration,
};

use leasehold_ledger::{Appended, NewEvent, View};
use leasehold_snapshot::{Published, Receipt};
use leasehold_types::{Epoch, Floor, LeaseKey, Moment, Position, Refusal};
use tokio::sync::watch;

use crate::{
    LedgerRef, RunError, TenureError,
    tenure::{PublishedState, Tenure},
    vocabulary::{Event, LeaseState, Phase},
    waiting::{Asker, ask},
};

/// A tenant that is open on this replica. Cheap to clone; holding one keeps nothing open.
#[derive(Clone)]
pub struct Handle {
    tenure: Arc<Tenure>,
}

/// A tenure as it stands.
#[derive(Clone, Debug)]
pub struct TenureStatus {
    /// The tenant.
    pub key: LeaseKey,
    /// The tenure's epoch.
    pub epoch: Epoch,
    /// The forget floor that its opening met.
    pub floor: Floor,
    /// Where it stands.
    pub phase: Phase,
    /// What it knows of its lease.
    pub lease: LeaseState,
    /// How long the lease is proven for from now.
    pub proven_for: Duration,
    /// The last event; with `seq` 0 there is none.
    pub position: Position,
    /// The newest image of this tenure that is known to be published.
    pub published: Option<PublishedState>,
    /// About how many bytes are written and not published.
    pub unflushed_bytes: u64,
    /// How long the oldest write that no published image has is waiting; zero where there is none.
    pub unpublished_for: Duration,
    /// How many calls are running.
    pub in_flight: u32,
    /// Bytes of the ledger's file.
    pub ledger_bytes: u64,
    /// Bytes of its write-ahead log.
    pub wal_bytes: u64,
}

impl Handle {
    pub(crate) const fn new(tenure: Arc<Tenure>) -> Self {
        Self { tenure }
    }

    pub(crate) const fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
    }

    /// The tenant.
    #[must_use]
    pub fn key(&self) -> &LeaseKey {
        &self.tenure.key
    }

    /// The tenure's epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        // A handle exists from the acquisition on.
        self.tenure.epoch().unwrap_or(Epoch::FIRST)
    }

    /// Whether calls are let in now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tenure.gate.outside().pass().is_ok()
    }

    /// How long ago its opening began.
    #[must_use]
    pub fn open_for(&self) -> Duration {
        self.tenure.now().since(self.tenure.began_at)
    }

    /// How long ago the last call came; the opening counts as one.
    #[must_use]
    pub fn idle_for(&self) -> Duration {
        self.tenure.now().since(self.tenure.last_call())
    }

    /// How many calls are running.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.tenure.gate.in_flight()
    }

    /// How the tenure stands.
    #[must_use]
    pub fn status(&self) -> TenureStatus {
        let tenure = &self.tenure;
        tenure.note_deadline();
        let state = tenure.state();
        let ledger = tenure.ledger().ok();
        let sizes = ledger.as_ref().and_then(|ledger| ledger.sizes().ok());
        TenureStatus {
            key: tenure.key.clone(),
            epoch: self.epoch(),
            floor: tenure.floor(),
            phase: state.phase,
            lease: state.lease,
            proven_for: tenure.gate.deadline().since(tenure.now()),
            position: ledger
                .as_ref()
                .map_or(Position { epoch: self.epoch(), seq: 0 }, |ledger| ledger.position()),
            published: *tenure.published.lock().unwrap_or_else(PoisonError::into_inner),
            unflushed_bytes: ledger.as_ref().map_or(0, |ledger| ledger.unflushed_bytes()),
            unpublished_for: ledger
                .as_ref()
                .filter(|ledger| ledger.is_dirty())
                .map_or(Duration::ZERO, |_| tenure.unpublished.waiting_for(tenure.now())),
            in_flight: tenure.gate.in_flight(),
            ledger_bytes: sizes.map_or(0, |sizes| sizes.file_bytes),
            wal_bytes: sizes.map_or(0, |sizes| sizes.wal_bytes),
        }
    }

    /// Runs `work` in one write transaction: gate, BEGIN IMMEDIATE, work, gate, COMMIT, gate; only then is it acknowledged. An error
    /// or a panic of the work rolls everything back.
    ///
    /// Blocks the calling thread. The work is a plain function: one that answers a future does not compile, see
    /// [`run_async`](Self::run_async) (contract row T1). If only the last gate says no, the error has `outcome_unknown`.
    pub fn run<T, E>(&self, work: impl FnOnce(&mut View<'_>) -> Result<T, E>) -> Result<T, RunError<E>> {
        let permit = self.tenure.gate.enter().map_err(|refusal| self.tenure.refused(refusal))?;
        self.tenure.called();
        let ledger = self.tenure.ledger()?;
        let outcome = ledger.run(&permit.gate(), work);
        self.tenure.wrote_if_dirty(&ledger);
        outcome.map_err(|error| match error {
            leasehold_ledger::RunError::Work(error) => RunError::Work(error),
            leasehold_ledger::RunError::Ledger(source) => {
                RunError::Tenure(TenureError::ledger(&self.tenure.key, self.tenure.epoch(), source))
            }
        })
    }

    /// Runs `work` with a view of its own. It counts as work in flight from this call on until its future has ended or is dropped: a
    /// handoff waits for it, and it may use its view while one drains. It holds no connection between its calls.
    pub fn run_async<T, F, Fut>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, TenureError>> + use<T, F, Fut>
    where
        F: FnOnce(LedgerRef) -> Fut,
        Fut: Future<Output = T>,
    {
        let entered =
            self.tenure.gate.enter().map_err(|refusal| self.tenure.refused(refusal)).map(|permit| {
                self.tenure.called();
                let view = LedgerRef::new(Arc::clone(&self.tenure), permit.gate());
                (permit, work(view))
            });
        async move {
            let (permit, work) = entered?;
            let answer = work.await;
            drop(permit);
            Ok(answer)
        }
    }

    /// The ledger as a view of one's own. It counts as no work; each of its calls is gated.
    #[must_use]
    pub fn ledger(&self) -> LedgerRef {
        LedgerRef::new(Arc::clone(&self.tenure), self.tenure.gate.outside())
    }

    /// Appends a batch atomically; callers that append at the same time share a commit.
    pub fn append(
        &self,
        batch: Vec<NewEvent>,
    ) -> impl Future<Output = Result<Vec<Appended>, TenureError>> + Send + 'static {
        Arc::clone(&self.tenure).append(batch)
    }

    /// Publishes an image with everything that was acknowledged before this call. `None`: nothing was unpublished, so nothing
    /// was uploaded. Callers share uploads.
    pub fn snapshot(&self) -> impl Future<Output = Result<Option<Published>, TenureError>> + Send + 'static {
        let (told, wait) = ask(&self.tenure.key);
        let dirty = self.tenure.ledger().is_ok_and(|ledger| ledger.is_dirty());
        self.tenure.ask(Event::SnapshotAsked { dirty }, Some(Asker::Snapshot(told)));
        wait
    }

    /// Hands the tenant off: refuses new calls, waits for running work, publishes what is unpublished, releases. The gate is closed by this
    /// call already; the future only waits. A drain that takes too long and a failed flush leave the tenant serving.
    pub fn handoff(&self) -> impl Future<Output = Result<(), TenureError>> + Send + 'static {
        let (told, wait) = ask(&self.tenure.key);
        self.tenure.ask(Event::HandoffAsked, Some(Asker::Handoff(told)));
        wait
    }

    /// When a handoff last closed the gate to every call, by this replica's clock: nothing was acknowledged after it, unless its flush
    /// failed. `None`: no handoff came so far.
    #[must_use]
    pub fn closed_at(&self) -> Option<Moment> {
        self.tenure.closed_at()
    }

    /// Hands the lease back at once, without an upload and without waiting for work. What was not published is kept on the local disk for an
    /// operator.
    pub fn abandon(&self) -> impl Future<Output = Result<(), TenureError>> + Send + 'static {
        let (told, wait) = ask(&self.tenure.key);
        self.tenure.ask(Event::AbandonAsked, Some(Asker::Abandon(told)));
        wait
    }

    /// Forgets the tenant: nothing of it stays in the store or on this disk. Does not wait for work, but for a running upload.
    pub fn forget(&self) -> impl Future<Output = Result<Receipt, TenureError>> + Send + 'static {
        let (told, wait) = ask(&self.tenure.key);
        self.tenure.ask(Event::ForgetAsked, Some(Asker::Forget(told)));
        wait
    }

    /// Renews the lease now. A refusal ends the tenure: another one holds the tenant.
    pub async fn renew(&self) -> Result<(), TenureError> {
        self.tenure.renew_now().await
    }

    /// Moves with each acknowledged write; closed once the tenure has ended.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Position> {
        self.tenure.changes(Position { epoch: self.epoch(), seq: 0 })
    }

    /// Completes once the tenure is over.
    pub async fn ended(&self) {
        let mut ended = self.tenure.ended.subscribe();
        // The sender lives in the tenure that we hold.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Why a call would be refused now; `None` while calls are let in.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.tenure.gate.outside().pass().err()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("key", &self.tenure.key)
            .field("epoch", &self.tenure.epoch())
            .field("phase", &self.tenure.state().phase)
            .finish_non_exhaustive()
    }
}
