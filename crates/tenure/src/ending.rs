//! How a tenure ends: forgetting, salvage, and what goes from the local disk.

use std::{path::Path, sync::Arc};

use leasehold_lease::{Claim, HeldLease};
use leasehold_ledger::Ledger;
use leasehold_snapshot::{Receipt, SnapshotContext, SnapshotError};
use leasehold_types::{Act, LeaseKey};

use crate::{
    TenureError, contained::contained, paths::OwnRoot, steps::Cause, tenure::Tenure, vocabulary::Event,
};

impl Tenure {
    /// Raises the floor, deletes, proves (protocol.md, "Forget"). The gate is closed and no upload is under way.
    pub(crate) async fn forget_all(self: Arc<Self>) {
        let Some(lease) = self.gate.lease().cloned() else { return };
        let floor_raised = || self.feed(Event::FloorRaised, &Cause::default());
        let forgetting =
            forget_checked(&self.shared.snapshots, &lease, &self.root, floor_raised, || self.close_ledger());
        let outcome = contained(forgetting).await;
        match outcome.unwrap_or_else(|| Err(TenureError::TaskEnded { key: self.key.clone() })) {
            Ok(receipt) => self.feed(Event::Forgotten, &Cause { receipt: Some(receipt), ..Cause::default() }),
            Err(error) => {
                let superseded = match &error {
                    TenureError::Fenced { reason, .. } => Some(*reason),
                    _ => None,
                };
                self.feed(Event::ForgetFailed { superseded }, &error.into());
            }
        }
    }

    /// Keeps what is unpublished for an operator; nothing is ever recovered from it by itself (contract row L2).
    pub(crate) async fn salvage(self: Arc<Self>, act: Act, ledger: Arc<Ledger>) {
        if !ledger.is_dirty() {
            return;
        }
        let Some(epoch) = self.epoch() else { return };
        let (root, id) = (self.root.path().to_path_buf(), self.id);
        let kept = self.blocking(move || ledger.salvage(&root, &format!("e{:08}-{id}", epoch.get())));
        match self.around(act, kept).await {
            Ok(Ok(kept)) => {
                tracing::warn!(key = %self.key, %epoch, kept = %kept.display(), "kept what was not published");
            }
            Ok(Err(error)) => {
                tracing::error!(key = %self.key, %epoch, %error, "failed to keep what was not published");
            }
            Err(_) => {}
        }
    }

    /// Removes the ledger's files after a handoff that flushed everything (contract row L1).
    pub(crate) async fn discard_ledger(self: Arc<Self>) {
        self.close_ledger();
        let (key, root) = (self.key.clone(), self.root.clone());
        let gone = self
            .blocking(move || {
                remove_ledger(&key, &root)?;
                // The scratch directory, and the root itself, where nothing is kept in it.
                let _ = std::fs::remove_dir(crate::opening::scratch_dir(root.path()));
                let _ = std::fs::remove_dir(root.path());
                Ok::<_, TenureError>(())
            })
            .await;
        if let Err(error) | Ok(Err(error)) = gone {
            tracing::warn!(key = %self.key, %error, "failed to remove a ledger that is published");
        }
    }

    /// Closes the ledger for everybody who still has it.
    fn close_ledger(&self) {
        if let Some(ledger) = self.take_ledger() {
            ledger.close();
        }
    }
}

fn remove_ledger(key: &LeaseKey, root: &OwnRoot) -> Result<(), TenureError> {
    leasehold_ledger::remove_files(&leasehold_ledger::ledger_path(root.path()))
        .map_err(|source| TenureError::ledger(key, None, source))
}

/// Forgets the tenant of `lease`: raises the floor in its row and in the store, deletes everything at or below it, proves it by a
/// listing, deletes `tenant_root` with everything in it, and stores the receipt. The lease stays the caller's to release.
///
/// `tenant_root` has to be the tenant's own, read as text: anything else is refused before any effect (contract rows P1, P4).
pub async fn forget_tenant(
    snapshots: &SnapshotContext,
    lease: &HeldLease,
    tenant_root: &Path,
) -> Result<Receipt, TenureError> {
    let root = OwnRoot::check(lease.key(), tenant_root)?;
    forget_checked(snapshots, lease, &root, || (), || ()).await
}

async fn forget_checked(
    snapshots: &SnapshotContext,
    lease: &HeldLease,
    root: &OwnRoot,
    floor_raised: impl FnOnce() + Send,
    before_removal: impl FnOnce() + Send,
) -> Result<Receipt, TenureError> {
    let claim: Claim = lease.claim();
    let ttl = lease.options().ttl();
    let remove_local = || {
        before_removal();
        let root = root.clone();
        async move {
            let path = root.path().to_path_buf();
            let removed = tokio::task::spawn_blocking(move || root.remove()).await;
            removed
                .unwrap_or_else(|error| Err(std::io::Error::other(error)))
                .map_err(|source| SnapshotError::Local { action: "remove", path, source })
        }
    };
    leasehold_snapshot::forget(snapshots, &claim, ttl, |_| floor_raised(), remove_local)
        .await
        .map_err(|source| TenureError::snapshot(&claim.key, Some(claim.epoch), source))
}

/// Removes the local ledger of a tenant, with its `-wal` and `-shm`. The same guard on `tenant_root` as for a forget.
pub fn discard_local_ledger(key: &LeaseKey, tenant_root: &Path) -> Result<(), TenureError> {
    remove_ledger(key, &OwnRoot::check(key, tenant_root)?)
}
