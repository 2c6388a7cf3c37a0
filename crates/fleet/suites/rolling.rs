//! Every replica is restarted, one after the other, three times in a row, and no client sees an error.

use std::time::Duration;

use leasehold_testkit::pass;

use crate::harness::{Fleet, Load, Plan, REPLICAS};

const ROUNDS: usize = 3;
/// Between two restarts: time in which tenants are moved to who came back, as in a rollout.
const BETWEEN: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn three_rolling_restarts_are_latency_at_the_most() {
    let fleet = Fleet::new("rolling").await;
    fleet.start(&REPLICAS).await;
    let plan = Plan { tenants: 0..50, every: Duration::from_millis(500), followers: 10 };
    let load = Load::start(&fleet, plan).await;
    pass(BETWEEN).await;
    for _ in 0..ROUNDS {
        for replica in REPLICAS {
            fleet.roll(replica, &fleet.settings()).await;
            pass(BETWEEN).await;
        }
    }
    let outcome = load.end(&fleet, "a").await;
    outcome.report().note("9 restarts").tell("rolling", fleet.launcher.name());
    outcome.assert_no_errors();
    outcome.assert_all_there(|_| true, true);
    outcome.assert_followed();
    outcome.assert_no_breach(&fleet);
}
