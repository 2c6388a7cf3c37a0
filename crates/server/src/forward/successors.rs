//! Where a tenant goes that nobody holds and this replica does not take, because it leaves.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use leasehold_types::{LeaseKey, Moment};
use sha2::{Digest as _, Sha256};

use super::Owner;
use crate::app::App;

/// How long the list of replicas is used before it is read again.
const FRESH: Duration = Duration::from_millis(250);

/// The replicas that take tenants, as they were read last.
#[derive(Debug, Default)]
pub(crate) struct Successors(Mutex<Option<(Moment, Arc<[Owner]>)>>);

impl Successors {
    /// The replica that takes `key`, those that are not to be asked left out; the same one wherever it is asked for. `None`: nobody does.
    pub(crate) async fn choose(&self, app: &App, key: &LeaseKey, without: &[String]) -> Option<Owner> {
        let all = self.all(app).await?;
        let asked = all.iter().filter(|one| !without.contains(&one.replica));
        asked.max_by_key(|one| score(key, &one.replica)).cloned()
    }

    async fn all(&self, app: &App) -> Option<Arc<[Owner]>> {
        let now = app.clock.now();
        if let Some((read_at, all)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && now.since(*read_at) < FRESH
        {
            return Some(Arc::clone(all));
        }
        let rows = match app.leases.replicas().await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "the fleet could not be read");
                return None;
            }
        };
        let all: Arc<[Owner]> = rows
            .into_iter()
            .filter(|row| row.seen_ago <= app.config.ttl && !row.announcement.draining)
            .map(|row| row.announcement)
            .filter(|one| one.replica != app.replica)
            .filter_map(|one| {
                Some(Owner { replica: one.replica.to_string(), endpoint: one.endpoint?, epoch: None })
            })
            .filter(Owner::is_reachable)
            .collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&all)));
        Some(all)
    }
}

/// Rendezvous hashing: each replica draws a number for the tenant, and the highest one has it, so that a replica that leaves moves only
/// its own tenants.
fn score(key: &LeaseKey, replica: &str) -> [u8; 32] {
    Sha256::new().chain_update(key.to_string()).chain_update([0]).chain_update(replica).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_leaves_moves_only_its_own_tenants() {
        let place = |key: &LeaseKey, replicas: &[&'static str]| {
            replicas.iter().copied().max_by_key(|replica| score(key, replica)).unwrap()
        };
        let mut of_c = 0;
        for number in 0..300 {
            let key: LeaseKey = format!("acme/u-{number}").parse().unwrap();
            let (before, after) = (place(&key, &["a", "b", "c"]), place(&key, &["a", "b"]));
            of_c += u32::from(before == "c");
            assert!(before == after || before == "c");
        }
        assert!((50..150).contains(&of_c), "{of_c} of 300");
    }
}
