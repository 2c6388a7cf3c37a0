//! Packets are lost between a replica and whatever it needs, one direction at a time, and come again: the fleet heals without a hand on it.

use std::time::Duration;

use leasehold_testkit::{PATIENCE, eventually, pass};

use crate::harness::{Cut, End, Fleet, Kind, Load, Plan, REPLICAS, tenants};

const TENANTS: usize = 12;
/// Longer than a lease runs.
const CUT_FOR: Duration = Duration::from_secs(9);

const CUTS: [Cut; 6] = [
    Cut { replica: "b", end: End::Postgres, outward: true },
    Cut { replica: "b", end: End::Postgres, outward: false },
    Cut { replica: "b", end: End::Store, outward: true },
    Cut { replica: "b", end: End::Store, outward: false },
    Cut { replica: "b", end: End::Replica("c"), outward: true },
    Cut { replica: "b", end: End::Replica("c"), outward: false },
];

/// What clients may be told while something is cut, and nothing else: each of these says that it passes, and whether anything was executed.
const PROMISED: [&str; 8] = [
    "draining",
    "fenced",
    "lease_held",
    "overloaded",
    "timeout",
    "lease_store_unavailable",
    "blob_store_unavailable",
    "owner_unreachable",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_cut_heals_by_itself_and_loses_nothing_that_was_published() {
    let fleet = match Fleet::that_can_be_cut("partitioned").await {
        Ok(fleet) => fleet,
        Err(why) => return why.tell("partitioned"),
    };
    fleet.start(&REPLICAS).await;
    for (number, cut) in CUTS.into_iter().enumerate() {
        // Others each time: a write has one name for ever.
        let of = number * TENANTS..(number + 1) * TENANTS;
        let load = Load::start(
            &fleet,
            Plan { tenants: of.clone(), every: Duration::from_millis(250), followers: 4 },
        )
        .await;
        pass(Duration::from_secs(2)).await;
        for tenant in tenants(of.clone()) {
            fleet.caller("a", &tenant).snapshot().await.unwrap();
        }
        fleet.cut(cut).await;
        pass(CUT_FOR).await;
        fleet.heal(cut).await;
        for replica in REPLICAS {
            fleet.until_ready(replica).await;
        }
        // Each replica answers for each tenant again, whoever holds it.
        for replica in REPLICAS {
            for tenant in tenants(of.clone()) {
                let what = format!("{replica} answers for {tenant} after {cut:?}");
                eventually(PATIENCE, &what, async || fleet.owner(replica, &tenant).await.is_some()).await;
            }
        }
        let mut outcome = load.end(&fleet, "a").await;
        let way = if cut.outward { "to" } else { "from" };
        let report = outcome
            .report()
            .note(format!("packets of {} {way} {:?} lost for {CUT_FOR:?}", cut.replica, cut.end));
        report.tell(&format!("partitioned-{}", number + 1), fleet.launcher.name());
        let is_promised = |error: &String| PROMISED.iter().any(|code| error.ends_with(&format!(" {code}")));
        let unpromised = outcome.errors().into_iter().filter(|error| !is_promised(error));
        assert_eq!(unpromised.collect::<Vec<_>>(), [""; 0], "{cut:?}");
        outcome.assert_no_breach(&fleet);
        outcome.send_again(&fleet, "a").await;
        outcome.assert_all_there(|written| written.kind != Kind::Unkeyed, false);
        outcome.assert_no_breach(&fleet);
    }
}
