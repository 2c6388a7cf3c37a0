//! An owner stands still for longer than its leases run, and goes on: nobody hears two tenures at once.

use std::{collections::BTreeMap, time::Duration};

use leasehold_proof::Answered;
use leasehold_testkit::{PATIENCE, pass};
use rustix::process::Signal;

use crate::harness::{Fleet, Kind, Load, Plan, REPLICAS, TTL, now, tenants};

const TENANTS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_wakes_up_too_late_is_fenced_at_its_first_call() {
    let fleet = Fleet::new("frozen").await;
    fleet.start(&REPLICAS).await;
    let load =
        Load::start(&fleet, Plan { tenants: 0..TENANTS, every: Duration::from_millis(200), followers: 0 })
            .await;
    pass(Duration::from_secs(3)).await;
    let mut epochs = BTreeMap::new();
    for tenant in tenants(0..TENANTS) {
        if let Some(("b", epoch)) = fleet.owner("a", &tenant).await {
            epochs.insert(tenant, epoch);
        }
    }
    let frozen_at = now();
    fleet.door.leave("b");
    fleet.launcher.signal("b", Signal::STOP).await;
    // Others serve, also where a writer's own request waits for an answer of the one that stands still: the leases have run out.
    pass(TTL).await;
    for tenant in epochs.keys() {
        let meanwhile = fleet.caller("a", tenant).append(&format!("meanwhile-{}", tenant.tenant())).await;
        meanwhile.unwrap().done().unwrap();
    }

    // Asked of the one that stands still, by somebody who knows of nothing, for each tenant that it still believes to hold. The recorder
    // is told, and knows who has answered meanwhile.
    let late: Vec<_> = epochs
        .iter()
        .map(|(tenant, epoch)| {
            let (caller, id, epoch) =
                (fleet.caller("b", tenant), format!("late-{}", tenant.tenant()), *epoch);
            tokio::spawn(async move { (caller.with_patience(PATIENCE).append(&id).await, epoch) })
        })
        .collect();
    pass(Duration::from_secs(1)).await;
    fleet.launcher.signal("b", Signal::CONT).await;
    let mut elsewhere = 0;
    for one in late {
        match one.await.unwrap() {
            (Ok(Answered::Done(at)), epoch) => {
                assert!(at.epoch.get() > epoch, "acknowledged at {at} by who was replaced in {epoch}");
                elsewhere += 1;
            }
            (Ok(Answered::Refused(_)), _) => {}
            (other, epoch) => panic!("of who was in epoch {epoch}: {other:?}"),
        }
    }
    // It was not restarted: it finds out by itself and serves on.
    fleet.until_ready("b").await;
    fleet.door.come("b");
    pass(Duration::from_secs(3)).await;
    let outcome = load.end(&fleet, "a").await;
    let again = outcome.served_again(frozen_at, &epochs);
    outcome
        .report()
        .note(format!("{} tenants asked of the one that woke up: {elsewhere} acknowledged by their new owners, none by it", epochs.len()))
        .tell("frozen", fleet.launcher.name());
    let with_events = epochs
        .keys()
        .filter(|key| outcome.written.iter().any(|one| one.tenant == **key && one.kind != Kind::Sql));
    assert_eq!(again.len(), with_events.count(), "{again:?} of {epochs:?}");
    outcome.assert_no_breach(&fleet);
}
