//! What idle tenants cost (field note benbjohnson/litestream#1051: 383 databases took more than a core): counted, not timed.

use std::{sync::Arc, time::Duration};

use leasehold_proof::soak::one_thread_at_a_time;
use leasehold_tenure::{Backends, Router, RouterOptions};
use leasehold_testkit::{
    EmbeddedPair, FaultyBlobs, FaultyLeases, ManualClock, ManualTimer, Pair as _, event,
};
use leasehold_types::{Entropy, LeaseKey, NoPoints};

const TENANTS: usize = 383;
const TTL: Duration = Duration::from_secs(9);
const IDLE_AFTER: Duration = Duration::from_secs(300);
const SLICE: Duration = Duration::from_secs(1);

#[test]
fn litestream_1051_idle_tenants_cost_a_share_of_one_renewal_and_then_nothing() {
    one_thread_at_a_time(|idle| async move {
        let pair = EmbeddedPair::manual().await;
        let (clock, timer) = (ManualClock::new(), ManualTimer::new());
        let (leases, blobs) = (FaultyLeases::new(pair.leases()), FaultyBlobs::new(pair.blobs()));
        let dir = tempfile::tempdir().unwrap();
        let mut options = RouterOptions::new(dir.path().join("node"), "a".parse().unwrap());
        (options.ttl, options.idle_after) = (TTL, Some(IDLE_AFTER));
        let router = Router::new(
            options,
            Backends {
                leases: Arc::new(leases.clone()),
                blobs: Arc::new(blobs.clone()),
                clock: Arc::new(clock.clone()),
                timer: Arc::new(timer.clone()),
                entropy: Arc::new(Entropy::seeded(1)),
                points: Arc::new(NoPoints),
            },
        )
        .unwrap();
        idle.until_idle().await;
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let (timers_of_none, tasks_of_none) = (timer.sleepers(), tasks());
        let pass = async |time: Duration| {
            let mut left = time;
            while !left.is_zero() {
                pair.advance(SLICE).await;
                clock.advance(SLICE);
                timer.elapse(SLICE);
                idle.until_idle().await;
                left -= SLICE;
            }
        };

        for number in 0..TENANTS {
            let key: LeaseKey = format!("acme/idle-{number}").parse().unwrap();
            let handle = router.open(&key).await.unwrap();
            handle.append(vec![event("k-1")]).await.unwrap();
        }
        // Until everything is published and what an opening begins beside itself is done.
        pass(Duration::from_secs(30)).await;

        // Open and idle: one task and one timer each, no call to the object store, and one statement for all in each third of a ttl.
        assert_eq!(timer.sleepers() - timers_of_none, TENANTS);
        assert_eq!(tasks() - tasks_of_none, TENANTS);
        blobs.clear_calls();
        let renewals = leases.renewals_started();
        let rounds = 20;
        pass(TTL / 3 * rounds).await;
        assert_eq!(leases.renewals_started() - renewals, u64::from(rounds));
        assert!(leases.renewals().iter().rev().take(5).all(|claims| claims.len() == TENANTS));
        assert_eq!(blobs.calls(), []);

        // Idle for long: handed off, and then there is no task, no timer, no lease to renew and no call at all.
        pass(IDLE_AFTER).await;
        assert_eq!(router.handles().len(), 0);
        assert_eq!((timer.sleepers(), tasks()), (timers_of_none, tasks_of_none));
        blobs.clear_calls();
        let renewals = leases.renewals_started();
        pass(TTL * 10).await;
        assert_eq!((leases.renewals_started(), blobs.calls()), (renewals, Vec::new()));
    });
}
