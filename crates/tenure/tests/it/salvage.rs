//! What was not published when a tenure ended badly is kept for an operator, and never brought back by itself.

use std::path::Path;

use leasehold_ledger::{Salvage, salvages};
use leasehold_testkit::{
    EmbeddedPair, Fleet, PATIENCE, Replica, eventually, insert, keys_of, tenant, try_insert, within,
};
use leasehold_types::{ErrorCode, LeaseKey};

/// What a replica kept of a tenant, the newest first.
fn kept(replica: &Replica, key: &LeaseKey) -> Vec<Salvage> {
    salvages(&replica.tenant_root(key)).expect("a listing")
}

/// The keys in what was kept.
fn keys_in(salvage: &Salvage, scratch: &Path) -> Vec<String> {
    std::fs::create_dir_all(scratch).expect("a directory");
    let to = scratch.join(format!("{}.db", salvage.name));
    salvage.export(&to).expect("what was kept is a whole ledger");
    let connection = rusqlite::Connection::open(&to).expect("it opens");
    let mut select = connection.prepare("SELECT subject_id FROM events ORDER BY seq").expect("it has events");
    let keys = select.query_map([], |row| row.get(0)).expect("they are read");
    keys.collect::<Result<_, _>>().expect("they are texts")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_tail_is_kept_and_outlives_the_reopen() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("salvage-abandon");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    insert(&handle, "k-2");
    within(PATIENCE, "the abandon", handle.abandon()).await.expect("abandoned");

    let again = a.router.open(&key).await.expect("a opens again");
    assert_eq!(keys_of(&again), ["k-1"]);
    insert(&again, "k-3");
    let kept = kept(&a, &key);
    let oldest = kept.last().expect("the tail was kept");
    assert_eq!(oldest.epoch.map(leasehold_types::Epoch::get), Some(1));
    assert_eq!(
        keys_in(oldest, &fleet.scratch()),
        ["k-1", "k-2"],
        "with the tail, and without what came later"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tail_of_a_lost_tenure_is_kept_even_where_its_successor_has_the_path() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let b = fleet.replica_sharing("b", "a");
    let key = tenant("salvage-lost");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    fleet.outlive_leases().await;
    let next = b.router.open(&key).await.expect("b takes over on the same path");
    insert(&next, "b-1");
    assert!(within(PATIENCE, "the renewal", handle.renew()).await.is_err());
    assert_eq!(try_insert(&handle, "late"), Err(ErrorCode::Fenced));

    eventually(PATIENCE, "the tail is kept", || async { !kept(&a, &key).is_empty() }).await;
    eventually(PATIENCE, "it is whole", || async {
        kept(&a, &key).iter().any(|salvage| keys_in_if_whole(salvage, &fleet.scratch()) == ["k-1"])
    })
    .await;
    assert_eq!(keys_of(&next), ["b-1"], "the successor's file is not touched");
}

/// Like [`keys_in`], for one that may still be being made.
fn keys_in_if_whole(salvage: &Salvage, scratch: &Path) -> Vec<String> {
    std::fs::create_dir_all(scratch).expect("a directory");
    let to = scratch.join(format!("{}.db", salvage.name));
    let _ = std::fs::remove_file(&to);
    let whole = salvage.export(&to).is_ok();
    if whole {
        let _ = std::fs::remove_file(&to);
        keys_in(salvage, scratch)
    } else {
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_on_the_disk_is_kept_by_the_next_open() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("salvage-crash");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the snapshot", handle.snapshot()).await.expect("published");
    insert(&handle, "k-2");
    // What a killed process leaves: its files, and nobody who has them open.
    let (from, to) = (a.ledger_file(&key), b.ledger_file(&key));
    std::fs::create_dir_all(to.parent().expect("a tenant's root")).expect("a directory");
    for suffix in ["", "-wal"] {
        let name = |file: &Path| format!("{}{suffix}", file.display());
        std::fs::copy(name(&from), name(&to)).expect("a copy of a's file");
    }

    fleet.outlive_leases().await;
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1"], "a crash never recovers from the local file");
    let kept = kept(&b, &key);
    assert_eq!(kept.len(), 1);
    assert_eq!(keys_in(&kept[0], &fleet.scratch()), ["k-1", "k-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_ended_with_everything_published_leaves_nothing() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("salvage-none");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    assert!(!a.tenant_root(&key).exists());

    let again = a.router.open(&key).await.expect("a opens again");
    insert(&again, "k-2");
    within(PATIENCE, "the snapshot", again.snapshot()).await.expect("published");
    within(PATIENCE, "the abandon", again.abandon()).await.expect("abandoned");
    assert!(kept(&a, &key).is_empty(), "nothing was unpublished");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forget_takes_what_was_kept_along() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let key = tenant("salvage-forget");
    let handle = a.router.open(&key).await.expect("a opens");
    insert(&handle, "k-1");
    within(PATIENCE, "the abandon", handle.abandon()).await.expect("abandoned");
    assert_eq!(kept(&a, &key).len(), 1);
    within(PATIENCE, "the forget", a.router.forget(&key)).await.expect("forgotten");
    assert!(!a.tenant_root(&key).exists());
}
