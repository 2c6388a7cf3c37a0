//! What a replica does for tenants that nobody opens: it looks again at forgotten ones, and drops what is left of them here.

use std::{path::PathBuf, sync::Arc, time::Duration};

use leasehold_lease::Recheck;
use leasehold_types::{Act, LeaseKey, Point};

use crate::{
    Router,
    contained::contained,
    paths::{OwnRoot, tenant_root},
    steps::with_sources,
};

/// How often local ledgers of forgotten tenants are looked for.
const LOCAL_EVERY: Duration = Duration::from_secs(3_600);
/// How often the lease store is asked for forgotten tenants that are due.
const RECHECK_EVERY: Duration = Duration::from_secs(60);
/// How many of them are taken at a time.
const RECHECKS_MAX: u32 = 100;

/// What one round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Housekept {
    /// Forgotten tenants that were looked at again.
    pub rechecked: u64,
    /// Objects of theirs that were deleted.
    pub objects_deleted: u64,
    /// Local directories of forgotten tenants that were removed.
    pub local_removed: u64,
}

impl Router {
    /// Keeps house from now on, until this router's last clone is gone: at once and then every minute for forgotten tenants in the store, every
    /// hour for what is left of them on this disk.
    pub fn spawn_housekeeping(&self) {
        let shared = Arc::downgrade(self.shared());
        let timer = Arc::clone(&self.backends().timer);
        let rounds_per_local = LOCAL_EVERY.as_secs() / RECHECK_EVERY.as_secs();
        self.shared().runtime.spawn(async move {
            let mut round = 0_u64;
            loop {
                {
                    let Some(shared) = shared.upgrade() else { return };
                    let router = Self::from_shared(shared);
                    // What panicked in this round comes again with the next that is due.
                    let _ = contained(router.recheck_forgotten()).await;
                    if round.is_multiple_of(rounds_per_local) {
                        let _ = contained(router.drop_forgotten_ledgers()).await;
                    }
                }
                round += 1;
                timer.sleep(RECHECK_EVERY).await;
            }
        });
    }

    /// One round of everything.
    pub async fn keep_house(&self) -> Housekept {
        let mut kept = self.recheck_forgotten().await;
        kept.local_removed = self.drop_forgotten_ledgers().await;
        kept
    }

    /// Looks again at forgotten tenants whose time has come: after a ttl, an hour and a day, so that a late upload does not wait for an open that
    /// never comes (design.md section 4).
    async fn recheck_forgotten(&self) -> Housekept {
        let mut kept = Housekept::default();
        let leases = &self.backends().leases;
        let due = match leases.due_rechecks(RECHECKS_MAX).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "failed to ask for forgotten tenants to look at again");
                return kept;
            }
        };
        for recheck in due {
            // One that panics stays due, and is in nobody's way.
            if let Some(objects) = contained(self.recheck(&recheck)).await.flatten() {
                kept.rechecked += 1;
                kept.objects_deleted += objects;
            }
        }
        kept
    }

    /// How many objects went; `None`: another replica takes it, or it failed and stays due.
    async fn recheck(&self, recheck: &Recheck) -> Option<u64> {
        let key = &recheck.key;
        let cleared =
            leasehold_snapshot::recheck(self.snapshots(), key, recheck.floor, &self.options().replica).await;
        let cleared = match cleared {
            Ok(cleared) => cleared,
            Err(error) => {
                tracing::warn!(%key, error = %with_sources(&error), "failed to look at a forgotten tenant again");
                return None;
            }
        };
        if cleared.objects > 0 {
            tracing::warn!(%key, objects = cleared.objects, "deleted what a late upload had left of a forgotten tenant");
        }
        let now = self.backends().clock.wall();
        let next = leasehold_snapshot::next_recheck(self.options().ttl, recheck.forgotten_at, now);
        let schedule = self.backends().leases.schedule_recheck(recheck, next);
        match self.backends().points.around(Act::RecheckSchedule, Some(key), schedule).await {
            Ok(true) => Some(cleared.objects),
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%key, %error, "failed to note when to look at a forgotten tenant again");
                None
            }
        }
    }

    /// Removes the local directories of forgotten tenants that are not open here.
    async fn drop_forgotten_ledgers(&self) -> u64 {
        let state_root = self.options().state_root.clone();
        let listed = self.shared().runtime.spawn_blocking(move || local_tenants(&state_root)).await;
        let mut removed = 0;
        for key in listed.unwrap_or_default() {
            let forgotten = match self.backends().leases.read(&key).await {
                Ok(row) => row.is_some_and(|row| row.is_forgotten()),
                Err(error) => {
                    tracing::warn!(%key, %error, "failed to ask whether a local ledger's tenant was forgotten");
                    continue;
                }
            };
            if forgotten && self.drop_local(&key) {
                removed += 1;
            }
        }
        removed
    }

    fn drop_local(&self, key: &LeaseKey) -> bool {
        let Ok(root) = OwnRoot::check(key, &tenant_root(&self.options().state_root, key)) else {
            return false;
        };
        // Under the table's lock, so that no opening begins in the directory that goes. Rare, and small: what is left of a ledger.
        let slots = self.shared().table.lock();
        if slots.by_key.contains_key(key) {
            return false;
        }
        let points = &self.backends().points;
        points.reached(Point::Before(Act::RecheckLocal), Some(key));
        let gone = root.remove();
        points.reached(Point::After(Act::RecheckLocal), Some(key));
        drop(slots);
        match gone {
            Ok(()) => {
                tracing::info!(%key, "removed the local ledger of a forgotten tenant");
                true
            }
            Err(error) => {
                tracing::warn!(%key, %error, "failed to remove the local ledger of a forgotten tenant");
                false
            }
        }
    }
}

/// The tenants that have a directory below a state root. What is no tenant's is passed over.
fn local_tenants(state_root: &std::path::Path) -> Vec<LeaseKey> {
    let children = |path: PathBuf| {
        std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect::<Vec<_>>()
    };
    let mut keys = Vec::new();
    for org in children(state_root.join("orgs")) {
        for tenant in children(state_root.join("orgs").join(&org).join("tenants")) {
            keys.extend(format!("{org}/{tenant}").parse::<LeaseKey>());
        }
    }
    keys.sort();
    keys
}
