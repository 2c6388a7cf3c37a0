//! R: there is one renewal chain, whatever tenures do.

use std::time::Duration;

use leasehold_testkit::{Fleet, PATIENCE, Pair, by_code, eventually, insert, pass, tenant, within};
use leasehold_types::ErrorCode;

pub(crate) async fn r1_a_failed_handoff_starts_no_second_chain<P: Pair>() {
    let fleet = Fleet::<P>::real_time(Duration::from_secs(5), Duration::from_millis(500)).await;
    let a = fleet.replica_with("a", |options| options.renew_every = Some(Duration::from_millis(600)));
    let handle = a.router.open(&tenant("r1")).await.expect("a opens");
    insert(&handle, "k-1");

    // An open renews once by itself; what counts is what the chain starts from here on.
    fleet.leases().hold_renewals();
    let before = fleet.leases().renewals_started();
    let started = || fleet.leases().renewals_started() - before;
    eventually(Duration::from_secs(4), "a renewal hangs", || async { started() == 1 }).await;
    fleet.blobs().down(true);
    let failed = within(PATIENCE, "the handoff over an outage", handle.handoff()).await;
    assert_eq!(by_code(failed), Err(ErrorCode::BlobStoreUnavailable));
    fleet.blobs().down(false);
    pass(Duration::from_millis(900)).await;
    fleet.leases().release_renewals();
    pass(Duration::from_millis(120)).await;

    assert_eq!(started(), 1, "the next renewal waits for its own time");
    within(PATIENCE, "the later handoff", handle.handoff()).await.expect("the later handoff succeeds");
}
