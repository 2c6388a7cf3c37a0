//! Openings.

use leasehold_blob::BlobStore as _;
use leasehold_lease::LeaseStore as _;
use leasehold_snapshot::{SnapshotError, open};
use leasehold_testkit::{BlobOp, LeaseOp};
use leasehold_types::{Clock as _, ErrorCode, FencedReason, Floor};

use super::stage::{TTL, database, stage};
use crate::world::{at, epoch};

#[tokio::test]
async fn a_successor_has_the_file_that_was_published_and_nothing_else_beside_it() {
    let stage = stage();
    let mut first = stage.open("a").await;
    assert_eq!((first.restored, first.claim.epoch), (None, epoch(1)));
    assert_eq!(stage.files(), [""; 0]);
    stage.publish(&first.claim, &mut first.own, 1).await.unwrap();
    stage.publish(&first.claim, &mut first.own, 2).await.unwrap();
    std::fs::write(stage.ledger(), "what the last tenure left").unwrap();
    let second = stage.open("b").await;
    let restored = second.restored.unwrap();
    assert_eq!((restored.snapshot, restored.position.seq), (at(1, 2), 2));
    assert_eq!(restored.database_bytes, 3 * 4096);
    assert!(restored.bytes_fetched < 200);
    assert_eq!(std::fs::read(stage.ledger()).unwrap(), database(3, 2));
    assert_eq!(stage.files(), ["ledger.db"]);
    assert_eq!(second.renewed_sent_at, stage.clock.now());
    assert!(second.seen.has_older_than(second.claim.epoch));
}

#[tokio::test]
async fn a_tenure_that_starts_empty_finds_no_file_of_an_earlier_one() {
    let stage = stage();
    std::fs::write(stage.ledger(), "what the last tenure left").unwrap();
    stage.open("a").await;
    assert_eq!(stage.files(), [""; 0]);
}

#[tokio::test]
async fn an_opening_stops_at_its_next_step() {
    let stage = stage();
    let (claim, floor) = stage.acquire("a").await;
    let steps = std::sync::atomic::AtomicU32::new(0);
    let stop = |_: &_| steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2;
    let error = open(&stage.ctx, claim, floor, TTL, &stage.ledger(), &stop).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Draining);
    assert_eq!(stage.names(), [""; 0], "it had read the floors and the listing");
}

#[tokio::test]
async fn every_answer_may_be_lost_once() {
    for op in [BlobOp::List, BlobOp::Get, BlobOp::Put, BlobOp::Download] {
        let stage = stage();
        let mut first = stage.open("a").await;
        stage.publish(&first.claim, &mut first.own, 1).await.unwrap();
        stage.blobs.lose_next_answer(op, |_| true);
        assert_eq!(stage.open("b").await.restored.unwrap().snapshot, at(1, 1), "{op:?}");
        assert_eq!(stage.files(), ["ledger.db"]);
    }
    for part in ["snap-000002.json", "e00000002/base.json", "e00000003/base.json"] {
        let stage = stage();
        let mut first = stage.open("a").await;
        stage.publish(&first.claim, &mut first.own, 1).await.unwrap();
        stage.acquire("asleep").await;
        stage.blobs.lose_next_answer(BlobOp::Put, move |key| key.ends_with(part));
        assert_eq!(stage.open("b").await.restored.unwrap().snapshot, at(1, 1), "{part}");
    }
    let stage = stage();
    stage.leases.lose_answer_of(LeaseOp::Renew);
    stage.open("a").await;
}

#[tokio::test]
async fn an_advance_whose_answer_was_lost_is_adopted() {
    let stage = stage();
    let unknown = format!("{}/e00000007/unknown", stage.key).parse().unwrap();
    stage.blobs.put_if_absent(&unknown, bytes::Bytes::new().into()).await.unwrap();
    stage.leases.lose_answer_of(LeaseOp::AdvanceEpoch);
    let opened = stage.open("a").await;
    assert_eq!(opened.claim.epoch, epoch(8));
    assert!(stage.leases.read(&stage.key).await.unwrap().unwrap().is_of(&opened.claim));
}

#[tokio::test]
async fn whoever_renews_meanwhile_learns_of_a_raised_epoch_before_the_next_step() {
    let stage = stage();
    let unknown = format!("{}/e00000007/unknown", stage.key).parse().unwrap();
    stage.blobs.put_if_absent(&unknown, bytes::Bytes::new().into()).await.unwrap();
    let (claim, floor) = stage.acquire("a").await;
    let seen = std::sync::Mutex::new(Vec::new());
    let watch = |claim: &leasehold_lease::Claim| {
        seen.lock().unwrap().push(claim.epoch);
        false
    };
    open(&stage.ctx, claim, floor, TTL, &stage.ledger(), &watch).await.unwrap();
    let seen = seen.into_inner().unwrap();
    let raised = seen.iter().position(|at| *at == epoch(8)).unwrap();
    assert!(raised < seen.len() - 2, "long before the last step: {seen:?}");
}

#[tokio::test]
async fn an_outage_is_the_stores_own_error_and_the_next_opening_gets_through() {
    let stage = stage();
    let mut first = stage.open("a").await;
    stage.publish(&first.claim, &mut first.own, 1).await.unwrap();
    for op in [BlobOp::List, BlobOp::Get, BlobOp::Put, BlobOp::Download] {
        let blobs = stage.blobs.clone();
        stage.blobs.before_next(
            op,
            |_| true,
            move || {
                blobs.down(true);
                Box::pin(async {})
            },
        );
        let error = stage.try_open("b").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BlobStoreUnavailable, "{op:?}");
        assert!(error.to_string().contains("injected outage"), "{error}");
        stage.blobs.down(false);
        assert_eq!(stage.open("c").await.restored.unwrap().snapshot, at(1, 1));
    }
    stage.leases.down(true);
    let (claim, floor) = (first.claim.clone(), Floor::NONE);
    let error = open(&stage.ctx, claim, floor, TTL, &stage.ledger(), &|_| false).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LeaseStoreUnavailable);
}

#[tokio::test]
async fn a_row_that_was_lost_meanwhile_fences_the_opening() {
    let stage = stage();
    let (claim, floor) = stage.acquire("a").await;
    stage.acquire("b").await;
    let error = open(&stage.ctx, claim, floor, TTL, &stage.ledger(), &|_| false).await.unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Lost));
    assert!(matches!(error, SnapshotError::Fenced { epoch: at, .. } if at == epoch(1)));
}
