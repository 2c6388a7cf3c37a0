//! Stores that know whether they are called between the points of a step.

use std::{
    collections::BTreeSet,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_blob::{BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};
use leasehold_lease::{
    Acquisition, Announced, Announcement, Claim, LeaseError, LeaseRow, LeaseStore, Recheck, Renewal,
    ReplicaRow,
};
use leasehold_proof::Arms;
use leasehold_types::{Act, Epoch, Floor, LeaseKey, OrgSlug, Point, Points, ReplicaId, TenantId, TenureId};
use uuid::Uuid;

/// Which steps are under way, which have been, and what was asked of the stores outside of all.
#[derive(Clone)]
pub(crate) struct Watch {
    arms: Arms,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    under_way: Vec<Act>,
    ended: BTreeSet<Act>,
    outside: Vec<String>,
}

impl Watch {
    pub(crate) fn new(arms: Arms) -> Self {
        Self { arms, seen: Arc::default() }
    }

    pub(crate) const fn arms(&self) -> &Arms {
        &self.arms
    }

    /// The acts that have ended.
    pub(crate) fn ended(&self) -> BTreeSet<Act> {
        self.seen().ended.clone()
    }

    /// The calls that were made while no step was under way.
    pub(crate) fn outside(&self) -> Vec<String> {
        self.seen().outside.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn called(&self, what: impl fmt::Display) {
        let mut seen = self.seen();
        if seen.under_way.is_empty() {
            seen.outside.push(what.to_string());
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.seen()).finish()
    }
}

impl Points for Watch {
    fn reached(&self, point: Point, key: Option<&LeaseKey>) {
        match point {
            Point::Before(act) => self.seen().under_way.push(act),
            Point::After(act) => {
                let mut seen = self.seen();
                let at = seen.under_way.iter().position(|one| *one == act);
                let at = at.unwrap_or_else(|| panic!("{point} without the point before it"));
                seen.under_way.remove(at);
                seen.ended.insert(act);
            }
        }
        self.arms.reached(point, key);
    }
}

/// A blob store whose every call is watched.
#[derive(Debug)]
pub(crate) struct WatchedBlobs(pub(crate) Arc<dyn BlobStore>, pub(crate) Watch);

#[async_trait]
impl BlobStore for WatchedBlobs {
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        self.1.called(format_args!("put {key}"));
        self.0.put_if_absent(key, payload).await
    }

    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        self.1.called(format_args!("get {key}"));
        self.0.get(key, len_max).await
    }

    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        self.1.called(format_args!("download {key}"));
        self.0.download(key, to).await
    }

    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError> {
        self.1.called(format_args!("list {prefix}"));
        self.0.list(prefix).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError> {
        self.1.called(format_args!("delete {key}"));
        self.0.delete(key).await
    }

    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError> {
        self.1.called(format_args!("delete {prefix}"));
        self.0.delete_prefix(prefix).await
    }
}

/// A lease store whose every call is watched that changes a tenant's row. What only reads, and what replicas say of themselves, is
/// between no points: nothing is decided by it that a step does not decide again.
#[derive(Debug)]
pub(crate) struct WatchedLeases(pub(crate) Arc<dyn LeaseStore>, pub(crate) Watch);

#[async_trait]
impl LeaseStore for WatchedLeases {
    async fn acquire(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        self.1.called(format_args!("acquire {key}"));
        self.0.acquire(key, replica, tenure, ttl).await
    }

    async fn acquire_to_forget(
        &self,
        key: &LeaseKey,
        replica: &ReplicaId,
        tenure: TenureId,
        ttl: Duration,
    ) -> Result<Acquisition, LeaseError> {
        self.1.called(format_args!("acquire {key} to forget it"));
        self.0.acquire_to_forget(key, replica, tenure, ttl).await
    }

    async fn pause(&self, key: &LeaseKey) -> Result<Option<bool>, LeaseError> {
        self.0.pause(key).await
    }

    async fn resume(&self, key: &LeaseKey) -> Result<bool, LeaseError> {
        self.0.resume(key).await
    }

    async fn renew(&self, claims: &[Claim], ttl: Duration) -> Result<Vec<Renewal>, LeaseError> {
        self.1.called("renew");
        self.0.renew(claims, ttl).await
    }

    async fn release(&self, claim: &Claim) -> Result<bool, LeaseError> {
        self.1.called(format_args!("release {}", claim.key));
        self.0.release(claim).await
    }

    async fn raise_floor(&self, claim: &Claim, recheck_after: Duration) -> Result<Option<Floor>, LeaseError> {
        self.1.called(format_args!("raise the floor of {}", claim.key));
        self.0.raise_floor(claim, recheck_after).await
    }

    async fn store_receipt(&self, claim: &Claim, receipt: &str) -> Result<bool, LeaseError> {
        self.1.called(format_args!("store the receipt of {}", claim.key));
        self.0.store_receipt(claim, receipt).await
    }

    async fn advance_epoch(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, LeaseError> {
        self.1.called(format_args!("advance the epoch of {}", claim.key));
        self.0.advance_epoch(claim, beyond).await
    }

    async fn read(&self, key: &LeaseKey) -> Result<Option<LeaseRow>, LeaseError> {
        self.0.read(key).await
    }

    async fn list(
        &self,
        org: &OrgSlug,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<LeaseRow>, LeaseError> {
        self.0.list(org, after, limit).await
    }

    async fn due_rechecks(&self, limit: u32) -> Result<Vec<Recheck>, LeaseError> {
        self.0.due_rechecks(limit).await
    }

    async fn schedule_recheck(&self, recheck: &Recheck, next: Option<Duration>) -> Result<bool, LeaseError> {
        self.1.called(format_args!("schedule the look at {}", recheck.key));
        self.0.schedule_recheck(recheck, next).await
    }

    async fn announce(
        &self,
        announcement: &Announcement,
        alive: Duration,
        supersede: bool,
    ) -> Result<Announced, LeaseError> {
        self.0.announce(announcement, alive, supersede).await
    }

    async fn retire(&self, replica: &ReplicaId, instance: Uuid) -> Result<(), LeaseError> {
        self.0.retire(replica, instance).await
    }

    async fn replicas(&self) -> Result<Vec<ReplicaRow>, LeaseError> {
        self.0.replicas().await
    }

    async fn bind_derivation_key(&self, fingerprint: &str) -> Result<String, LeaseError> {
        self.0.bind_derivation_key(fingerprint).await
    }
}
