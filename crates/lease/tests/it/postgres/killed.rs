//! A server that is killed: what it has answered for is there when it is back, and the store finds its way to it by itself.

use std::time::Duration;

use leasehold_lease::{Acquisition, Claim, LeaseStore as _, PostgresLeaseStore, PostgresOptions, Renewal};
use leasehold_services::{OwnServers, Stop};

use super::server::Way;
use crate::stage::{key, tenure_id};

/// Longer than any restart.
const TTL: Duration = Duration::from_secs(600);
const LEASES: usize = 50;
/// How often a store may be asked until it has found out that its connections are gone: each of its pools' once, and a new one.
const ASKED_MAX: u32 = 20;

async fn goes_on_after_a_kill(test: &str, way: Way) {
    let own = OwnServers::of(test).unwrap();
    let mut postgres = own.postgres().unwrap();
    let pgbouncer = (way == Way::Pooled).then(|| own.pgbouncer(&postgres).unwrap());
    let url = pgbouncer.as_ref().map_or_else(|| postgres.url(), |pooler| postgres.url_at(pooler.addr()));
    let options = PostgresOptions::new(url);
    PostgresLeaseStore::migrate(&options).await.unwrap();
    let store = PostgresLeaseStore::connect(options).await.unwrap();
    let mut claims = Vec::new();
    for at in 0..LEASES {
        let (wanted, replica) = (key(&format!("acme/t{at}")), "a".parse().unwrap());
        let taken = store.acquire(&wanted, &replica, tenure_id(1), TTL).await.unwrap();
        let Acquisition::Granted(grant) = taken else { panic!("{taken:?}") };
        claims.push(Claim { key: wanted, replica, tenure: tenure_id(1), epoch: grant.epoch });
    }

    for how in [Stop::Kill, Stop::Immediate, Stop::Fast] {
        assert_eq!(store.renew(&claims, TTL).await.unwrap(), vec![Renewal::Granted; LEASES]);
        postgres.server().stop(how).unwrap();
        if way == Way::Direct {
            // Behind a pooler a call waits for the server to come back, as long as its own limit lets it.
            let error = store.renew(&claims, TTL).await.unwrap_err();
            assert!(error.is_transient(), "{how:?}: {error:?}");
        }
        postgres.server().start_again().unwrap();
        let mut asked = 0;
        let renewed = loop {
            match store.renew(&claims, TTL).await {
                Ok(renewed) => break renewed,
                Err(error) => assert!(error.is_transient() && asked < ASKED_MAX, "{how:?}: {error:?}"),
            }
            asked += 1;
        };
        assert_eq!(renewed, vec![Renewal::Granted; LEASES], "{how:?}");
    }

    let (other, mut asked) = ("b".parse().unwrap(), 0);
    for claim in &claims {
        let taken = loop {
            match store.acquire(&claim.key, &other, tenure_id(2), TTL).await {
                Ok(taken) => break taken,
                Err(error) => assert!(error.is_transient() && asked < ASKED_MAX, "{error:?}"),
            }
            asked += 1;
        };
        assert!(matches!(taken, Acquisition::Held(holder) if holder.epoch == claim.epoch));
        assert!(store.read(&claim.key).await.unwrap().unwrap().is_of(claim));
    }
}

#[tokio::test]
async fn leases_outlive_a_server_that_is_killed() {
    goes_on_after_a_kill("lease-killed", Way::Direct).await;
}

#[tokio::test]
async fn leases_outlive_a_server_that_is_killed_behind_a_pooler() {
    goes_on_after_a_kill("lease-killed-pooled", Way::Pooled).await;
}
