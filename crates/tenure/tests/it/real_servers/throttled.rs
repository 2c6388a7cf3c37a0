//! A blob store that asks to be left alone for a while.

use std::time::Duration;

use leasehold_testkit::{
    CloudPair, CloudServers, Cue, Fault, FaultProxy, Fleet, PATIENCE, by_code, insert, keys_of, tenant,
    touch_nothing, within,
};
use leasehold_types::{Clock as _, ErrorCode, SystemClock};

use super::stage::{azurite_addr, behind_a_network, short_limits};

/// In the request by which an image is put.
const IMAGE: &str = ".db HTTP/1.1";
const LISTING: &str = "comp=list";

async fn fleet() -> (Fleet<CloudPair>, FaultProxy) {
    let CloudServers { postgres, azurite, .. } = CloudServers::of_the_run();
    let azurite = azurite.expect("the run's");
    let (proxy, servers) = behind_a_network(postgres, &azurite, azurite_addr(&azurite), short_limits()).await;
    (Fleet::manual_over(CloudPair::manual_at(&servers).await).await, proxy)
}

/// A refusal as the service gives it.
fn busy(status: &str, code: &str, retry_after: u32) -> Fault {
    let answer = format!(
        "HTTP/1.1 {status}\r\nx-ms-error-code: {code}\r\nRetry-After: {retry_after}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    Fault::AnswerInstead(answer.into_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_busy_is_left_alone_as_long_as_it_asks_and_nothing_is_lost() {
    let (fleet, proxy) = fleet().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("busy");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    let asked = [
        proxy.plan(Cue::request(IMAGE), busy("503 Server Busy", "ServerBusy", 1)),
        proxy.plan(Cue::request(IMAGE), busy("429 Too Many Requests", "TooManyRequests", 1)),
    ];
    let began = SystemClock.now();
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    assert!(asked.iter().all(leasehold_testkit::Planned::is_met));
    assert!(SystemClock.now().since(began) >= Duration::from_secs(2), "a second for each time");
    assert!(a.events.released_flushed(&key));

    let asked = [
        proxy.plan(Cue::request(LISTING), busy("503 Server Busy", "ServerBusy", 1)),
        proxy.plan(Cue::request(LISTING), busy("429 Too Many Requests", "TooManyRequests", 1)),
    ];
    let began = SystemClock.now();
    let next = within(PATIENCE, "the open", b.router.open(&key)).await.expect("b opens");
    assert!(asked.iter().all(leasehold_testkit::Planned::is_met));
    assert!(SystemClock.now().since(began) >= Duration::from_secs(2), "a second for each time");
    assert_eq!((next.epoch().get(), keys_of(&next)), (2, vec!["k-1".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_stays_busy_fails_the_handoff_and_the_tenant_serves_on() {
    let (fleet, proxy) = fleet().await;
    let a = fleet.replica("a");
    let key = tenant("stays-busy");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    for _ in 0..100 {
        drop(proxy.plan(Cue::request(IMAGE), busy("503 Server Busy", "ServerBusy", 1)));
    }
    let failed = within(PATIENCE, "the handoff", handle.handoff()).await;
    assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable));
    assert!(proxy.pending() > 80, "it was asked a bounded number of times: {} are left", proxy.pending());
    assert_eq!(touch_nothing(&handle), Ok(()));
    insert(&handle, "k-2");

    proxy.forget_faults();
    within(PATIENCE, "the later handoff", handle.handoff()).await.expect("handed off");
    let next = fleet.replica("b").router.open(&key).await.expect("b opens");
    assert_eq!((next.epoch().get(), keys_of(&next)), (2, vec!["k-1".to_owned(), "k-2".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_that_a_busy_store_refuses_hands_the_lease_back() {
    let (fleet, proxy) = fleet().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("refused");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    for _ in 0..100 {
        drop(proxy.plan(Cue::request(LISTING), busy("503 Server Busy", "ServerBusy", 1)));
    }
    let failed = within(PATIENCE, "the open", b.router.open(&key)).await;
    assert_eq!(by_code(failed).map(drop), Err(ErrorCode::BlobStoreUnavailable));
    proxy.forget_faults();
    let next = a.router.open(&key).await.expect("the lease was handed back");
    assert_eq!((next.epoch().get(), keys_of(&next)), (3, vec!["k-1".to_owned()]));
}
