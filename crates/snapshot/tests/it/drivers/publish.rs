//! Publishes.

use std::{future::Future as _, sync::Arc, task::Context};

use leasehold_lease::Claim;
use leasehold_snapshot::{Resume, publish, resume};
use leasehold_testkit::{BlobOp, LeaseOp, ManualTimer};
use leasehold_types::{ErrorCode, FencedReason};

use super::stage::{database, stage, stage_with};
use crate::world::at;

#[tokio::test]
async fn a_publish_is_two_puts_and_a_look_at_the_row() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.blobs.clear_calls();
    let reads = stage.leases.calls(LeaseOp::Read);
    let published = stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    assert_eq!((published.number.get(), published.position.seq), (1, 1));
    let calls: Vec<_> = stage.blobs.calls().into_iter().map(|(op, _)| op).collect();
    assert_eq!(calls, [BlobOp::Put, BlobOp::Put]);
    assert_eq!(stage.leases.calls(LeaseOp::Read) - reads, 1);
    let image = stage.object("snap-000001-");
    assert_eq!(stage.body(&image).await.len() as u64, published.bytes_uploaded);
    assert!(
        !std::fs::read_dir(stage.path(""))
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_str().unwrap().contains("scratch") })
    );
}

#[tokio::test]
async fn a_small_publish_is_one_put_where_that_is_asked_for() {
    let stage = stage_with(Arc::new(leasehold_lease::TokioTimer), |options| options.inline_bytes_max = 4096);
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    assert_eq!(stage.names(), ["e00000001/base.json", "e00000001/snap-000001.json"]);
    assert_eq!(stage.open("b").await.restored.unwrap().snapshot, at(1, 1));
    assert_eq!(std::fs::read(stage.ledger()).unwrap(), database(3, 1));
}

#[tokio::test]
async fn an_image_of_another_size_than_its_pages_is_not_published() {
    let stage = stage();
    let mut a = stage.open("a").await;
    let mut image = stage.image(1);
    image.pages = 4;
    let error = publish(&stage.ctx, &a.claim, &mut a.own, &image, false, &|| Ok(())).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LocalIo);
    assert_eq!(stage.names(), ["e00000001/base.json"]);
}

#[tokio::test]
async fn lost_answers_are_read_back() {
    for part in ["snap-000001-", "snap-000001.json"] {
        let stage = stage();
        let mut a = stage.open("a").await;
        stage.blobs.lose_next_answer(BlobOp::Put, move |key| key.contains(part));
        assert_eq!(stage.publish(&a.claim, &mut a.own, 1).await.unwrap().number.get(), 1, "{part}");
        assert_eq!(stage.publish(&a.claim, &mut a.own, 2).await.unwrap().number.get(), 2);
    }
}

#[tokio::test]
async fn a_put_that_is_executed_long_after_its_error_changes_nothing() {
    let stage = stage();
    let mut a = stage.open("a").await;
    let late = stage.blobs.defer_next_put(|key| key.contains("snap-000001.json"));
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    assert_eq!(late.land().await.unwrap(), leasehold_blob::Put::Exists);
}

#[tokio::test]
async fn an_outage_leaves_the_number_open_and_the_next_publish_finds_out() {
    for executed in [false, true] {
        let stage = stage();
        let mut a = stage.open("a").await;
        let blobs = stage.blobs.clone();
        if executed {
            stage.blobs.lose_next_answer(BlobOp::Put, |key| key.contains("snap-000001.json"));
            // Down from the second try on.
            stage.blobs.before_next(
                BlobOp::Put,
                |key| key.contains("snap-000001.json"),
                || Box::pin(async {}),
            );
        }
        stage.blobs.before_next(
            BlobOp::Put,
            |key| key.contains("snap-000001.json"),
            move || {
                blobs.down(true);
                Box::pin(async {})
            },
        );
        let error = stage.publish(&a.claim, &mut a.own, 1).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BlobStoreUnavailable);
        assert!(error.to_string().contains("injected outage"), "{error}");
        assert_eq!(a.own.next().get(), 1);
        stage.blobs.down(false);
        let number = stage.publish(&a.claim, &mut a.own, 2).await.unwrap().number.get();
        assert_eq!(number, if executed { 2 } else { 1 });
        stage.open("b").await;
        assert_eq!(std::fs::read(stage.ledger()).unwrap(), database(3, 2));
    }
}

#[tokio::test]
async fn a_late_image_is_never_read_once_a_successor_has_pinned() {
    for part in ["snap-000002-", "snap-000002.json"] {
        let stage = stage();
        let mut a = stage.open("a").await;
        stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
        let held = stage.blobs.hold_next(BlobOp::Put, move |key| key.contains(part));
        let image = stage.image(2);
        let successor = async {
            held.reached().await;
            let b = stage.open("b").await;
            held.release();
            b
        };
        let late = publish(&stage.ctx, &a.claim, &mut a.own, &image, true, &|| Ok(()));
        let (late, b) = futures::future::join(late, successor).await;
        assert_eq!(late.unwrap_err().fenced(), Some(FencedReason::Sealed), "{part}");
        assert_eq!(b.restored.unwrap().snapshot, at(1, 1));
        assert_eq!(stage.open("c").await.restored.unwrap().snapshot, at(1, 1));
    }
}

#[tokio::test]
async fn a_passed_deadline_is_fenced_although_the_manifest_is_in() {
    let stage = stage();
    let mut a = stage.open("a").await;
    let lapsed = || Err(FencedReason::Lapsed);
    let error = publish(&stage.ctx, &a.claim, &mut a.own, &stage.image(1), true, &lapsed).await.unwrap_err();
    assert_eq!((error.code(), error.fenced()), (ErrorCode::Fenced, Some(FencedReason::Lapsed)));
    assert_eq!(a.own.newest().unwrap().number.get(), 1);
}

#[tokio::test]
async fn a_lease_store_that_stays_away_does_not_keep_a_publish_from_counting() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.leases.down(true);
    assert_eq!(stage.publish(&a.claim, &mut a.own, 1).await.unwrap().number.get(), 1);
}

#[tokio::test]
async fn a_put_has_a_time_limit() {
    let timer = ManualTimer::new();
    let stage = stage_with(Arc::new(timer.clone()), |options| options.retry.tries = 1);
    let mut a = stage.open("a").await;
    let held = stage.blobs.hold_next(BlobOp::Put, |key| key.contains("snap-000001-"));
    let limit = stage.ctx.options.transfer_limit;
    let elapse = async {
        held.reached().await;
        timer.elapse(limit);
    };
    let (published, ()) = futures::future::join(stage.publish(&a.claim, &mut a.own, 1), elapse).await;
    let error = published.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BlobStoreUnavailable);
    assert!(error.to_string().ends_with("within 900s"), "{error}");
}

#[tokio::test]
async fn a_publish_that_is_dropped_leaves_its_number_open_and_no_scratch_file() {
    let stage = stage();
    let mut a = stage.open("a").await;
    let held = stage.blobs.hold_next(BlobOp::Put, |key| key.contains("snap-000001.json"));
    let image = stage.image(1);
    {
        let mut publish = Box::pin(publish(&stage.ctx, &a.claim, &mut a.own, &image, false, &|| Ok(())));
        tokio::select! {
            _ = &mut publish => panic!("it is held"),
            () = held.reached() => {}
        }
        assert!(publish.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
    }
    assert_eq!(a.own.next().get(), 1);
    let local = std::fs::read_dir(image.path.parent().unwrap()).unwrap();
    assert!(
        !local.map(|entry| entry.unwrap().file_name()).any(|name| name.to_string_lossy().contains("scratch"))
    );
    held.release();
    stage.publish(&a.claim, &mut a.own, 2).await.unwrap();
    assert_eq!(stage.open("b").await.restored.unwrap().position.seq, 2);
}

#[tokio::test]
async fn a_lapsed_tenure_asks_the_store_before_it_serves_on() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    assert_eq!(resume(&stage.ctx, &a.claim, &a.own).await.unwrap(), Resume::Agrees);
    stage.blobs.down(true);
    let error = resume(&stage.ctx, &a.claim, &a.own).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BlobStoreUnavailable);
    stage.blobs.down(false);
    stage.open("b").await;
    let superseded = Resume::Superseded(FencedReason::Sealed);
    assert_eq!(resume(&stage.ctx, &a.claim, &a.own).await.unwrap(), superseded);
    let stranger = Claim { tenure: stage.ctx.entropy.tenure_id(), ..a.claim };
    assert_eq!(resume(&stage.ctx, &stranger, &a.own).await.unwrap(), superseded);
}
