//! A lease as its holder sees it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_types::{Clock, Epoch, Floor, LeaseKey, Moment, ReplicaId, TenureId, Timestamp};

use crate::{Acquisition, Claim, HeldOptions, Holder, LeaseError, LeaseStore, Renewal};

/// How often one renewal is asked again because its epoch was advanced while it was under way.
const RENEW_TRIES_MAX: usize = 3;

/// The answer to [`HeldLease::acquire`].
#[derive(Debug)]
pub enum Acquired {
    /// It is held by this attempt.
    Held(HeldLease),
    /// It is somebody else's; nothing was changed.
    Refused(Holder),
    /// Nobody has it and an operator holds it still; nothing was changed.
    Paused {
        /// Since when (calendar).
        since: Timestamp,
    },
}

/// The answer to [`HeldLease::renew`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldRenewal {
    /// Granted before the old deadline passed; the deadline was moved.
    Extended {
        /// The clock's reading before the request left.
        sent_at: Moment,
    },
    /// The row is still ours, but the answer came after the deadline, which was not moved: the lease had lapsed, and the snapshot
    /// store has to agree before it is [extended](HeldLease::extend) (protocol.md, "Lapsed, then resumed").
    GrantedAfterLapse {
        /// The clock's reading before the request left: what to extend by once the snapshot store agrees.
        sent_at: Moment,
    },
    /// The row is another tenure's, for good.
    Refused,
}

/// A lease that this process acquired: the claim, and the deadline until which it is provably held.
///
/// The deadline is (the clock's reading before the request left) + ttl - margin, by a clock that counts while the machine sleeps
/// (contract.md, "Words" and "What the checks imply", 4). It only ever moves forward. Dropping a held lease does not release it.
#[derive(Debug)]
pub struct HeldLease {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    options: HeldOptions,
    key: LeaseKey,
    replica: ReplicaId,
    tenure: TenureId,
    /// Raised by `settle_epoch` alone, until the lease ends.
    epoch: AtomicU64,
    /// How many [`EpochInMotion`] guards live: while there is one, the row may stand at an epoch that is not ours to know yet.
    in_motion: AtomicUsize,
    /// The forget floor as the grant said it, raised by `raise_floor`.
    floor: AtomicU64,
    /// Nanoseconds of the deadline; moved forward by `extend`, until the lease is given up.
    deadline: AtomicU64,
    /// Set for good by `give_up`.
    given_up: AtomicBool,
}

/// While it lives, the lease's epoch is being raised in the row, so that a refusal of the known one says nothing. Made by
/// [`HeldLease::epoch_in_motion`].
#[derive(Debug)]
#[must_use = "the epoch counts as settled once this is dropped"]
pub struct EpochInMotion<'a> {
    lease: &'a HeldLease,
}

impl EpochInMotion<'_> {
    /// The row now stands at `epoch`, still ours. The guard may settle more than once; an epoch never falls.
    pub fn settle(&self, epoch: Epoch) {
        self.lease.epoch.fetch_max(epoch.get(), Ordering::AcqRel);
    }
}

impl Drop for EpochInMotion<'_> {
    fn drop(&mut self) {
        self.lease.in_motion.fetch_sub(1, Ordering::AcqRel);
    }
}

impl HeldLease {
    /// Asks the store for the lease of `key`. A repeat with the same `tenure` adopts a grant whose answer was lost.
    pub async fn acquire(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        key: LeaseKey,
        replica: ReplicaId,
        tenure: TenureId,
        options: HeldOptions,
    ) -> Result<Acquired, LeaseError> {
        Self::asked_for(store, clock, key, replica, tenure, options, false).await
    }

    /// The same for who takes the lease to forget the tenant; see [`LeaseStore::acquire_to_forget`].
    pub async fn acquire_to_forget(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        key: LeaseKey,
        replica: ReplicaId,
        tenure: TenureId,
        options: HeldOptions,
    ) -> Result<Acquired, LeaseError> {
        Self::asked_for(store, clock, key, replica, tenure, options, true).await
    }

    async fn asked_for(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        key: LeaseKey,
        replica: ReplicaId,
        tenure: TenureId,
        options: HeldOptions,
        to_forget: bool,
    ) -> Result<Acquired, LeaseError> {
        let sent_at = clock.now();
        let ttl = options.ttl();
        let answer = if to_forget {
            store.acquire_to_forget(&key, &replica, tenure, ttl).await?
        } else {
            store.acquire(&key, &replica, tenure, ttl).await?
        };
        match answer {
            Acquisition::Held(holder) => Ok(Acquired::Refused(holder)),
            Acquisition::Paused { since } => Ok(Acquired::Paused { since }),
            Acquisition::Granted(grant) => Ok(Acquired::Held(Self {
                store,
                clock,
                options,
                key,
                replica,
                tenure,
                epoch: AtomicU64::new(grant.epoch.get()),
                in_motion: AtomicUsize::new(0),
                floor: AtomicU64::new(grant.floor.get()),
                deadline: AtomicU64::new(options.deadline(sent_at).as_nanos()),
                given_up: AtomicBool::new(false),
            })),
        }
    }

    /// The claim as it stands.
    #[must_use]
    pub fn claim(&self) -> Claim {
        Claim {
            key: self.key.clone(),
            replica: self.replica.clone(),
            tenure: self.tenure,
            epoch: self.epoch(),
        }
    }

    /// The tenant.
    #[must_use]
    pub const fn key(&self) -> &LeaseKey {
        &self.key
    }

    /// The attempt by which the lease was acquired.
    #[must_use]
    pub const fn tenure(&self) -> TenureId {
        self.tenure
    }

    /// The epoch at which it is held.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        // Only epochs are ever stored there.
        Epoch::new(self.epoch.load(Ordering::Acquire)).unwrap_or(Epoch::MAX)
    }

    /// The row's forget floor, as far as this holder knows.
    #[must_use]
    pub fn floor(&self) -> Floor {
        Floor::new(self.floor.load(Ordering::Acquire)).unwrap_or(Floor::NONE)
    }

    /// The times of the lease.
    #[must_use]
    pub const fn options(&self) -> HeldOptions {
        self.options
    }

    /// The moment until which the lease is provably held; the origin once it was given up.
    #[must_use]
    pub fn deadline(&self) -> Moment {
        if self.is_given_up() {
            return Moment::ORIGIN;
        }
        Moment::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// Whether the lease is provably held at `now`, a reading of the clock that it was acquired with. Costs an atomic load.
    #[must_use]
    pub fn proven(&self, now: Moment) -> bool {
        now < self.deadline()
    }

    /// Moves the deadline to what a grant gives whose request left at `sent_at`, if that is later. For a lapsed lease the caller
    /// answers for it that the snapshot store was asked.
    pub fn extend(&self, sent_at: Moment) {
        self.deadline.fetch_max(self.options.deadline(sent_at).as_nanos(), Ordering::AcqRel);
    }

    /// [Extends](Self::extend) unless the lease has lapsed, and says whether it did.
    #[must_use = "a lapsed lease is not extended: the snapshot store has to be asked first"]
    pub fn extend_if_proven(&self, sent_at: Moment) -> bool {
        let proven = self.proven(self.clock.now());
        if proven {
            self.extend(sent_at);
        }
        proven
    }

    /// Renews this one lease. The deadline is moved only if it had not passed when the answer came.
    pub async fn renew(&self) -> Result<HeldRenewal, LeaseError> {
        for _ in 0..RENEW_TRIES_MAX {
            let claim = self.claim();
            let sent_at = self.clock.now();
            let answers = self.store.renew(std::slice::from_ref(&claim), self.options.ttl()).await?;
            match answers.first() {
                Some(Renewal::Granted) if self.extend_if_proven(sent_at) => {
                    return Ok(HeldRenewal::Extended { sent_at });
                }
                Some(Renewal::Granted) => return Ok(HeldRenewal::GrantedAfterLapse { sent_at }),
                Some(Renewal::Refused) if self.is_given_up() || self.refusal_counts(&claim) => {
                    return Ok(HeldRenewal::Refused);
                }
                // The epoch was raised meanwhile: what was refused is a claim that is not ours any more.
                Some(Renewal::Refused) => {}
                None => break,
            }
        }
        Err(LeaseError::Unavailable {
            action: format!("renew the lease of {} at epoch {}", self.key, self.epoch()),
            detail: "it gave no answer that counts".into(),
        })
    }

    /// Hands the lease back. From the call on it is not counted on any more, whatever the answer: the store may have executed what
    /// it did not answer. `false`: it was not ours any more, which counts as done.
    pub async fn release(&self) -> Result<bool, LeaseError> {
        self.give_up();
        self.store.release(&self.claim()).await
    }

    /// Stops counting on the lease, for good, without telling the store.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Whether the lease was given up or released.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Raises the row's forget floor to this epoch; see [`LeaseStore::raise_floor`]. `None`: refused.
    pub async fn raise_floor(&self, recheck_after: Duration) -> Result<Option<Floor>, LeaseError> {
        let raised = self.store.raise_floor(&self.claim(), recheck_after).await?;
        if let Some(floor) = raised {
            self.floor.fetch_max(floor.get(), Ordering::AcqRel);
        }
        Ok(raised)
    }

    /// Raises the row's epoch, and this lease's with it, above `beyond`; see [`LeaseStore::advance_epoch`]. `None`: refused.
    ///
    /// An earlier call of ours whose answer was lost is recognised: where the row is still this tenure's and stands above
    /// `beyond`, its epoch is adopted.
    pub async fn advance_past(&self, beyond: Epoch) -> Result<Option<Epoch>, LeaseError> {
        let motion = self.epoch_in_motion();
        let claim = self.claim();
        let advanced = match self.store.advance_epoch(&claim, beyond).await? {
            Some(epoch) => Some(epoch),
            None => self.adopted(&claim, beyond).await?,
        };
        if let Some(epoch) = advanced {
            motion.settle(epoch);
        }
        Ok(advanced)
    }

    async fn adopted(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, LeaseError> {
        let row = self.store.read(&self.key).await?;
        // An id names one attempt, and nobody else raises a row that is this attempt's.
        Ok(row
            .map(|row| (row.is_of(&Claim { epoch: row.epoch, ..claim.clone() }), row.epoch))
            .and_then(|(ours, epoch)| (ours && epoch > claim.epoch && epoch > beyond).then_some(epoch)))
    }

    /// Says that the epoch is being raised in the row, by the opening of a snapshot for example. Until the guard is dropped a refused
    /// renewal says nothing.
    pub fn epoch_in_motion(&self) -> EpochInMotion<'_> {
        self.in_motion.fetch_add(1, Ordering::AcqRel);
        EpochInMotion { lease: self }
    }

    /// Whether the refusal of `claim` ends this lease: not if it was given up (a refusal after the release is nothing), nor if its
    /// epoch was or is being raised since the claim was taken.
    pub(crate) fn refusal_counts(&self, claim: &Claim) -> bool {
        // In this order: a motion that ended in between has settled the epoch before.
        let settled = self.in_motion.load(Ordering::Acquire) == 0;
        settled && claim.epoch == self.epoch() && !self.is_given_up()
    }
}
