//! Forgets, and looks at forgotten tenants.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_blob::BlobStore as _;
use leasehold_lease::{Claim, LeaseStore as _};
use leasehold_snapshot::{Receipt, SnapshotError, forget, recheck};
use leasehold_testkit::{BlobOp, LeaseOp};
use leasehold_types::{Clock as _, ErrorCode, FencedReason, Floor};

use super::stage::{Stage, TTL, stage};
use crate::world::epoch;

async fn forgotten(stage: &Stage, claim: &Claim) -> Result<Receipt, SnapshotError> {
    forget(&stage.ctx, claim, TTL, |_| {}, async || Ok(())).await
}

async fn stored(stage: &Stage) -> Option<Receipt> {
    let row = stage.leases.read(&stage.key).await.unwrap().unwrap();
    row.receipt.map(|receipt| Receipt::from_json(&receipt).unwrap())
}

#[tokio::test]
async fn a_forget_leaves_a_receipt_and_nothing_else() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    let told = Mutex::new(Vec::new());
    let receipt = forget(
        &stage.ctx,
        &a.claim,
        TTL,
        |floor| told.lock().unwrap().push(format!("floor {floor}, {} objects", stage.names().len())),
        async || {
            told.lock().unwrap().push(format!("local, {} objects", stage.names().len()));
            Ok(())
        },
    )
    .await
    .unwrap();
    assert_eq!(*told.lock().unwrap(), ["floor 1, 3 objects", "local, 0 objects"]);
    assert_eq!((receipt.floor, receipt.objects_deleted), (Floor::at(epoch(1)), 3));
    assert!(receipt.bytes_deleted > 400);
    let now = stage.clock.wall();
    let day = Duration::from_secs(86_400);
    assert_eq!(receipt.recheck_at, [now.plus(TTL), now.plus(day / 24), now.plus(day)]);
    assert_eq!(stored(&stage).await, Some(receipt));
    let opened = stage.open("b").await;
    assert_eq!((opened.restored, opened.floor), (None, Floor::at(epoch(1))));
}

#[tokio::test]
async fn a_refused_forget_does_nothing() {
    let stage = stage();
    let a = stage.open("a").await;
    stage.acquire("b").await;
    let never = |_| panic!("the floor was not raised");
    let error = forget(&stage.ctx, &a.claim, TTL, never, async || Ok(())).await.unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Lost));
    assert_eq!(stage.names(), ["e00000001/base.json"]);
}

#[tokio::test]
async fn a_forget_that_is_paused_past_its_lease_deletes_only_below_its_floor() {
    let stage = Arc::new(stage());
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    let beside = stage.clone();
    stage.leases.after_raise_floor(move || {
        Box::pin(async move {
            let mut b = beside.open("b").await;
            beside.publish(&b.claim, &mut b.own, 2).await.unwrap();
        })
    });
    let receipt = forgotten(&stage, &a.claim).await.unwrap();
    assert_eq!(receipt.objects_deleted, 3);
    assert_eq!(stage.names().iter().filter(|name| name.starts_with("e00000002/")).count(), 3);
    assert_eq!(stage.names().len(), 3);
    assert_eq!(stored(&stage).await, None, "the row is somebody else's");
    assert_eq!(stage.open("c").await.restored.unwrap().position.seq, 2);
}

#[tokio::test]
async fn failures_in_the_middle_are_repeated_or_told() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    stage.leases.lose_answer_of(LeaseOp::RaiseFloor);
    stage.blobs.lose_next_answer(BlobOp::Put, |key| key.starts_with("_floors/"));
    stage.blobs.fail_next_delete();
    assert_eq!(forgotten(&stage, &a.claim).await.unwrap().objects_deleted, 3);

    let mut b = stage.open("b").await;
    stage.publish(&b.claim, &mut b.own, 1).await.unwrap();
    let failed = || async {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        Err(SnapshotError::Local { action: "remove", path: "/root".into(), source })
    };
    let error = forget(&stage.ctx, &b.claim, TTL, |_| {}, failed).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LocalIo);
    assert_eq!(stored(&stage).await, None, "no receipt for what was not done");
    let again = forgotten(&stage, &b.claim).await.unwrap();
    assert_eq!((again.objects_deleted, stored(&stage).await), (0, Some(again.clone())));
    assert!(stage.leases.release(&b.claim).await.unwrap());
}

#[tokio::test]
async fn a_forgotten_tenant_is_looked_at_again_and_what_came_late_goes() {
    let stage = stage();
    let a = stage.open("a").await;
    let receipt = forgotten(&stage, &a.claim).await.unwrap();
    for late in ["e00000001/snap-000001-00000000000000ff.db", "e00000001/snap-000001.json"] {
        let key = format!("{}/{late}", stage.key).parse().unwrap();
        stage.blobs.put_if_absent(&key, bytes::Bytes::from_static(b"late").into()).await.unwrap();
    }
    let b = stage.open("b").await;
    let cleared = recheck(&stage.ctx, &stage.key, receipt.floor, &a.claim.replica).await.unwrap();
    assert_eq!((cleared.objects, cleared.bytes, cleared.younger), (2, 8, vec![b.claim.epoch]));
    assert_eq!(stage.names(), ["e00000002/base.json"]);
}
