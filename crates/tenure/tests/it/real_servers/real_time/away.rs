//! A database that is away for longer than any lease runs.

use std::time::Duration;

use leasehold_blob::AzureLimits;
use leasehold_services::{OwnServers, Stop};
use leasehold_testkit::{
    CloudPair, CloudServers, Fleet, PATIENCE, Pair as _, eventually, keys_of, pass, touch_nothing, within,
};
use leasehold_types::{ErrorCode, FencedReason};

use super::super::stage::{Tenants, blocking, intruding, writing};
use crate::lapse::fenced_because;

const TTL: Duration = Duration::from_secs(5);
const MARGIN: Duration = Duration::from_millis(500);
const RENEW_EVERY: Duration = Duration::from_millis(500);
const TENANTS: usize = 200;
/// Tenants that another replica wants as soon as the database is back.
const CONTESTED: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_away_for_two_ttls_lapses_two_hundred_leases_and_all_resume_in_their_epochs() {
    let own = OwnServers::of("postgres-away").expect("a place for servers");
    let mut postgres = own.postgres().expect("a Postgres of its own");
    let servers =
        CloudServers { postgres: postgres.url(), azurite: None, azure_limits: AzureLimits::default() };
    let fleet = Fleet::real_time_over(CloudPair::at(&servers).await, TTL, MARGIN).await;
    let [a, b] =
        ["a", "b"].map(|id| fleet.replica_with(id, |options| options.renew_every = Some(RENEW_EVERY)));
    let intruder = fleet.replica_with("c", |options| options.renew_every = Some(RENEW_EVERY));
    let tenants = Tenants::open(&[&a, &b], "away", TENANTS).await;
    let contested = Tenants::open(&[&a], "contested", CONTESTED).await;
    assert!(tenants.write("before").await.is_empty() && contested.write("before").await.is_empty());
    for handle in contested.handles() {
        within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    }

    let writes = writing(&tenants);
    blocking(|| postgres.server().stop(Stop::Fast)).expect("it is gone");
    let keys = contested.handles().map(|handle| handle.key().clone()).collect();
    let intrusion = intruding(&intruder.router, keys);
    eventually(PATIENCE, "every call is refused", || async {
        let mut all = tenants.handles().chain(contested.handles());
        all.all(|handle| touch_nothing(handle) == Err(ErrorCode::Fenced))
    })
    .await;
    pass(2 * TTL).await;
    for handle in tenants.handles().chain(contested.handles()) {
        assert_eq!(fenced_because(handle), Some(FencedReason::Lapsed), "{}", handle.key());
    }
    assert_eq!(intruder.events.named("acquired"), 0, "nobody gets what the database does not give");

    blocking(|| postgres.server().start_again()).expect("it is back");
    eventually(PATIENCE, "every tenant that nobody took serves again", || async {
        tenants.handles().all(|handle| touch_nothing(handle).is_ok())
    })
    .await;
    let refusals = writes.end().await;
    assert!(!refusals.is_empty() && refusals.iter().all(|code| *code == ErrorCode::Fenced), "{refusals:?}");
    assert!(tenants.write("after").await.is_empty());
    tenants.check();
    for handle in tenants.handles() {
        let row = fleet.pair().leases().read(handle.key()).await.expect("a row").expect("a row");
        assert_eq!((row.epoch, handle.epoch().get()), (handle.epoch(), 1), "{row:?}");
        let told = |name| {
            let fits =
                |event: &leasehold_tenure::TenureEvent| event.name() == name && event.key() == handle.key();
            a.events.count(fits) + b.events.count(fits)
        };
        assert_eq!(told("lost"), 0);
        assert!(told("lapsed") >= 1 && told("resumed") >= 1, "{}", handle.key());
    }

    // Each of the others is with one of the two that wanted it, and never with both.
    eventually(PATIENCE, "each contested tenant is served", || async {
        contested.handles().all(|old| {
            let new = intruder.router.handle_of(old.key());
            // In this order: once the new one serves the old one never does again.
            let by_new = new.as_ref().is_some_and(leasehold_tenure::Handle::is_open);
            let by_old = old.is_open();
            assert!(!(by_old && by_new), "{} is served twice", old.key());
            by_old || by_new
        })
    })
    .await;
    intrusion.end().await;
    for (old, acknowledged) in contested.acknowledged() {
        let Some(new) = intruder.router.handle_of(old.key()) else {
            assert_eq!((old.epoch().get(), keys_of(old)), (1, acknowledged));
            continue;
        };
        assert_eq!((new.epoch().get(), keys_of(&new)), (2, acknowledged), "what was published is there");
        eventually(PATIENCE, "the old owner is told", || async {
            fenced_because(old) == Some(FencedReason::Lost)
                || fenced_because(old) == Some(FencedReason::Sealed)
        })
        .await;
    }
}
