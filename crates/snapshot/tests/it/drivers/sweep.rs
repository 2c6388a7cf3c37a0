//! Sweeps.

use std::sync::Arc;

use leasehold_lease::TokioTimer;
use leasehold_snapshot::{sweep, trim};
use leasehold_testkit::BlobOp;
use leasehold_types::ErrorCode;

use super::stage::{stage, stage_with};

#[tokio::test]
async fn a_sweep_that_fails_deleted_nothing_and_does_not_try_again() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    let mut b = stage.open("b").await;
    stage.publish(&b.claim, &mut b.own, 2).await.unwrap();
    let before = stage.names();
    stage.blobs.fail_next_delete();
    stage.blobs.clear_calls();
    let error = sweep(&stage.ctx, &b.claim, b.own.newest().cloned()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BlobStoreUnavailable);
    assert_eq!((stage.names(), stage.blobs.count(BlobOp::Delete)), (before, 1));
    let swept = sweep(&stage.ctx, &b.claim, b.own.newest().cloned()).await.unwrap();
    assert_eq!(swept.objects, 1);
}

#[tokio::test]
async fn the_images_of_superseded_publishes_go_without_a_listing() {
    let stage = stage_with(Arc::new(TokioTimer), |options| options.keep.superseded = 1);
    let mut a = stage.open("a").await;
    for seed in 1..=4 {
        stage.publish(&a.claim, &mut a.own, seed).await.unwrap();
    }
    stage.blobs.clear_calls();
    assert_eq!(trim(&stage.ctx, &a.claim, &mut a.own).await.unwrap(), 2);
    assert_eq!(trim(&stage.ctx, &a.claim, &mut a.own).await.unwrap(), 0);
    assert_eq!((stage.blobs.count(BlobOp::Delete), stage.blobs.count(BlobOp::List)), (2, 0));
    let images: Vec<_> = stage.names().into_iter().filter(|name| !name.contains(".json")).collect();
    assert!(images.len() == 2 && images[0].contains("snap-000003-"), "{images:?}");
    stage.blobs.fail_next_delete();
    stage.publish(&a.claim, &mut a.own, 5).await.unwrap();
    assert!(trim(&stage.ctx, &a.claim, &mut a.own).await.is_err());
    assert_eq!(trim(&stage.ctx, &a.claim, &mut a.own).await.unwrap(), 1, "it begins again");
}
