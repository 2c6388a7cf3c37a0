//! The ways into a ledger, as far as the tenure adds to them: what counts as work, who shares a commit, who is told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt as _;
use leasehold_ledger::{LedgerError, View};
use leasehold_tenure::{LedgerRef, RunError};
use leasehold_testkit::{
    EmbeddedPair, Fleet, PATIENCE, by_code, event, insert, insert_through_view, keys_of, tenant, within,
};
use leasehold_types::ErrorCode;

#[tokio::test(flavor = "multi_thread")]
async fn appends_at_the_same_time_are_each_acknowledged_once_and_in_their_batches_order() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("group")).await.expect("a opens");
    let appends = (0..64)
        .map(|number| handle.append(vec![event(&format!("k-{number}-1")), event(&format!("k-{number}-2"))]));
    let acknowledged = within(PATIENCE, "the appends", futures::future::try_join_all(appends)).await;
    let mut seqs = Vec::new();
    for batch in acknowledged.expect("all are acknowledged") {
        assert_eq!(batch.len(), 2);
        assert_eq!(batch[0].position.seq + 1, batch[1].position.seq, "a batch is one piece");
        assert!(!batch[0].duplicate);
        seqs.extend(batch.iter().map(|appended| appended.position.seq));
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=128).collect::<Vec<u64>>());

    let again = handle.append(vec![event("k-7-1")]).await.expect("the same once more");
    assert!(again[0].duplicate);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_small_append_is_done_where_its_caller_is_and_waits_for_nobody() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("lone")).await.expect("a opens");
    let appended = handle.append(vec![event("k-1")]).now_or_never().expect("no other thread is needed");
    assert_eq!(appended.expect("acknowledged")[0].position.seq, 1);

    // Whoever has the writer is waited for elsewhere.
    let waiting = handle.run(|view: &mut View<'_>| {
        view.append(&[event("k-2")])?;
        let mut second = Box::pin(handle.append(vec![event("k-3")]));
        assert!((&mut second).now_or_never().is_none(), "the writer is taken");
        let mut third = Box::pin(handle.append(vec![event("k-4")]));
        assert!((&mut third).now_or_never().is_none(), "and somebody waits for it");
        Ok::<_, LedgerError>((second, third))
    });
    let (second, third) = waiting.expect("the run is committed");
    within(PATIENCE, "both", futures::future::try_join(second, third)).await.expect("both are acknowledged");
    assert_eq!(keys_of(&handle), ["k-1", "k-2", "k-3", "k-4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_batch_fails_alone() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("bad-batch")).await.expect("a opens");
    insert(&handle, "known");
    let mut other = event("known");
    other.actor = "somebody else".into();
    let (good, bad, also_good) = futures::join!(
        handle.append(vec![event("k-1")]),
        handle.append(vec![event("never"), other]),
        handle.append(vec![event("k-2")])
    );
    assert_eq!(by_code(bad).map(drop), Err(ErrorCode::IdempotencyMismatch));
    assert!(good.is_ok() && also_good.is_ok());
    assert_eq!(keys_of(&handle).len(), 3, "nothing of the bad batch is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_fails_or_panics_leaves_nothing_and_is_no_longer_in_flight() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("panic")).await.expect("a opens");
    let failed = handle.run(|view: &mut View<'_>| {
        view.append(&[event("failed")]).expect("appended, for now");
        Err::<(), _>("changed its mind")
    });
    assert!(matches!(failed, Err(RunError::Work("changed its mind"))));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        handle.run(|view: &mut View<'_>| -> Result<(), LedgerError> {
            view.append(&[event("panicked")])?;
            panic!("the work fails")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(handle.status().in_flight, 0);
    insert(&handle, "k-1");
    assert_eq!(keys_of(&handle), ["k-1"]);
    within(PATIENCE, "the handoff, which waits for nobody", handle.handoff()).await.expect("handed off");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_whose_future_is_dropped_is_no_longer_in_flight() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("dropped-work")).await.expect("a opens");
    let work = handle.run_async(|_ledger| std::future::pending::<()>());
    assert_eq!(handle.status().in_flight, 1, "counted from the call on");
    let handing_off = handle.handoff();
    drop(work);
    within(PATIENCE, "the handoff", handing_off).await.expect("handed off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_outlives_its_work_is_one_from_outside() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("outlives")).await.expect("a opens");
    let escaped = handle.run_async(|ledger: LedgerRef| async move { ledger }).await.expect("the work ends");
    let (finish, held) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(handle.run_async(|ledger: LedgerRef| async move {
        held.await.expect("the test lets it go");
        insert_through_view(&ledger, "k-1").await
    }));
    let handing_off = handle.handoff();
    assert_eq!(insert_through_view(&escaped, "late").await, Err(ErrorCode::Draining));
    finish.send(()).expect("the work waits");
    let written = within(PATIENCE, "the work", running).await.expect("no panic");
    assert_eq!(by_code(written), Ok(Ok(())), "what still runs may use its own");
    within(PATIENCE, "the handoff", handing_off).await.expect("handed off");
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_see_each_acknowledged_write_and_the_end() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("followed")).await.expect("a opens");
    let mut changes = handle.changes();
    for seq in 1..=3 {
        insert(&handle, &format!("k-{seq}"));
        within(PATIENCE, "the change", changes.changed()).await.expect("the tenure goes on");
        assert_eq!(changes.borrow_and_update().seq, seq);
    }
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
    assert!(within(PATIENCE, "the end", changes.changed()).await.is_err(), "closed with the tenure");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_unpublished_nothing_is_uploaded() {
    let fleet = Fleet::<EmbeddedPair>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("clean")).await.expect("a opens");
    assert_eq!(handle.snapshot().await.expect("an empty tenant is published as it is"), None);
    insert(&handle, "k-1");
    assert!(handle.snapshot().await.expect("published").is_some());
    let puts = fleet.blobs().count(leasehold_testkit::BlobOp::Put);
    assert_eq!(handle.snapshot().await.expect("still published"), None);
    handle.handoff().await.expect("handed off");
    assert_eq!(fleet.blobs().count(leasehold_testkit::BlobOp::Put), puts, "no put after the one image");
}
