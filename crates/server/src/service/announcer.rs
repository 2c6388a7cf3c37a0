//! Telling the fleet that this replica is there.

use std::sync::Arc;

use leasehold_lease::Announced;

use crate::{StartError, app::App};

/// How often a replica says that it is there, in parts of the ttl: one that missed two of three is still counted as alive.
const PER_TTL: u32 = 3;

/// The first announcement. It takes the row over from whoever had it: the node's lock proves that no other process on these stores
/// is this replica.
pub(crate) async fn announce_first(app: &App) -> Result<(), StartError> {
    match app.leases.announce(&app.announcement(), app.config.ttl, true).await? {
        Announced::Accepted => Ok(()),
        Announced::Taken { endpoint, .. } => {
            Err(StartError::ReplicaIdTaken { replica: app.replica.clone(), endpoint })
        }
    }
}

/// Announces until it is dropped, or until another process has taken this replica's id, which it then answers.
pub(crate) async fn keep_announcing(app: Arc<App>) -> StartError {
    loop {
        app.timer.sleep(app.entropy.jittered(app.config.ttl / PER_TTL)).await;
        match app.leases.announce(&app.announcement(), app.config.ttl, false).await {
            Ok(Announced::Accepted) => {}
            Ok(Announced::Taken { endpoint, .. }) => {
                return StartError::ReplicaIdTaken { replica: app.replica.clone(), endpoint };
            }
            // Nobody's safety rests on it, and the next one comes soon.
            Err(error) => tracing::warn!(%error, "the fleet could not be told that this replica is there"),
        }
    }
}
