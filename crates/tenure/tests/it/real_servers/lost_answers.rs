//! A tenant's whole life, again and again, each time with another answer lost on the way: of each statement in turn, and of each request
//! to the object store. What the contract promises holds in all of these lives.

use std::net::SocketAddr;

use futures::{StreamExt as _, stream};
use leasehold_tenure::{Handle, Router, TenureError};
use leasehold_testkit::{
    CloudPair, CloudServers, Cue, Fault, FaultProxy, Fleet, PATIENCE, Pair as _, insert, keys_of, tenant,
    within,
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::stage::{azurite_addr, behind_a_network, short_limits};

/// How a statement ends on its way to the database (Sync).
const SYNC: &[u8] = b"S\0\0\0\x04";
/// In every request to the object store, once.
const REQUEST: &str = "x-ms-version:";
/// Lives side by side.
const LIVES: usize = 4;
/// More than any life has exchanges.
const EXCHANGES_MAX: usize = 500;

/// A caller repeats once what failed for want of the one answer that was lost.
async fn repeated<T, F>(what: &str, shown: &str, call: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, TenureError>>,
{
    match within(PATIENCE, what, call()).await {
        Ok(done) => done,
        Err(error) => {
            let is_of_a_store =
                matches!(error.code(), ErrorCode::LeaseStoreUnavailable | ErrorCode::BlobStoreUnavailable);
            assert!(is_of_a_store, "{shown}: {what}: {error:?}");
            within(PATIENCE, what, call()).await.unwrap_or_else(|error| panic!("{shown}: {what}: {error:?}"))
        }
    }
}

async fn opened(router: &Router, key: &LeaseKey, shown: &str) -> Handle {
    repeated("open", shown, || router.open(key)).await
}

async fn handed_off(handle: &Handle, shown: &str) {
    repeated("handoff", shown, || handle.handoff()).await;
}

/// Opens, publishes, hands off, opens elsewhere, forgets, and begins again. Never is anything waited out: time stands still.
async fn live(fleet: &Fleet<CloudPair>, shown: &str) {
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("life");
    let first = opened(&a.router, &key, shown).await;
    insert(&first, "k-1");
    repeated("snapshot", shown, || first.snapshot()).await;
    insert(&first, "k-2");
    handed_off(&first, shown).await;
    let second = opened(&b.router, &key, shown).await;
    assert_eq!(keys_of(&second), ["k-1", "k-2"], "{shown}");
    assert!(second.epoch() > first.epoch(), "{shown}");
    insert(&second, "k-3");
    handed_off(&second, shown).await;
    let third = opened(&a.router, &key, shown).await;
    assert_eq!(keys_of(&third), ["k-1", "k-2", "k-3"], "{shown}");
    let receipt = repeated("forget", shown, || a.router.forget(&key)).await;
    assert!(receipt.floor.covers(third.epoch()), "{shown}");
    assert!(fleet.stored_of(&key).await.is_empty(), "{shown}: {:?}", fleet.stored_of(&key).await);
    let leases = fleet.pair().leases();
    let row = match leases.read(&key).await {
        Err(error) if error.is_transient() => leases.read(&key).await,
        row => row,
    };
    let row = row.expect("read").expect("a row");
    assert!(row.owner.is_none() && row.receipt.is_some() && row.is_forgotten(), "{shown}: {row:?}");
    let fourth = opened(&b.router, &key, shown).await;
    assert!(keys_of(&fourth).is_empty() && fourth.epoch() > third.epoch(), "{shown}");
    insert(&fourth, "n-1");
    handed_off(&fourth, shown).await;
    let fifth = opened(&a.router, &key, shown).await;
    assert_eq!(keys_of(&fifth), ["n-1"], "{shown}");
}

/// One life in which the answer to the exchange `at` is lost, of those that `cue` is in. Whether there was such an exchange.
async fn one(proxy: FaultProxy, servers: CloudServers, cue: &[u8], at: usize) -> bool {
    let fleet = Fleet::manual_over(CloudPair::manual_at(&servers).await).await;
    let lost = proxy.plan(Cue::request(cue).after(at), Fault::LoseAnswer);
    live(&fleet, &format!("without answer {at}")).await;
    lost.is_met()
}

/// How many lives there were, one after another exchange, until there was no exchange left.
async fn lives<F: Future<Output = bool>>(life: impl Fn(usize) -> F) -> usize {
    let lives = stream::iter(0..EXCHANGES_MAX).map(life).buffered(LIVES);
    lives.take_while(|is_met| std::future::ready(*is_met)).count().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_bears_the_loss_of_the_answer_to_any_of_its_statements() {
    let count = lives(async |at| {
        let run = CloudServers::of_the_run();
        let place = run.postgres.rsplit_once('@').expect("a user").1;
        let place = place.split('/').next().expect("a place").to_owned();
        let target: SocketAddr = place.parse().expect("an address");
        let proxy = FaultProxy::start(target).await.expect("a proxy");
        let postgres = run.postgres.replace(&place, &proxy.addr().to_string());
        one(proxy, CloudServers { postgres, ..run }, SYNC, at).await
    })
    .await;
    assert!((20..EXCHANGES_MAX).contains(&count), "{count} statements");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_bears_the_loss_of_the_answer_to_any_request_to_the_object_store() {
    let count = lives(async |at| {
        let CloudServers { postgres, azurite, .. } = CloudServers::of_the_run();
        let azurite = azurite.expect("the run's");
        let (proxy, servers) =
            behind_a_network(postgres, &azurite, azurite_addr(&azurite), short_limits()).await;
        one(proxy, servers, REQUEST.as_bytes(), at).await
    })
    .await;
    assert!((50..EXCHANGES_MAX).contains(&count), "{count} requests");
}
