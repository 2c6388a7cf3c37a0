//! How long what was written waits until it is published.

use std::time::Duration;

use leasehold_testkit::{EmbeddedPair, Fleet, PATIENCE, insert, tenant, within};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_counts_from_its_write_and_not_from_the_last_snapshot() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("waits")).await.expect("a opens");
    let waits = || handle.status().unpublished_for;
    let publish = || within(PATIENCE, "the snapshot", handle.snapshot());
    fleet.advance(SECOND).await;
    assert_eq!(waits(), Duration::ZERO, "nothing was written");

    insert(&handle, "k-1");
    fleet.advance(SECOND).await;
    insert(&handle, "k-2");
    fleet.advance(SECOND).await;
    assert_eq!(waits(), 2 * SECOND, "the first write is the oldest");

    fleet.blobs().down(true);
    publish().await.expect_err("the store is away");
    assert_eq!(waits(), 2 * SECOND, "a failed upload published nothing");
    fleet.blobs().down(false);
    publish().await.expect("published");
    assert_eq!(waits(), Duration::ZERO);

    fleet.advance(SECOND).await;
    insert(&handle, "k-3");
    assert_eq!(waits(), Duration::ZERO, "how old the snapshot is says nothing of the write");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_known_leaves_nothing_that_waits() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("known")).await.expect("a opens");
    let append = || async {
        let event = leasehold_testkit::event("k-1");
        handle.append(vec![event]).await.expect("appended")
    };
    append().await;
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    assert!(append().await[0].duplicate);
    fleet.advance(SECOND).await;
    assert_eq!(handle.status().unpublished_for, Duration::ZERO);
    assert_eq!(a.events.named("snapshot_published"), 1);
}
