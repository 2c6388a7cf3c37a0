//! The lease store's contract.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use leasehold_types::{Epoch, Floor, LeaseKey, ReplicaId, TenureId, Timestamp};
use uuid::Uuid;

use crate::LeaseError;

/// One holding of a lease: who, by which attempt, at which epoch. Every conditional change names all four.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The tenant.
    pub key: LeaseKey,
    /// The replica that holds it.
    pub replica: ReplicaId,
    /// The attempt by which it was acquired.
    pub tenure: TenureId,
    /// The epoch at which it is held.
    pub epoch: Epoch,
}

/// What an acquisition gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The epoch of the new tenure: above every epoch that the row ever had.
    pub epoch: Epoch,
    /// The row's forget floor.
    pub floor: Floor,
}

/// Who holds a lease that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The replica.
    pub replica: ReplicaId,
    /// Where it answers, if it said so.
    pub endpoint: Option<String>,
    /// The epoch at which it holds the tenant.
    pub epoch: Epoch,
    /// How long until its lease runs out unless it renews, by the store's clock.
    pub remaining: Duration,
}

/// The answer to an acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquisition {
    /// It is ours (from this call, or from an earlier one with the same tenure id whose answer was lost).
    Granted(Grant),
    /// It is somebody else's.
    Held(Holder),
    /// Nobody has it, and an operator holds it still: nobody is given it before it is resumed.
    Paused {
        /// Since when (calendar).
        since: Timestamp,
    },
}

/// The answer to one claim of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The row is still this claim's; it now runs for another ttl from the store's present.
    Granted,
    /// The row is not this claim's any more, and never will be.
    Refused,
}

/// The owner in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The replica.
    pub replica: ReplicaId,
    /// Where it answers, if it said so.
    pub endpoint: Option<String>,
    /// The attempt by which it acquired the lease.
    pub tenure: TenureId,
    /// How long the lease still runs by the store's clock; zero when it has run out.
    pub remaining: Duration,
}

/// A tenant's row as it stands. Rows are never deleted: a forgotten tenant's row is its tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRow {
    /// The tenant.
    pub key: LeaseKey,
    /// The last epoch that was given.
    pub epoch: Epoch,
    /// Who has it, lapsed or not; `None` when it was released.
    pub owner: Option<Owner>,
    /// The forget floor.
    pub floor: Floor,
    /// When the floor was last raised (calendar).
    pub forgotten_at: Option<Timestamp>,
    /// The receipt of the last forget that was completed, as it was stored.
    pub receipt: Option<String>,
    /// Since when an operator holds the tenant still (calendar); `None` while it is not paused.
    pub paused_at: Option<Timestamp>,
}

impl LeaseRow {
    /// Whether this is `claim`'s row still: same owner, same attempt, same epoch, lapsed or not.
    #[must_use]
    pub fn is_of(&self, claim: &Claim) -> bool {
        self.key == claim.key
            && self.epoch == claim.epoch
            && self
                .owner
                .as_ref()
                .is_some_and(|owner| owner.replica == claim.replica && owner.tenure == claim.tenure)
    }

    /// Whether nothing was served since the tenant was forgotten: its newest epoch lies at or below the floor.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        self.floor.covers(self.epoch)
    }
}

/// What a replica says of itself. For forwarding and placement, never for safety.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The replica's id.
    pub replica: ReplicaId,
    /// One id per process: tells two processes that were given one replica id apart.
    pub instance: Uuid,
    /// Where it answers.
    pub endpoint: Option<String>,
    /// Whether it is on its way out.
    pub draining: bool,
    /// How many tenants it has open.
    pub open_tenants: u64,
}

/// The answer to an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announced {
    /// The row says what was announced.
    Accepted,
    /// Another live instance has this replica id; the row is its still.
    Taken {
        /// Where the other one answers, if it said so.
        endpoint: Option<String>,
        /// How long ago it was last heard of.
        seen_ago: Duration,
    },
}

/// A replica's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaRow {
    /// What it last said.
    pub announcement: Announcement,
    /// How long ago, by the store's clock.
    pub seen_ago: Duration,
}

/// A forgotten tenant that is to be looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recheck {
    /// The tenant.
    pub key: LeaseKey,
    /// Its floor: what lies at or below it is to go.
    pub floor: Floor,
    /// When the forget was, for the schedule.
    pub forgotten_at: Timestamp,
    /// The due time: passed back to [`LeaseStore::schedule_recheck`], so that one replica takes it.
    pub due_at: Timestamp,
}

/// One row per tenant, for ever, and the rules by which it changes (design.md section 2).
///
/// What every backend keeps:
///
/// - **Every change is one conditional statement** decided by the row that it finds. Calls race; exactly one wins.
/// - **Time is the store's.** A replica's clock is never sent. Expiry is compared with the store's own clock at the moment of
///   the statement.
/// - **The epoch never falls and is never given twice.** A row is never deleted.
/// - **An error leaves it open** whether the call was executed. Repeating the call with the same ids is always safe.
/// - **A refusal writes nothing.**
/// - Calls are cancel-safe: dropping a future leaves the call either executed or not.
#[async_trait]
pub trait LeaseStore: Send + Sync + fmt::Debug {
    /// Takes the lease of `key` for `ttl` where it has no row (epoch 1), was released, or has run out (epoch + 1).
    ///
    /// Where the row's owner is this very (replica, tenure), lapsed or not, the earlier grant is given again and runs for
    /// another `ttl`: that is how a lost answer is adopted. Another tenure of the same replica is another owner, whose
    /// lease is waited out. Asking for a held lease writes nothing.
    ///
    /// A [paused](Self::pause) tenant is given to no other attempt. One that is held all the same, since its owner has not let go of it yet,
    /// is told as held.
    async fn acquire(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError>;

    /// The same for who takes the lease to forget the tenant, and so serves nothing: a pause does not stand in its way.
    async fn acquire_to_forget(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError>;

    /// Holds the tenant still: whoever has it keeps it, and once it is let go nobody is given it until it is [resumed](Self::resume) or
    /// forgotten. Outlives every process. Answers whether it was this call that did it; `None`: nobody ever had this tenant.
    async fn pause(&self, key: &LeaseKey) -> Result<Option<bool>, LeaseError>;

    /// Ends a pause; `false`: there was none.
    async fn resume(&self, key: &LeaseKey) -> Result<bool, LeaseError>;

    /// Renews each of `claims` for `ttl`; the answers stand in the order of the claims.
    ///
    /// A renewal is granted exactly where owner, tenure and epoch match, whether the lease has run out or not: nobody took
    /// it while the row says so. One statement or transaction (or one per bounded chunk), however many claims; where a later
    /// chunk fails, earlier ones may have been renewed.
    async fn renew(&self, claims: &[Claim], ttl: Duration) -> Result<Vec<Renewal>, LeaseError>;

    /// Hands the lease back at once. `false`: it was not this claim's any more (which a releaser counts as done).
    async fn release(&self, claim: &Claim) -> Result<bool, LeaseError>;

    /// Raises the forget floor to the claim's epoch, notes the calendar time, clears the stored receipt, ends a pause and schedules the
    /// first look again after `recheck_after`. Answers the floor, which never falls. `None`: refused, nothing was changed.
    async fn raise_floor(&self, claim: &Claim, recheck_after: Duration) -> Result<Option<Floor>, LeaseError>;

    /// Stores the receipt of the forget that raised the floor to the claim's epoch. `false`: the row is not this claim's
    /// any more, nothing was changed.
    async fn store_receipt(&self, claim: &Claim, receipt: &str) -> Result<bool, LeaseError>;

    /// Raises the row's epoch to one above `beyond` (and above its present one), keeping owner, tenure and expiry: what the snapshot
    /// store has seen must not be given again (contract.md, "What the checks imply", 2). Answers the new epoch, at which
    /// the claim goes on. `None`: refused, nothing was changed. After a lost answer the claim may name the old epoch and be
    /// refused: [`acquire`](Self::acquire) with the same tenure id, or [`read`](Self::read), tells the one that the row has.
    async fn advance_epoch(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, LeaseError>;

    /// The row of `key`.
    async fn read(&self, key: &LeaseKey) -> Result<Option<LeaseRow>, LeaseError>;

    /// Up to `limit` rows of an organization in the order of their tenant ids, those after `after`.
    async fn list(
        &self,
        org: &leasehold_types::OrgSlug,
        after: Option<&leasehold_types::TenantId>,
        limit: u32,
    ) -> Result<Vec<LeaseRow>, LeaseError>;

    /// Up to `limit` forgotten tenants whose time to be looked at again has come.
    async fn due_rechecks(&self, limit: u32) -> Result<Vec<Recheck>, LeaseError>;

    /// Moves the recheck to `next` after now (`None`: no more) if it is still due when and at the floor that `recheck` says.
    /// `false`: another replica took it.
    async fn schedule_recheck(&self, recheck: &Recheck, next: Option<Duration>) -> Result<bool, LeaseError>;

    /// Writes what a replica says of itself, unless another instance with the same id was heard of within `alive` and
    /// `supersede` is not set.
    async fn announce(
        &self,
        announcement: &Announcement,
        alive: Duration,
        supersede: bool,
    ) -> Result<Announced, LeaseError>;

    /// Removes a replica's row if it is this instance's.
    async fn retire(&self, replica: &ReplicaId, instance: Uuid) -> Result<(), LeaseError>;

    /// All replicas' rows in the order of their ids, at most 10,000.
    async fn replicas(&self) -> Result<Vec<ReplicaRow>, LeaseError>;

    /// Binds the store to a derivation key's fingerprint: the first one given is kept for ever. Answers the one that is kept; a
    /// caller whose own differs must not serve, since it would orphan every tenant (design.md section 6).
    async fn bind_derivation_key(&self, fingerprint: &str) -> Result<String, LeaseError>;
}
