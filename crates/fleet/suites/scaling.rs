//! A fleet grows from one replica to three and shrinks to two: shares stay within the bound, and no client sees an error.

use std::time::Duration;

use leasehold_testkit::pass;

use crate::harness::{Fleet, Load, Plan, now};

const TENANTS: usize = 50;
/// How long it may take until every replica has its share.
const BALANCED_WITHIN: Duration = Duration::from_secs(90);

/// Waits until these replicas, and no others, have all tenants, none above the bound.
async fn until_shared(fleet: &Fleet, replicas: &[&'static str]) -> String {
    let until = now().plus(BALANCED_WITHIN);
    loop {
        let (shares, most) = fleet.shares(replicas[0]).await;
        let seen = format!("{shares:?} of {most} at the most");
        let all: u64 = shares.iter().map(|(_, share)| share).sum();
        let is_shared = shares.len() == replicas.len()
            && all == u64::try_from(TENANTS).unwrap()
            && shares.iter().all(|(_, share)| (1..=most).contains(share));
        if is_shared {
            return seen;
        }
        assert!(now() < until, "{replicas:?} do not share the tenants: {seen}");
        // A look at the fleet is a call; more of them in a row would be load of their own.
        pass(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_grows_and_shrinks_and_nobody_is_told_no() {
    let fleet = Fleet::new("scaling").await;
    fleet.start(&["a"]).await;
    let plan = Plan { tenants: 0..TENANTS, every: Duration::from_millis(500), followers: 10 };
    let load = Load::start(&fleet, plan).await;
    fleet.start(&["b", "c"]).await;
    let grown = until_shared(&fleet, &["a", "b", "c"]).await;
    let ended = fleet.stop("c").await;
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let shrunk = until_shared(&fleet, &["a", "b"]).await;
    let outcome = load.end(&fleet, "a").await;
    let report = outcome.report().note(format!("shares of three {grown}")).note(format!("of two {shrunk}"));
    report.tell("scaling", fleet.launcher.name());
    outcome.assert_no_errors();
    outcome.assert_all_there(|_| true, true);
    outcome.assert_followed();
    outcome.assert_no_breach(&fleet);
}
