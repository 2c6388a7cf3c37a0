//! What other systems' users met, and what holds here instead: the rows of docs/field-notes.md that no other suite has.

use std::time::Duration;

use leasehold_testkit::{
    BlobOp, EmbeddedPair, Fleet, PATIENCE, Replica, by_code, eventually, insert, keys_of, tenant, try_insert,
    within,
};
use leasehold_types::{ErrorCode, LeaseKey};

/// A replica that keeps nothing superseded, so that its sweeps take whatever they may.
fn thrifty(fleet: &Fleet<EmbeddedPair>, id: &str) -> Replica {
    fleet.replica_with(id, |options| options.snapshot.keep.superseded = 0)
}

async fn publish(replica: &Replica, key: &LeaseKey, written: &str) {
    let handle = replica.router.open(key).await.expect("it opens");
    insert(&handle, written);
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
}

/// The images of an epoch in the store.
async fn images(fleet: &Fleet<EmbeddedPair>, key: &LeaseKey, epoch: &str) -> Vec<String> {
    let stored = fleet.stored(&format!("{key}/{epoch}/")).await;
    let is_image = |name: &String| std::path::Path::new(name).extension().is_some_and(|end| end == "db");
    stored.into_iter().filter(is_image).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn litestream_1270_a_sweep_that_takes_what_a_slow_restore_wants_fences_it() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b, c) = (fleet.replica("a"), fleet.replica("b"), thrifty(&fleet, "c"));
    let key = tenant("slow-restore");
    publish(&a, &key, "k-1").await;
    within(PATIENCE, "the handoff", a.router.open(&key).await.expect("open").handoff()).await.expect("gone");

    let held = fleet.blobs().hold_next(BlobOp::Download, |_| true);
    let router = b.router.clone();
    let restore = tokio::spawn({
        let key = key.clone();
        async move { router.open(&key).await }
    });
    within(PATIENCE, "b's download", held.reached()).await;
    fleet.outlive_leases().await;
    publish(&c, &key, "k-2").await;
    eventually(PATIENCE, "c's sweep", || async { images(&fleet, &key, "e00000001").await.is_empty() }).await;
    held.release();

    let restored = within(PATIENCE, "b's opening", restore).await.expect("it does not panic");
    assert_eq!(by_code(restored.map(drop)), Err(ErrorCode::Fenced), "not damage, and not half a ledger");
    assert_eq!(keys_of(&c.router.open(&key).await.expect("c has it")), ["k-1", "k-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn litestream_1307_a_stalled_sweep_takes_no_part_of_what_a_successor_restores() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b, c) = (fleet.replica("a"), thrifty(&fleet, "b"), fleet.replica("c"));
    let key = tenant("stalled-sweep");
    publish(&a, &key, "k-1").await;
    within(PATIENCE, "the handoff", a.router.open(&key).await.expect("open").handoff()).await.expect("gone");

    let sweep = fleet.blobs().hold_next(BlobOp::Delete, |_| true);
    publish(&b, &key, "k-2").await;
    within(PATIENCE, "b's sweep", sweep.reached()).await;
    fleet.outlive_leases().await;
    let download = fleet.blobs().hold_next(BlobOp::Download, |_| true);
    let router = c.router.clone();
    let restore = tokio::spawn({
        let key = key.clone();
        async move { router.open(&key).await }
    });
    within(PATIENCE, "c's download", download.reached()).await;
    sweep.release();
    eventually(PATIENCE, "b's sweep", || async { images(&fleet, &key, "e00000001").await.is_empty() }).await;
    download.release();
    let handle = within(PATIENCE, "c's opening", restore).await.expect("it does not panic").expect("c opens");
    assert_eq!(keys_of(&handle), ["k-1", "k-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_47671_replicas_with_other_times_never_overlap() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let hasty = |id: &str| {
        fleet.replica_with(id, |options| {
            options.ttl = Duration::from_secs(1);
            options.margin = Duration::from_millis(200);
        })
    };
    // The fleet's own ttl is 10 s: a rollout that shortens it to 1 s, and one back.
    let (long, short, long_again) = (fleet.replica("a"), hasty("b"), fleet.replica("c"));
    let key = tenant("other-times");
    let held = |outcome: Result<_, leasehold_tenure::TenureError>| by_code(outcome.map(drop));

    let first = long.router.open(&key).await.expect("a opens");
    insert(&first, "k-1");
    within(PATIENCE, "the snapshot", first.snapshot()).await.expect("published");
    fleet.advance(Duration::from_secs(7)).await;
    assert_eq!(held(short.router.open(&key).await), Err(ErrorCode::LeaseHeld), "by the holder's ttl");
    assert_eq!(try_insert(&first, "k-2"), Ok(()));
    fleet.advance(Duration::from_millis(3_001)).await;
    assert_eq!(try_insert(&first, "late"), Err(ErrorCode::Fenced), "before anybody else may have it");

    let second = short.router.open(&key).await.expect("b opens once a's lease has run out");
    assert_eq!(keys_of(&second), ["k-1"]);
    insert(&second, "k-3");
    within(PATIENCE, "the snapshot", second.snapshot()).await.expect("published");
    fleet.advance(Duration::from_millis(799)).await;
    assert_eq!(held(long_again.router.open(&key).await), Err(ErrorCode::LeaseHeld));
    assert_eq!(try_insert(&second, "k-4"), Ok(()));
    fleet.advance(Duration::from_millis(1)).await;
    assert_eq!(try_insert(&second, "late"), Err(ErrorCode::Fenced), "a margin before the row says so");
    assert_eq!(held(long_again.router.open(&key).await), Err(ErrorCode::LeaseHeld));
    fleet.advance(Duration::from_millis(200)).await;
    let third = long_again.router.open(&key).await.expect("c opens once b's lease has run out");
    assert_eq!(keys_of(&third), ["k-1", "k-3"]);
    assert_eq!(try_insert(&first, "late"), Err(ErrorCode::Fenced));
    assert_eq!(try_insert(&second, "late"), Err(ErrorCode::Fenced));
}
