//! Reading snapshots without a lease.

use std::{sync::Arc, time::Duration};

use leasehold_lease::TokioTimer;
use leasehold_snapshot::{At, SnapshotError, list, restore_to, trim};
use leasehold_testkit::BlobOp;
use leasehold_types::{Clock as _, ErrorCode, Position};

use super::stage::{database, stage, stage_with};
use crate::world::{at, epoch};

#[tokio::test]
async fn snapshots_are_listed_newest_first_and_a_damaged_one_is_told() {
    let stage = stage();
    let mut a = stage.open("a").await;
    for seed in 1..=3 {
        stage.publish(&a.claim, &mut a.own, seed).await.unwrap();
    }
    trim(&stage.ctx, &a.claim, &mut a.own).await.unwrap();
    let mut b = stage.open("b").await;
    stage.publish(&b.claim, &mut b.own, 4).await.unwrap();
    stage.replace(&stage.object("e00000001/snap-000002.json"), "{}").await;
    let infos = list(&stage.ctx, &stage.key, 10).await.unwrap();
    let shown: Vec<_> = infos
        .iter()
        .map(|info| {
            (info.snapshot, info.available, info.manifest.as_ref().map_err(SnapshotError::code).err())
        })
        .collect();
    assert_eq!(
        shown,
        [
            (at(2, 1), true, None),
            (at(1, 3), true, None),
            (at(1, 2), false, Some(ErrorCode::Damaged)),
            (at(1, 1), false, None),
        ],
        "the seal above 1.3 is no snapshot"
    );
    assert_eq!(list(&stage.ctx, &stage.key, 2).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_snapshot_is_restored_by_its_name_its_time_or_its_position() {
    let stage = stage_with(Arc::new(TokioTimer), |options| options.keep.superseded = 9);
    let mut a = stage.open("a").await;
    let start = stage.clock.wall();
    for seed in 1..=3 {
        stage.publish(&a.claim, &mut a.own, seed).await.unwrap();
        stage.clock.advance(Duration::from_secs(60));
    }
    let to = stage.path("restored.db");
    for (which, seed) in [
        (At::Newest, 3),
        (At::Snapshot(at(1, 1)), 1),
        (At::Time(start.plus(Duration::from_secs(61))), 2),
        (At::Position(Position { epoch: epoch(1), seq: 2 }), 2),
    ] {
        let restored = restore_to(&stage.ctx, &stage.key, which, &to).await.unwrap();
        assert_eq!(restored.position.seq, u64::from(seed), "{which}");
        assert_eq!(std::fs::read(&to).unwrap(), database(3, seed));
    }
    for which in [At::Snapshot(at(1, 4)), At::Time(start.minus(Duration::from_secs(1)))] {
        let error = restore_to(&stage.ctx, &stage.key, which, &to).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound, "{error}");
        assert!(error.to_string().contains(&which.to_string()), "{error}");
    }
    let newest = stage.object("snap-000003.json");
    stage.replace(&newest, "{}").await;
    let error = restore_to(&stage.ctx, &stage.key, At::Newest, &to).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Damaged, "never an older one in its place");
}

#[tokio::test]
async fn the_newest_is_found_although_it_is_superseded_and_swept_meanwhile() {
    let stage = stage();
    let mut a = stage.open("a").await;
    stage.publish(&a.claim, &mut a.own, 1).await.unwrap();
    let held = stage.blobs.hold_next(BlobOp::Download, |_| true);
    let to = stage.path("restored.db");
    let meanwhile = async {
        held.reached().await;
        stage.publish(&a.claim, &mut a.own, 2).await.unwrap();
        trim(&stage.ctx, &a.claim, &mut a.own).await.unwrap();
        held.release();
    };
    let restore = restore_to(&stage.ctx, &stage.key, At::Newest, &to);
    let (restored, ()) = futures::future::join(restore, meanwhile).await;
    assert_eq!(restored.unwrap().snapshot, at(1, 2));
    let error = restore_to(&stage.ctx, &stage.key, At::Snapshot(at(1, 1)), &to).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Damaged, "{error}");
}

#[test]
fn what_is_asked_for_is_parsed_and_shown_alike() {
    for text in ["newest", "7.9", "7-42", "2026-09-21T14:13:20.123Z"] {
        assert_eq!(text.parse::<At>().unwrap().to_string(), text);
    }
    for text in ["", "7", "0.1", "1.0", "yesterday", "7.9.1"] {
        assert!(text.parse::<At>().is_err(), "{text}");
    }
}
