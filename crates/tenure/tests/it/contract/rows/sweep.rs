//! S: what lands in a dead epoch is never read, and goes.

use std::time::Duration;

use leasehold_tenure::TenureEvent;
use leasehold_testkit::{BlobOp, Fleet, PATIENCE, Pair, eventually, insert, keys_of, tenant, within};

/// What the contract gives a sweep beside an open.
const SOON: Duration = Duration::from_secs(3);

pub(crate) async fn s1_a_late_upload_into_a_dead_epoch_is_swept_beside_the_next_open<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let (key, neighbour) = (tenant("s1"), tenant("s1-neighbour"));
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    fleet.put(&format!("{key}/e00000001/snap-000009.db"), "late").await;
    fleet.put(&format!("{key}/e00000001/snap-000009.json"), "{}").await;
    fleet.put(&format!("{neighbour}/e00000001/base.json"), "{}").await;

    // The sweep is held at its first delete: the open does not wait for it.
    let held = fleet.blobs().hold_next(BlobOp::DeletePrefix, |prefix| prefix.ends_with("/e00000001/"));
    let next = within(PATIENCE, "the open", b.router.open(&key)).await.expect("b opens");
    assert!(keys_of(&next).is_empty());
    within(PATIENCE, "the sweep to begin", held.reached()).await;
    assert_eq!(fleet.stored(&format!("{key}/e00000001/")).await.len(), 2, "not swept inside the open");
    held.release();

    eventually(SOON, "the dead epoch is swept", || async {
        fleet.stored(&format!("{key}/e00000001/")).await.is_empty()
    })
    .await;
    assert_eq!(fleet.stored_of(&neighbour).await.len(), 1, "the neighbour is untouched");
}

pub(crate) async fn s2_a_failed_sweep_does_not_fail_the_open<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let (a, b, c) = (fleet.replica("a"), fleet.replica("b"), fleet.replica("c"));
    let key = tenant("s2");
    let dead = format!("{key}/e00000001/");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    within(PATIENCE, "the forget", handle.forget()).await.expect("forgotten");
    fleet.put(&format!("{dead}snap-000009.db"), "late").await;

    fleet.blobs().fail_next_delete();
    let next = b.router.open(&key).await.expect("b opens");
    insert(&next, "k-2");
    assert_eq!(keys_of(&next), ["k-2"], "it serves");
    eventually(PATIENCE, "the sweep fails", || async {
        b.events.count(|event| matches!(event, TenureEvent::SweepFailed { .. })) == 1
    })
    .await;
    assert_eq!(fleet.stored(&dead).await.len(), 1, "the sweep that failed deleted nothing");

    within(PATIENCE, "b's snapshot", next.snapshot()).await.expect("published");
    insert(&next, "k-3");
    within(PATIENCE, "b's handoff", next.handoff()).await.expect("handed off");
    assert_eq!(fleet.stored(&dead).await.len(), 1, "and this tenure did not try again");

    let last = c.router.open(&key).await.expect("c opens");
    assert!(last.is_open());
    assert_eq!(keys_of(&last), ["k-2", "k-3"]);
    eventually(SOON, "the next open sweeps", || async { fleet.stored(&dead).await.is_empty() }).await;
}
