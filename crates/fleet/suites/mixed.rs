//! One rollout with replicas that are not alike: another ttl, another cadence of snapshots, another build.

use std::time::Duration;

use leasehold_testkit::pass;

use crate::harness::{Fleet, Load, Plan, REPLICAS, Settings};

const BETWEEN: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_are_not_alike_share_a_fleet() {
    let fleet = Fleet::new("mixed").await;
    let old = match fleet.launcher.has_previous_build() {
        Ok(()) => Settings { previous_build: true, ..fleet.settings() },
        Err(why) => {
            why.tell("mixed (the previous build)");
            fleet.settings()
        }
    };
    for replica in REPLICAS {
        fleet.start_with(replica, &old).await;
    }
    let load =
        Load::start(&fleet, Plan { tenants: 0..30, every: Duration::from_millis(400), followers: 6 }).await;
    let shorter = fleet.settings().with(&[
        ("LEASEHOLD_TTL", "4s"),
        ("LEASEHOLD_MARGIN", "1s"),
        ("LEASEHOLD_RENEW_EVERY", "1s"),
        ("LEASEHOLD_SNAPSHOT__EVERY", "1s"),
    ]);
    let longer = fleet.settings().with(&[("LEASEHOLD_TTL", "12s"), ("LEASEHOLD_SNAPSHOT__EVERY", "0s")]);
    for (replica, settings) in REPLICAS.into_iter().zip([shorter, longer, fleet.settings()]) {
        fleet.roll(replica, &settings).await;
        pass(BETWEEN).await;
    }
    // And who has them last goes without anything left behind.
    fleet.roll("b", &fleet.settings()).await;
    let outcome = load.end(&fleet, "a").await;
    let first = if old.previous_build { "the build before this one first; " } else { "" };
    outcome
        .report()
        .note(format!("{first}ttl 4, 6 and 12 s; snapshots every 1 s, every 5 s and only at handoffs"))
        .tell("mixed", fleet.launcher.name());
    outcome.assert_no_errors();
    outcome.assert_all_there(|_| true, true);
    outcome.assert_followed();
    outcome.assert_no_breach(&fleet);
}
