//! An owner is killed: its tenants are served elsewhere once its leases have run out, with all that was published.

use std::{collections::BTreeMap, time::Duration};

use leasehold_testkit::pass;

use crate::harness::{Fleet, Kind, Load, Plan, REPLICAS, TTL, tenants};

const TENANTS: usize = 18;
/// What the contract of this suite gives a takeover over the ttl.
const OVER_THE_TTL: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_owner_is_replaced_within_the_ttl_and_a_little() {
    let fleet = Fleet::new("killed").await;
    fleet.start(&REPLICAS).await;
    let load =
        Load::start(&fleet, Plan { tenants: 0..TENANTS, every: Duration::from_millis(200), followers: 6 })
            .await;
    pass(Duration::from_secs(3)).await;
    let mut epochs = BTreeMap::new();
    for tenant in tenants(0..TENANTS) {
        if let Some(("b", epoch)) = fleet.owner("a", &tenant).await {
            // What is published now has to be there afterwards; the recorder is told.
            fleet.caller("a", &tenant).snapshot().await.unwrap();
            epochs.insert(tenant, epoch);
        }
    }
    assert!(!epochs.is_empty(), "b holds nothing");

    let killed_at = fleet.kill("b").await;
    pass(TTL + Duration::from_secs(6)).await;
    let mut outcome = load.end(&fleet, "a").await;
    let again = outcome.served_again(killed_at, &epochs);
    let longest = again.iter().map(|(_, after)| *after).max().unwrap_or_default();
    let report = outcome.report().note(format!(
        "{} of {TENANTS} tenants were the killed one's, served again after {:.1} s at the most (ttl {:?})",
        epochs.len(),
        longest.as_secs_f64(),
        TTL,
    ));
    report.tell("killed", fleet.launcher.name());
    let with_events = epochs
        .keys()
        .filter(|key| outcome.written.iter().any(|one| one.tenant == **key && one.kind != Kind::Sql));
    assert_eq!(again.len(), with_events.count(), "served again: {again:?}, of {epochs:?}");
    assert!(longest <= TTL + OVER_THE_TTL, "{again:?}");
    outcome.assert_no_breach(&fleet);
    outcome.assert_followed();
    // Who was not touched by it, saw nothing of it.
    outcome.assert_all_there(|written| !epochs.contains_key(&written.tenant), true);

    // Who writes with keys sends again what is not known to be published.
    outcome.send_again(&fleet, "a").await;
    outcome.assert_all_there(|written| written.kind != Kind::Unkeyed, false);
    outcome.assert_no_breach(&fleet);
}
