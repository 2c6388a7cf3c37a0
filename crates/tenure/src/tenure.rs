//! One tenant on one replica: the state, its lock, and the way from an event to its effects.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use leasehold_lease::Registration;
use leasehold_ledger::Ledger;
use leasehold_snapshot::{OwnManifests, Published, Receipt, SnapshotNumber};
use leasehold_types::{Epoch, Floor, LeaseKey, Moment, Position, Refusal, TenureId, Timestamp};
use tokio::sync::{Notify, watch};

use crate::{
    TenureError, TenureEvent,
    append_queue::AppendQueue,
    gate::{Drained, TenureGate},
    paths::{OwnRoot, tenant_root},
    shared::Shared,
    vocabulary::{Answer, Effect, Event, LeaseState, Notice, Outcome, Phase, State, Waiter},
    waiting::{Asker, Telling, Waiters, telling},
};

/// The newest image of this tenure that is known to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedState {
    /// Its number in the epoch.
    pub number: SnapshotNumber,
    /// Up to where it has everything.
    pub position: Position,
    /// When it was published (calendar).
    pub at: Timestamp,
}

/// What an event brings along that the pure state does not need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause {
    pub(crate) error: Option<TenureError>,
    pub(crate) published: Option<(Published, std::time::Duration)>,
    pub(crate) receipt: Option<Receipt>,
    /// When the renewal left that was granted.
    pub(crate) sent_at: Option<Moment>,
}

impl From<TenureError> for Cause {
    fn from(error: TenureError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// Something to do outside the lock, in the order of the steps that led to it.
enum Deed {
    Tell(TenureEvent),
    Settle(Telling),
    Do(Effect),
    /// Let the time limit of this drain begin.
    Arm(u64),
}

/// Everything behind the lock.
struct Inner {
    state: State,
    waiters: Waiters,
    /// What is still to do. Whoever finds `busy` unset does it all, so that it is done in order.
    outbox: VecDeque<Deed>,
    busy: bool,
}

/// One tenant's life on this replica, from its opening to its end. Whoever holds one holds no lease by that.
pub(crate) struct Tenure {
    pub(crate) key: LeaseKey,
    pub(crate) id: TenureId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) gate: Arc<TenureGate>,
    pub(crate) root: OwnRoot,
    /// Its place among the router's openings: closing goes in this order.
    pub(crate) order: u64,
    me: Weak<Self>,
    inner: Mutex<Inner>,
    /// Set by the opening, taken by the end.
    ledger: RwLock<Option<Arc<Ledger>>>,
    pub(crate) appends: AppendQueue,
    /// Moves with each acknowledged write; taken by the end, so that followers see it close.
    changes: RwLock<Option<watch::Sender<Position>>>,
    /// How the opening went, once it is over.
    pub(crate) opened: watch::Sender<Option<Result<(), TenureError>>>,
    pub(crate) ended: watch::Sender<bool>,
    /// Wakes the clockwork: something became due earlier than it thought.
    pub(crate) wake: Notify,
    /// What this tenure published. Locked by an upload for its whole length.
    pub(crate) own: tokio::sync::Mutex<OwnManifests>,
    /// The same as it was after the last upload, for who must not wait for one.
    pub(crate) own_seen: Mutex<OwnManifests>,
    pub(crate) published: Mutex<Option<PublishedState>>,
    /// Nanoseconds of the last call's moment, for idle tenants.
    last_call: AtomicU64,
    /// Nanoseconds of the moment since which something is unpublished; 0 while nothing is.
    dirty_since: AtomicU64,
    /// How many uploads in a row failed.
    pub(crate) failed_uploads: AtomicU32,
    /// The floor that the opening met; set by it.
    pub(crate) floor_met: AtomicU64,
    /// Nanoseconds of the moment at which the last renewal left that was granted.
    pub(crate) granted_at: AtomicU64,
    /// Set while the snapshot store is asked about a lapsed lease.
    pub(crate) checking: AtomicBool,
    /// Set by [`Effect::Salvage`], heeded by the release that follows.
    pub(crate) salvage_first: AtomicBool,
    /// Set by a sweep that failed: this tenure sweeps no more (contract row S2).
    pub(crate) sweep_failed: AtomicBool,
    /// From the acquisition until the lease is handed back or lost.
    pub(crate) registration: Mutex<Option<Registration>>,
    /// Counts the drains that are over, which ends their timers.
    pub(crate) drain_over: watch::Sender<u64>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What stands behind these locks is changed by steps that do not panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tenure {
    pub(crate) fn new(key: LeaseKey, order: u64, shared: Arc<Shared>) -> Result<Arc<Self>, TenureError> {
        let root = OwnRoot::check(&key, &tenant_root(&shared.options.state_root, &key))?;
        let clock = Arc::clone(&shared.backends.clock);
        let now = clock.now();
        let tenure = Arc::new_cyclic(|me: &Weak<Self>| Self {
            id: shared.backends.entropy.tenure_id(),
            gate: Arc::new(TenureGate::new(clock)),
            root,
            order,
            me: me.clone(),
            inner: Mutex::new(Inner {
                state: State::opening(),
                waiters: Waiters::default(),
                outbox: VecDeque::new(),
                busy: false,
            }),
            ledger: RwLock::new(None),
            appends: AppendQueue::default(),
            changes: RwLock::new(None),
            opened: watch::Sender::new(None),
            ended: watch::Sender::new(false),
            wake: Notify::new(),
            own: tokio::sync::Mutex::new(OwnManifests::new()),
            own_seen: Mutex::new(OwnManifests::new()),
            published: Mutex::new(None),
            last_call: AtomicU64::new(now.as_nanos()),
            dirty_since: AtomicU64::new(0),
            failed_uploads: AtomicU32::new(0),
            floor_met: AtomicU64::new(0),
            granted_at: AtomicU64::new(0),
            checking: AtomicBool::new(false),
            salvage_first: AtomicBool::new(false),
            sweep_failed: AtomicBool::new(false),
            registration: Mutex::new(None),
            drain_over: watch::Sender::new(0),
            key,
            shared,
        });
        let driver: Weak<dyn Drained> = tenure.me.clone() as Weak<dyn Drained>;
        tenure.gate.on_drained(driver);
        Ok(tenure)
    }

    pub(crate) fn me(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.gate.lease().map(|lease| lease.epoch())
    }

    pub(crate) fn state(&self) -> State {
        locked(&self.inner).state
    }

    pub(crate) fn now(&self) -> Moment {
        self.shared.backends.clock.now()
    }

    pub(crate) fn refused(&self, refusal: Refusal) -> TenureError {
        TenureError::refused(&self.key, self.epoch(), refusal)
    }

    /// The ledger, from the opening to the end.
    pub(crate) fn ledger(&self) -> Result<Arc<Ledger>, TenureError> {
        let ledger = self.ledger.read().unwrap_or_else(PoisonError::into_inner).clone();
        ledger.ok_or_else(|| self.refused(self.state().refusal().unwrap_or(Refusal::Draining)))
    }

    pub(crate) fn put_ledger(&self, ledger: Arc<Ledger>) {
        let (changes, _) = watch::channel(ledger.position());
        *self.changes.write().unwrap_or_else(PoisonError::into_inner) = Some(changes);
        *self.ledger.write().unwrap_or_else(PoisonError::into_inner) = Some(ledger);
    }

    /// Lets go of the ledger: it closes once the last call that uses it has ended.
    pub(crate) fn take_ledger(&self) -> Option<Arc<Ledger>> {
        self.ledger.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Follows the acknowledged writes; closed once the tenure has ended.
    pub(crate) fn changes(&self, otherwise: Position) -> watch::Receiver<Position> {
        match &*self.changes.read().unwrap_or_else(PoisonError::into_inner) {
            Some(changes) => changes.subscribe(),
            None => watch::channel(otherwise).1,
        }
    }

    /// Followers see the end of the tenure by this.
    pub(crate) fn close_changes(&self) {
        let changes = self.changes.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(changes);
    }

    /// Notes that a call came.
    pub(crate) fn called(&self) {
        self.last_call.store(self.now().as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn last_call(&self) -> Moment {
        Moment::from_nanos(self.last_call.load(Ordering::Relaxed))
    }

    /// Notes that something was written and acknowledged.
    pub(crate) fn wrote(&self, ledger: &Ledger) {
        let position = ledger.position();
        if let Some(changes) = &*self.changes.read().unwrap_or_else(PoisonError::into_inner) {
            changes.send_if_modified(|seen| {
                let later = position > *seen;
                if later {
                    *seen = position;
                }
                later
            });
        }
        let options = &self.shared.options;
        let newly = self.dirty_since.load(Ordering::Relaxed) == 0
            && self
                .dirty_since
                .compare_exchange(0, self.now().as_nanos().max(1), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        let much = options.unflushed_bytes_max > 0 && ledger.unflushed_bytes() >= options.unflushed_bytes_max;
        if newly || much || ledger.wal_bytes() >= crate::clockwork::WAL_BYTES_CHECKPOINT {
            self.wake.notify_one();
        }
    }

    /// The same after a call that may have written.
    pub(crate) fn wrote_if_dirty(&self, ledger: &Ledger) {
        if ledger.is_dirty() {
            self.wrote(ledger);
        }
    }

    /// The floor that the opening met.
    pub(crate) fn floor(&self) -> Floor {
        Floor::new(self.floor_met.load(Ordering::Acquire)).unwrap_or(Floor::NONE)
    }

    /// Since when something is unpublished.
    pub(crate) fn dirty_since(&self) -> Option<Moment> {
        Some(self.dirty_since.load(Ordering::Acquire)).filter(|nanos| *nanos > 0).map(Moment::from_nanos)
    }

    /// Notes, after an upload has ended, whether something is unpublished: the cadence counts from here.
    pub(crate) fn note_dirty(&self, dirty: bool) {
        let since = if dirty { self.now().as_nanos().max(1) } else { 0 };
        self.dirty_since.store(since, Ordering::Release);
    }

    /// Feeds an event that nobody waits for.
    pub(crate) fn feed(&self, event: Event, cause: &Cause) {
        // An illegal event is logged by its name where it is found; there is nobody to tell.
        let _ = self.step(event, cause, None);
    }

    /// Feeds what a caller asks for. Its outcome reaches the asker; what is refused reaches it at once.
    pub(crate) fn ask(&self, event: Event, asker: Option<Asker>) {
        self.note_deadline();
        let _ = self.step(event, &Cause::default(), asker);
    }

    /// Seats the caller for whom this tenure is begun.
    pub(crate) fn wait_for_forget(&self, told: crate::waiting::Waiting<Receipt>) {
        locked(&self.inner).waiters.forget.push(told);
    }

    /// Notes that the deadline has passed, if it has: the gate knows by itself, the state and the observers learn it here.
    pub(crate) fn note_deadline(&self) {
        let held = self.state().lease == LeaseState::Held;
        if held && self.gate.lease().is_some() && self.gate.proven().is_err() {
            self.feed(Event::DeadlinePassed, &Cause::default());
        }
    }

    /// The one way in which the state changes.
    fn step(&self, event: Event, cause: &Cause, asker: Option<Asker>) -> Option<Answer> {
        let answer = {
            let mut inner = locked(&self.inner);
            if matches!(event, Event::Drained { .. }) && self.gate.in_flight() > 0 {
                // Of a drain that is over; another one waits for other work now.
                return None;
            }
            let step = match inner.state.step(event) {
                Ok(step) => step,
                Err(illegal) => {
                    drop(inner);
                    tracing::error!(key = %self.key, %illegal, "a defect of the tenure's driver");
                    if let Some(asker) = asker {
                        refuse(asker, &TenureError::Defect { key: self.key.clone(), source: illegal });
                    }
                    return None;
                }
            };
            let drained = inner.state.phase == Phase::Draining && step.state.phase != Phase::Draining;
            inner.state = step.state;
            self.gate.show(step.state);
            if drained {
                self.drain_over.send_modify(|drains| *drains += 1);
            }
            if let Some(asker) = asker {
                self.seat(&mut inner, step.answer, asker);
            }
            for effect in step.effects {
                self.prepare(&mut inner, effect, cause);
            }
            step.answer
        };
        self.work_off();
        // A drain may find nothing to wait for.
        self.drained();
        Some(answer)
    }

    /// Puts an asker where its outcome will be told, or answers it.
    fn seat(&self, inner: &mut Inner, answer: Answer, asker: Asker) {
        match answer {
            Answer::Refused(refusal) => {
                let error = self.refused(refusal);
                inner.outbox.push_back(Deed::Settle(Box::new(move || refuse(asker, &error))));
            }
            Answer::Nothing => inner.outbox.push_back(Deed::Settle(Box::new(move || match asker {
                Asker::Handoff(told) | Asker::Abandon(told) => {
                    let _ = told.send(Ok(()));
                }
                Asker::Snapshot(told) => {
                    let _ = told.send(Ok(None));
                }
                // No forget is answered with nothing.
                Asker::Forget(told) => drop(told),
            }))),
            Answer::Begun | Answer::Joined => match asker {
                Asker::Snapshot(told) => inner.waiters.next_snapshot.push(told),
                Asker::Handoff(told) => inner.waiters.handoff.push(told),
                Asker::Abandon(told) => inner.waiters.abandon.push(told),
                Asker::Forget(told) => inner.waiters.forget.push(told),
            },
        }
    }

    /// Makes a deed of an effect, with the callers that it concerns as they are now.
    fn prepare(&self, inner: &mut Inner, effect: Effect, cause: &Cause) {
        match effect {
            Effect::Tell(notice) => {
                if let Some(event) = self.event(notice, cause) {
                    inner.outbox.push_back(Deed::Tell(event));
                }
                if notice == Notice::Forgotten {
                    inner.waiters.forgotten = cause.receipt.clone().map(Ok);
                }
            }
            Effect::Settle(waiter, outcome) => {
                if let Some(told) = self.outcome(&mut inner.waiters, waiter, outcome, cause) {
                    inner.outbox.push_back(Deed::Settle(told));
                }
            }
            Effect::StartUpload { .. } => {
                let Waiters { snapshot, next_snapshot, .. } = &mut inner.waiters;
                snapshot.append(next_snapshot);
                inner.outbox.push_back(Deed::Do(effect));
            }
            // At once: the gate must not refuse what is proven.
            Effect::ExtendDeadline => {
                if let (Some(lease), Some(sent_at)) = (self.gate.lease(), cause.sent_at) {
                    lease.extend(sent_at);
                }
            }
            Effect::StartRelease { .. } => {
                // How a forget failed is told once the lease is handed back.
                if inner.state.phase == Phase::Forgetting && inner.waiters.forgotten.is_none() {
                    inner.waiters.forgotten = cause.error.clone().map(Err);
                }
                inner.outbox.push_back(Deed::Do(effect));
            }
            Effect::ArmDrainTimer => inner.outbox.push_back(Deed::Arm(*self.drain_over.borrow())),
            other => inner.outbox.push_back(Deed::Do(other)),
        }
    }

    fn outcome(
        &self,
        waiters: &mut Waiters,
        waiter: Waiter,
        outcome: Outcome,
        cause: &Cause,
    ) -> Option<Telling> {
        let failure =
            || cause.error.clone().unwrap_or_else(|| TenureError::TaskEnded { key: self.key.clone() });
        let plain = match outcome {
            Outcome::Done | Outcome::Kept => Ok(()),
            Outcome::Failed => Err(failure()),
            Outcome::Refused(refusal) => Err(self.refused(refusal)),
            Outcome::DrainTimeout => Err(TenureError::DrainTimeout {
                key: self.key.clone(),
                epoch: self.epoch().unwrap_or(Epoch::FIRST),
                waited: self.shared.options.drain_timeout,
                in_flight: self.gate.in_flight(),
            }),
        };
        match waiter {
            Waiter::Handoff => telling(&mut waiters.handoff, plain),
            Waiter::Abandon => telling(&mut waiters.abandon, plain),
            Waiter::Snapshot => {
                let published = cause.published.as_ref().map(|(published, _)| published.clone());
                telling(&mut waiters.snapshot, plain.map(|()| published))
            }
            Waiter::NextSnapshot => telling(&mut waiters.next_snapshot, plain.map(|()| None)),
            Waiter::Forget => {
                let kept = waiters.forgotten.take().unwrap_or_else(|| Err(failure()));
                telling(&mut waiters.forget, plain.and(kept))
            }
        }
    }

    fn event(&self, notice: Notice, cause: &Cause) -> Option<TenureEvent> {
        let (key, epoch) = (self.key.clone(), self.epoch()?);
        Some(match notice {
            Notice::Acquired => TenureEvent::Acquired { key, epoch },
            Notice::Renewed => TenureEvent::Renewed { key, epoch },
            Notice::Lapsed => TenureEvent::Lapsed { key, epoch },
            Notice::Resumed => TenureEvent::Resumed { key, epoch },
            Notice::Lost(reason) => TenureEvent::Lost { key, epoch, reason },
            Notice::DrainTimeout => {
                TenureEvent::DrainTimeout { key, epoch, in_flight: self.gate.in_flight() }
            }
            Notice::Released { flushed } => TenureEvent::Released { key, epoch, flushed },
            Notice::SnapshotPublished => {
                let (published, took) = cause.published.clone()?;
                TenureEvent::SnapshotPublished {
                    key,
                    epoch,
                    number: published.number,
                    position: published.position,
                    bytes: published.bytes_uploaded,
                    took,
                }
            }
            Notice::SnapshotFailed => {
                let error = cause.error.as_ref()?;
                TenureEvent::SnapshotFailed { key, epoch, code: error.code(), error: with_sources(error) }
            }
            Notice::Forgotten => TenureEvent::Forgotten { key, epoch, receipt: cause.receipt.clone()? },
        })
    }

    /// Does what is to be done, in order. Where somebody is at it already, he does ours too.
    fn work_off(&self) {
        {
            let mut inner = locked(&self.inner);
            if inner.busy {
                return;
            }
            inner.busy = true;
        }
        loop {
            let deed = {
                let mut inner = locked(&self.inner);
                let Some(deed) = inner.outbox.pop_front() else {
                    inner.busy = false;
                    return;
                };
                deed
            };
            match deed {
                Deed::Tell(event) => self.shared.tell(&event),
                Deed::Settle(told) => told(),
                Deed::Do(effect) => self.perform(effect),
                Deed::Arm(drain) => self.arm(drain),
            }
        }
    }
}

impl Drained for Tenure {
    fn drained(&self) {
        // Looked at without the lock, decided under it.
        if self.state().phase == Phase::Draining && self.gate.in_flight() == 0 {
            let dirty = self.ledger().is_ok_and(|ledger| ledger.is_dirty());
            self.feed(Event::Drained { dirty }, &Cause::default());
        }
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenure").field("key", &self.key).field("state", &self.state()).finish_non_exhaustive()
    }
}

fn refuse(asker: Asker, error: &TenureError) {
    // Who has stopped waiting need not be told.
    match asker {
        Asker::Snapshot(told) => drop(told.send(Err(error.clone()))),
        Asker::Handoff(told) | Asker::Abandon(told) => drop(told.send(Err(error.clone()))),
        Asker::Forget(told) => drop(told.send(Err(error.clone()))),
    }
}

/// An error with what lies behind it, in one line.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
