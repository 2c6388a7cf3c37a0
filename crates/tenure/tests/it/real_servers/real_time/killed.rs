//! A database that is killed and comes back before any lease has run out.

use std::{collections::BTreeSet, time::Duration};

use leasehold_blob::AzureLimits;
use leasehold_services::{OwnServers, Stop};
use leasehold_tenure::TenureEvent;
use leasehold_testkit::{
    CloudPair, CloudServers, Fleet, PATIENCE, Pair as _, Replica, eventually, keys_of, pass,
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::super::stage::{Tenants, blocking, intruding, writing};

/// Long: a restart with a recovery of the log must fit into it on any machine.
const TTL: Duration = Duration::from_secs(40);
const MARGIN: Duration = Duration::from_secs(5);
const RENEW_EVERY: Duration = Duration::from_millis(500);
const AWAY: Duration = Duration::from_secs(1);
const TENANTS: usize = 200;

fn renewed(replica: &Replica) -> BTreeSet<LeaseKey> {
    let events = replica.events.all();
    let renewed = events.iter().filter(|event| matches!(event, TenureEvent::Renewed { .. }));
    renewed.map(|event| event.key().clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_is_killed_under_two_hundred_leases_loses_none_and_doubles_none() {
    let own = OwnServers::of("postgres-killed").expect("a place for servers");
    let mut postgres = own.postgres().expect("a Postgres of its own");
    let servers =
        CloudServers { postgres: postgres.url(), azurite: None, azure_limits: AzureLimits::default() };
    let fleet = Fleet::real_time_over(CloudPair::at(&servers).await, TTL, MARGIN).await;
    let [a, b] =
        ["a", "b"].map(|id| fleet.replica_with(id, |options| options.renew_every = Some(RENEW_EVERY)));
    let intruder = fleet.replica("c");
    let tenants = Tenants::open(&[&a, &b], "killed", TENANTS).await;
    let keys: Vec<LeaseKey> = tenants.handles().map(|handle| handle.key().clone()).collect();
    assert!(tenants.write("before").await.is_empty());

    let (writes, intrusion) = (writing(&tenants), intruding(&intruder.router, keys.clone()));
    for how in [Stop::Kill, Stop::Immediate] {
        blocking(|| postgres.server().stop(how)).expect("it is gone");
        pass(AWAY).await;
        a.events.clear();
        b.events.clear();
        blocking(|| postgres.server().start_again()).expect("it is back, on its old data");
        eventually(PATIENCE, "each lease is renewed again", || async {
            renewed(&a).len() + renewed(&b).len() == TENANTS
        })
        .await;
        for replica in [&a, &b] {
            assert_eq!(replica.events.named("lost") + replica.events.named("lapsed"), 0, "{how:?}");
        }
    }
    assert_eq!(writes.end().await, [], "an outage that is shorter than a lease is no caller's concern");
    let (got, refusals) = intrusion.end().await;
    assert!(got.is_empty() && intruder.events.named("acquired") == 0, "{got:?}");
    let expected = [ErrorCode::LeaseHeld, ErrorCode::LeaseStoreUnavailable];
    assert!(refusals.iter().all(|code| expected.contains(code)), "{refusals:?}");
    assert!(expected.iter().all(|code| refusals.contains(code)), "{refusals:?}");

    assert!(tenants.write("after").await.is_empty());
    tenants.check();
    for handle in tenants.handles() {
        let row = fleet.pair().leases().read(handle.key()).await.expect("a row").expect("a row");
        assert_eq!((row.epoch, handle.epoch().get()), (handle.epoch(), 1), "{row:?}");
        let holder = [&a, &b].into_iter().find(|holder| holder.router.handle_of(handle.key()).is_some());
        assert_eq!(row.owner.expect("an owner").replica, holder.expect("a holder").router.options().replica);
    }

    let (left_a, left_b) = tokio::join!(a.router.close(), b.router.close());
    assert_eq!([left_a, left_b].concat(), []);
    for (handle, acknowledged) in tenants.acknowledged() {
        let next = intruder.router.open(handle.key()).await.expect("it was handed off");
        assert_eq!((next.epoch().get(), keys_of(&next)), (2, acknowledged));
    }
}
