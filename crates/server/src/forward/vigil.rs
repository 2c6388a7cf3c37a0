//! Watching, while another replica does not answer, whether it still is the one to wait for.
//!
//! A process that is stopped, or a machine that is gone without a word, takes what it is sent and answers nothing. Its lease runs out all the
//! same, and then whoever is asked next may serve: nobody has to wait for it any longer.

use std::time::Duration;

use leasehold_lease::LeaseRow;
use leasehold_types::LeaseKey;

use super::Owner;
use crate::app::App;

/// How long an answer may take before its owner's lease is looked at. Most take less, and cost no look.
const UNWATCHED: Duration = Duration::from_secs(1);
/// How long after a lease's end it is looked at, and how long after a look that failed.
const AFTER: Duration = Duration::from_millis(100);

/// What the row says of a replica that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// It may answer yet; its lease runs for so long.
    Holds(Duration),
    /// The lease is not its own. While its process is there it says so itself, hands the tenant over, or is about to open it.
    IsNot,
    /// Its lease ran out in its hands: it acknowledges nothing any more.
    RanOut,
}

fn seen(row: Option<&LeaseRow>, owner: &Owner) -> Seen {
    let held = row.and_then(|row| row.owner.as_ref()).filter(|held| held.replica.as_str() == owner.replica);
    match held {
        Some(held) if held.remaining.is_zero() => Seen::RanOut,
        Some(held) => Seen::Holds(held.remaining),
        None => Seen::IsNot,
    }
}

/// Ends once the lease store says that the lease ran out in `owner`'s hands, or that it has no lease and was not heard of for a ttl. What
/// it was asked may have been executed.
pub(super) async fn until_gone(app: &App, key: &LeaseKey, owner: &Owner) {
    let mut wait = UNWATCHED;
    loop {
        app.timer.sleep(wait).await;
        wait = match app.leases.read(key).await {
            Err(_) => UNWATCHED,
            Ok(row) => match seen(row.as_ref(), owner) {
                Seen::RanOut => return,
                Seen::Holds(remaining) => remaining + AFTER,
                Seen::IsNot if !is_heard_of(app, owner).await => return,
                Seen::IsNot => UNWATCHED,
            },
        };
    }
}

/// Whether the process is there; assumed while the store does not say.
async fn is_heard_of(app: &App, owner: &Owner) -> bool {
    let Ok(rows) = app.leases.replicas().await else { return true };
    let row = rows.iter().find(|row| row.announcement.replica.as_str() == owner.replica);
    row.is_some_and(|row| row.seen_ago <= app.config.ttl)
}

#[cfg(test)]
mod tests {
    use leasehold_types::{Epoch, Floor, TenureId};
    use uuid::Uuid;

    use super::*;

    fn row(owner: Option<(&str, u64)>) -> LeaseRow {
        LeaseRow {
            key: "acme/a".parse().unwrap(),
            epoch: Epoch::FIRST,
            owner: owner.map(|(replica, seconds)| leasehold_lease::Owner {
                replica: replica.parse().unwrap(),
                endpoint: None,
                tenure: TenureId::new(Uuid::nil()),
                remaining: Duration::from_secs(seconds),
            }),
            floor: Floor::NONE,
            forgotten_at: None,
            receipt: None,
            paused_at: None,
        }
    }

    #[test]
    fn whose_lease_ran_out_is_not_waited_for() {
        let asked = Owner { replica: "a".into(), endpoint: "http://a:1".into(), epoch: None };
        for (held_by, expected) in [
            (Some(("a", 7)), Seen::Holds(Duration::from_secs(7))),
            (Some(("a", 0)), Seen::RanOut),
            (Some(("b", 7)), Seen::IsNot),
            (Some(("b", 0)), Seen::IsNot),
            (None, Seen::IsNot),
        ] {
            assert_eq!(seen(Some(&row(held_by)), &asked), expected, "{held_by:?}");
        }
        assert_eq!(seen(None, &asked), Seen::IsNot);
    }
}
