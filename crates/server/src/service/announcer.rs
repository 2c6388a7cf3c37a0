//! Telling the fleet that this replica is there.

use std::{sync::Arc, time::Duration};

use leasehold_lease::Announced;

use crate::{StartError, app::App};

/// How often a replica says that it is there, in parts of the ttl: one that missed two of three is still counted as alive.
const PER_TTL: u32 = 3;
/// How often it looks whether what it said is so still, in parts of the ttl, and how long it waits for that at the most: others place tenants
/// by how many it has.
const LOOKS_PER_TTL: u32 = 12;
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// What is waited beyond the end of a silence, so that the next look comes after it.
const BEYOND: Duration = Duration::from_millis(20);

/// The first announcement.
///
/// Where the node's lock proves that no other process on these stores is this replica, it takes the row over from whoever had it. Else,
/// on stores that other machines share, the id is its own once nobody was heard of under it for a ttl: a process that was killed is
/// waited out, and one that lives is heard again meanwhile.
pub(crate) async fn announce_first(app: &App) -> Result<(), StartError> {
    let ttl = app.config.ttl;
    // Had nobody spoken since the last look, the silence would be longer by what was waited; half of it allows for clocks that differ.
    let mut silence_min = Duration::ZERO;
    loop {
        let announced = app.leases.announce(&app.announcement(), ttl, app.is_alone_with_its_id).await?;
        let Announced::Taken { endpoint, seen_ago } = announced else {
            app.heard.note(app.clock.as_ref());
            return Ok(());
        };
        if seen_ago < silence_min {
            return Err(StartError::ReplicaIdTaken { replica: app.replica.clone(), endpoint });
        }
        let wait = ttl.saturating_sub(seen_ago) + BEYOND;
        silence_min = seen_ago + wait / 2;
        tracing::info!(replica = %app.replica, ?seen_ago, "this id was another process's: waiting for a ttl of silence");
        app.timer.sleep(wait).await;
    }
}

/// Announces in every third of a ttl, and soon after what it says has changed, until it is dropped, or until another process has taken this replica's id, which it then answers.
pub(crate) async fn keep_announcing(app: Arc<App>) -> StartError {
    let look_every = (app.config.ttl / LOOKS_PER_TTL).min(LOOK_EVERY_MAX);
    let due_after = || app.clock.now().plus(app.entropy.jittered(app.config.ttl / PER_TTL));
    let (mut said, mut due_at) = (None, due_after());
    loop {
        app.timer.sleep(app.entropy.jittered(look_every)).await;
        let announcement = app.announcement();
        // What comes due before the next look is not left to it.
        if said.as_ref() == Some(&announcement) && app.clock.now().plus(look_every) < due_at {
            continue;
        }
        due_at = due_after();
        match app.leases.announce(&announcement, app.config.ttl, false).await {
            Ok(Announced::Accepted) => {
                app.heard.note(app.clock.as_ref());
                said = Some(announcement);
            }
            Ok(Announced::Taken { endpoint, .. }) => {
                return StartError::ReplicaIdTaken { replica: app.replica.clone(), endpoint };
            }
            // Nobody's safety rests on it, and the next one comes soon.
            Err(error) => tracing::warn!(%error, "the fleet could not be told that this replica is there"),
        }
    }
}
