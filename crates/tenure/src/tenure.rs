//! One tenant on one replica: what a tenure has and what is known of it. How it changes is in `steps.rs`.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use leasehold_lease::Registration;
use leasehold_ledger::Ledger;
use leasehold_snapshot::{OwnManifests, SnapshotNumber};
use leasehold_types::{Epoch, Floor, LeaseKey, Moment, Position, Refusal, TenureId, Timestamp};
use tokio::sync::{Notify, watch};

use crate::{
    TenureError,
    append_queue::AppendQueue,
    gate::{Drained, TenureGate},
    paths::{OwnRoot, tenant_root},
    shared::Shared,
    steps::Inner,
    unpublished::Unpublished,
    vocabulary::State,
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

/// One tenant's life on this replica, from its opening to its end. Whoever holds one holds no lease by that.
pub(crate) struct Tenure {
    pub(crate) key: LeaseKey,
    pub(crate) id: TenureId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) gate: Arc<TenureGate>,
    pub(crate) root: OwnRoot,
    /// Its place among the router's openings: closing goes in this order.
    pub(crate) order: u64,
    /// When its opening began.
    pub(crate) began_at: Moment,
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
    /// Since when something is unpublished.
    pub(crate) unpublished: Unpublished,
    /// How many uploads in a row failed.
    pub(crate) failed_uploads: AtomicU32,
    /// The floor that the opening met; set by it.
    pub(crate) floor_met: AtomicU64,
    /// Nanoseconds of the moment at which the last renewal left that was granted.
    pub(crate) granted_at: AtomicU64,
    /// Nanoseconds of the moment at which a handoff last closed the gate to every call; 0: none did. Set by the step.
    closed_at: AtomicU64,
    /// Set while the snapshot store is asked about a lapsed lease.
    pub(crate) checking: AtomicBool,
    /// Set by [`Effect::Salvage`], heeded by the release that follows.
    pub(crate) salvage_first: AtomicBool,
    /// Set by a sweep that failed: this tenure sweeps no more (contract row S2).
    pub(crate) sweep_failed: AtomicBool,
    /// Set by the sweep after the first publish: what its predecessors left is superseded since.
    pub(crate) swept_superseded: AtomicBool,
    /// From the acquisition until the lease is handed back or lost.
    pub(crate) registration: Mutex<Option<Registration>>,
    /// Counts the drains that are over, which ends their timers.
    pub(crate) drain_over: watch::Sender<u64>,
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
            began_at: now,
            me: me.clone(),
            inner: Mutex::default(),
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
            unpublished: Unpublished::default(),
            failed_uploads: AtomicU32::new(0),
            floor_met: AtomicU64::new(0),
            granted_at: AtomicU64::new(0),
            closed_at: AtomicU64::new(0),
            checking: AtomicBool::new(false),
            salvage_first: AtomicBool::new(false),
            sweep_failed: AtomicBool::new(false),
            swept_superseded: AtomicBool::new(false),
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

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        // What stands behind this lock is changed by steps that do not panic half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> State {
        self.inner().state
    }

    pub(crate) fn now(&self) -> Moment {
        self.shared.backends.clock.now()
    }

    /// Notes that the gate is closed to every call.
    pub(crate) fn note_closed(&self) {
        self.closed_at.store(self.now().as_nanos(), Ordering::Release);
    }

    /// When a handoff last closed the gate to every call.
    pub(crate) fn closed_at(&self) -> Option<Moment> {
        let nanos = self.closed_at.load(Ordering::Acquire);
        (nanos > 0).then(|| Moment::from_nanos(nanos))
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
        // An append that was known already wrote nothing.
        let newly = ledger.is_dirty() && self.unpublished.wrote(self.now());
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
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenure").field("key", &self.key).field("state", &self.state()).finish_non_exhaustive()
    }
}
