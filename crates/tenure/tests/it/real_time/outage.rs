//! A lease store that is away for longer than a lease.

use std::time::Duration;

use leasehold_testkit::{
    EmbeddedPair, Fleet, PATIENCE, eventually, insert, keys_of, pass, tenant, touch_nothing, within,
};
use leasehold_types::{ErrorCode, FencedReason};

use crate::lapse::fenced_because;

const TTL: Duration = Duration::from_millis(1_500);
const MARGIN: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_lease_store_longer_than_the_ttl_costs_availability_and_no_data() {
    let fleet = Fleet::<EmbeddedPair>::real_time(TTL, MARGIN).await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("outage");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");

    fleet.leases().down(true);
    eventually(PATIENCE, "calls are refused", || async { touch_nothing(&handle) == Err(ErrorCode::Fenced) })
        .await;
    pass(TTL).await;
    assert_eq!(fenced_because(&handle), Some(FencedReason::Lapsed));
    fleet.leases().down(false);
    eventually(PATIENCE, "the tenant serves again", || async { touch_nothing(&handle).is_ok() }).await;

    insert(&handle, "k-2");
    assert_eq!(a.events.named("lost"), 0);
    assert!(a.events.named("lapsed") >= 1 && a.events.named("resumed") >= 1);
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1", "k-2"]);
}
