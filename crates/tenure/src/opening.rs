//! How a tenure begins: the lease, what counts in the snapshot store, the local file; then calls may come.

use std::{
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use leasehold_lease::{Acquired, Claim, HeldLease, HeldRenewal, LeaseError, RenewalOutcome};
use leasehold_ledger::{Ledger, LedgerError};
use leasehold_snapshot::Opened;
use leasehold_types::{Act, Epoch, FencedReason, LeaseKey, Point, Refusal};

use crate::{
    TenureError,
    contained::contained,
    steps::Cause,
    tenure::Tenure,
    vocabulary::{Event, LeaseState, Phase},
};

/// How often an acquisition without an answer is repeated. The repeats carry the same attempt's id, so a grant whose answer was lost is adopted.
const ACQUIRE_TRIES: u32 = 3;

/// What a tenure is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be served.
    Serve,
    /// To be forgotten, whatever state it is in: nothing is restored.
    Forget,
}

impl Tenure {
    /// Opens the tenant and lets everybody who waits for it know. Runs as a task of its own.
    pub(crate) async fn open(self: Arc<Self>, purpose: Purpose) {
        let begun = contained(Arc::clone(&self).begin(purpose)).await;
        // A panic fails the opening as an error does: the lease goes back, or runs out where nobody knows whether it was taken.
        let begun = begun.unwrap_or_else(|| Err(TenureError::TaskEnded { key: self.key.clone() }));
        let outcome = match begun {
            Ok(()) => {
                self.feed(
                    match purpose {
                        Purpose::Serve => Event::Opened,
                        Purpose::Forget => Event::OpenedToForget,
                    },
                    &Cause::default(),
                );
                let state = self.state();
                match (state.phase, state.lease) {
                    (Phase::Serving, _) if purpose == Purpose::Serve => {
                        self.shared.table.opened(&self.key, &self);
                        let me = Arc::clone(&self);
                        self.task(async move { me.clockwork().await });
                        let me = Arc::clone(&self);
                        self.task(async move { me.sweep().await });
                        Ok(())
                    }
                    (Phase::Forgetting, _) if purpose == Purpose::Forget => Ok(()),
                    (_, LeaseState::Lost(reason)) => Err(self.refused(Refusal::Fenced(reason))),
                    // Stopped at its last step.
                    _ => Err(self.refused(Refusal::Draining)),
                }
            }
            Err(error) => {
                let acquired = self.gate.lease().is_some();
                self.feed(Event::OpenFailed { acquired }, &Cause::default());
                Err(error)
            }
        };
        if outcome.is_err() {
            // Told once the lease is handed back, so that whoever tries again is not held off by us.
            let mut ended = self.ended.subscribe();
            let _ = ended.wait_for(|ended| *ended).await;
        }
        self.opened.send_replace(Some(outcome));
    }

    fn stopped(&self) -> bool {
        self.state().phase != Phase::Opening
    }

    fn check_stopped(&self) -> Result<(), TenureError> {
        if self.stopped() { Err(self.refused(Refusal::Draining)) } else { Ok(()) }
    }

    async fn begin(self: Arc<Self>, purpose: Purpose) -> Result<(), TenureError> {
        let lease = self.acquire(purpose).await?;
        self.gate.guard(Arc::clone(&lease));
        self.register(&lease)?;
        self.check_stopped()?;
        if purpose == Purpose::Forget {
            return Ok(());
        }
        let image = self.prepare_root().await?;
        let opened = self.decide(&lease, &image).await?;
        self.check_stopped()?;
        self.floor_met.store(opened.floor.get(), Ordering::Release);
        let ledger = self.open_ledger(&opened, image).await?;
        *self.own_seen.lock().unwrap_or_else(PoisonError::into_inner) = opened.own.clone();
        *self.own.lock().await = opened.own.clone();
        // The opening's last step asked the row and the store: the deadline counts from there.
        lease.extend(opened.renewed_sent_at);
        self.put_ledger(Arc::new(ledger));
        Ok(())
    }

    async fn acquire(&self, purpose: Purpose) -> Result<Arc<HeldLease>, TenureError> {
        let backends = &self.shared.backends;
        let mut attempt = 1;
        loop {
            let (leases, clock) = (Arc::clone(&backends.leases), Arc::clone(&backends.clock));
            let (key, replica) = (self.key.clone(), self.shared.options.replica.clone());
            let (id, held) = (self.id, self.shared.held);
            let acquired = async move {
                match purpose {
                    Purpose::Serve => HeldLease::acquire(leases, clock, key, replica, id, held).await,
                    Purpose::Forget => {
                        HeldLease::acquire_to_forget(leases, clock, key, replica, id, held).await
                    }
                }
            };
            let asked = self.within(self.shared.held.ttl(), acquired);
            match self.around(Act::OpenAcquire, asked).await {
                Some(Ok(Acquired::Held(lease))) => return Ok(Arc::new(lease)),
                Some(Ok(Acquired::Refused(holder))) => {
                    return Err(TenureError::LeaseHeld { key: self.key.clone(), holder });
                }
                Some(Ok(Acquired::Paused { since })) => {
                    return Err(TenureError::Paused { key: self.key.clone(), since });
                }
                Some(Err(error)) if attempt >= ACQUIRE_TRIES => {
                    return Err(TenureError::lease(&self.key, error));
                }
                None if attempt >= ACQUIRE_TRIES => {
                    let limit = self.shared.held.ttl();
                    let error = LeaseError::Timeout { action: format!("acquire {}", self.key), limit };
                    return Err(TenureError::lease(&self.key, error));
                }
                Some(Err(error)) => tracing::warn!(key = %self.key, %error, attempt, "an acquisition failed"),
                None => tracing::warn!(key = %self.key, attempt, "an acquisition had no answer in time"),
            }
            attempt += 1;
            backends.timer.sleep(backends.entropy.jittered(self.shared.held.ttl() / 50)).await;
            self.check_stopped()?;
        }
    }

    /// From here on the one renewal chain renews this lease, while it is being opened too.
    fn register(&self, lease: &Arc<HeldLease>) -> Result<(), TenureError> {
        let Some(keeper) = &self.shared.keeper else { return Ok(()) };
        // Weak: the chain does not keep a tenure alive.
        let me = self.me().map(|me| Arc::downgrade(&me)).unwrap_or_default();
        let sink = move |outcome: RenewalOutcome| {
            if let Some(tenure) = me.upgrade() {
                tenure.renewal(&outcome);
            }
        };
        let registration = keeper.register(Arc::clone(lease), Arc::new(sink)).map_err(|error| {
            // One router has one ttl and one margin: this cannot be.
            tracing::error!(key = %self.key, %error, "a lease was refused by its own keeper");
            TenureError::TaskEnded { key: self.key.clone() }
        })?;
        *self.registration.lock().unwrap_or_else(PoisonError::into_inner) = Some(registration);
        Ok(())
    }

    /// Takes what became of a renewal, from the chain or by hand.
    pub(crate) fn renewal(&self, outcome: &RenewalOutcome) {
        match outcome {
            RenewalOutcome::Granted { sent_at } => {
                self.granted_at.fetch_max(sent_at.as_nanos(), Ordering::AcqRel);
                let event = if self.gate.proven().is_ok() { Event::Renewed } else { Event::RenewedLate };
                self.feed(event, &Cause { sent_at: Some(*sent_at), ..Cause::default() });
            }
            RenewalOutcome::Refused => self.feed(Event::RenewRefused, &Cause::default()),
            RenewalOutcome::Failed(_) => self.note_deadline(),
        }
    }

    /// The tenant's directory, and where the image goes until it is the ledger.
    async fn prepare_root(&self) -> Result<PathBuf, TenureError> {
        let root = self.root.path().to_path_buf();
        let scratch = scratch_dir(&root);
        let (key, made) = (self.key.clone(), scratch.clone());
        let cleared = self.blocking(move || {
            // What an opening or an upload left behind that did not end by itself.
            match std::fs::remove_dir_all(&made) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(TenureError::local(&key, "clear", &made)(error));
                }
                _ => {}
            }
            std::fs::create_dir_all(&made).map_err(TenureError::local(&key, "create", &made))
        });
        self.around(Act::OpenRoot, cleared).await??;
        Ok(scratch.join(format!("restore-{}.db", self.id)))
    }

    /// What counts in the snapshot store, brought to `image`.
    async fn decide(&self, lease: &Arc<HeldLease>, image: &std::path::Path) -> Result<Opened, TenureError> {
        // While the row's epoch may be raised, a refusal of the one we know says nothing; once it is, the keeper names it.
        let motion = lease.epoch_in_motion();
        let stop = |claim: &Claim| {
            motion.settle(claim.epoch);
            self.stopped()
        };
        let opened = leasehold_snapshot::open(
            &self.shared.snapshots,
            lease.claim(),
            lease.floor(),
            self.shared.held.ttl(),
            image,
            &stop,
        )
        .await;
        match opened {
            Ok(opened) => {
                motion.settle(opened.claim.epoch);
                Ok(opened)
            }
            Err(error) => {
                // It may have raised the epoch before it failed: the release has to name the one that the row has.
                if let Ok(Some(row)) = self.shared.backends.leases.read(&self.key).await
                    && row.is_of(&Claim { epoch: row.epoch, ..lease.claim() })
                {
                    motion.settle(row.epoch);
                }
                drop(motion);
                Err(TenureError::snapshot(&self.key, self.epoch(), error))
            }
        }
    }

    /// Keeps for an operator what lies on the path, puts the image there, and opens it.
    async fn open_ledger(&self, opened: &Opened, image: PathBuf) -> Result<Ledger, TenureError> {
        let (epoch, id) = (opened.claim.epoch, self.id);
        let failed = |source| TenureError::ledger(&self.key, Some(epoch), source);
        let root = self.root.path().to_path_buf();
        let path = leasehold_ledger::ledger_path(&root);
        let kept = self.around(Act::OpenSalvage, self.keep_found(root, epoch)).await?.map_err(failed)?;
        if let Some(kept) = kept {
            tracing::warn!(key = %self.key, %epoch, kept = %kept.display(), "kept a ledger that was found on the local disk");
        }
        let (to, restored) = (path.clone(), opened.restored.is_some());
        let installed = self.blocking(move || {
            if restored {
                leasehold_ledger::install(&image, &to)
            } else {
                leasehold_ledger::remove_files(&to)
            }
        });
        self.around(Act::OpenInstall, installed).await?.map_err(failed)?;
        let clock = Arc::clone(&self.shared.backends.clock);
        let options = self.shared.options.ledger.clone();
        let ledger = self.blocking(move || Ledger::open(&path, epoch, id, clock, options));
        self.around(Act::OpenLedger, ledger).await?.map_err(failed)
    }

    /// Links what lies on the path into the salvage, unless it is there. The durable copy is the authority, and a crash never recovers
    /// from the local file (contract row L2).
    async fn keep_found(
        &self,
        root: PathBuf,
        epoch: Epoch,
    ) -> Result<Result<Option<PathBuf>, LedgerError>, TenureError> {
        let id = self.id;
        self.blocking(move || {
            // What an abandoned tenure left is kept already: it has a second name.
            let kept_already =
                std::fs::metadata(leasehold_ledger::ledger_path(&root)).is_ok_and(|found| found.nlink() > 1);
            if kept_already {
                return Ok(None);
            }
            leasehold_ledger::salvage(&root, &format!("found-at-e{:08}-{id}", epoch.get()))
        })
        .await
    }

    /// Renews this one lease now.
    pub(crate) async fn renew_now(&self) -> Result<(), TenureError> {
        let Some(lease) = self.gate.lease().cloned() else {
            return Err(self.refused(Refusal::Draining));
        };
        if let Some(refusal) = self.state().refusal().filter(|_| !self.state().renews()) {
            return Err(self.refused(refusal));
        }
        let (points, key) = (&self.shared.backends.points, Some(&self.key));
        let answer = points.around(Act::RenewRow, key, lease.renew()).await;
        points.reached(Point::Before(Act::RenewTold), key);
        let outcome = self.renewed(answer).await;
        points.reached(Point::After(Act::RenewTold), key);
        outcome
    }

    async fn renewed(&self, answer: Result<HeldRenewal, LeaseError>) -> Result<(), TenureError> {
        match answer {
            Ok(HeldRenewal::Extended { sent_at }) => {
                self.renewal(&RenewalOutcome::Granted { sent_at });
                Ok(())
            }
            Ok(HeldRenewal::GrantedAfterLapse { sent_at }) => {
                self.granted_at.fetch_max(sent_at.as_nanos(), Ordering::AcqRel);
                self.note_deadline();
                // The caller is told once the snapshot store has been asked.
                self.ask_store().await
            }
            Ok(HeldRenewal::Refused) => {
                self.renewal(&RenewalOutcome::Refused);
                Err(self.refused(Refusal::Fenced(FencedReason::Lost)))
            }
            Err(error) => {
                self.note_deadline();
                Err(TenureError::lease(&self.key, error))
            }
        }
    }
}

/// Where images of a tenant lie while they come and go.
pub(crate) fn scratch_dir(root: &std::path::Path) -> PathBuf {
    root.join("scratch")
}

/// The error of a tenant that was forgotten, from its row.
pub(crate) fn forgotten(key: &LeaseKey, row: &leasehold_lease::LeaseRow) -> TenureError {
    let receipt =
        row.receipt.as_deref().and_then(|json| match leasehold_snapshot::Receipt::from_json(json) {
            Ok(receipt) => Some(Box::new(receipt)),
            Err(error) => {
                tracing::warn!(%key, %error, "the stored receipt of a forget cannot be read");
                None
            }
        });
    TenureError::TenantForgotten { key: key.clone(), floor: row.floor, receipt }
}
