//! Every call that a tenure makes to a store is between the points of a step, and every step is come to.

use std::{collections::BTreeSet, sync::Arc};

use leasehold_proof::{Arm, Arms, ProofError, World};
use leasehold_testkit::{FaultyBlobs, FaultyLeases, PATIENCE, eventually};
use leasehold_types::{Act, Point};

use crate::{
    stage::Stage,
    stories::{Orders, Story, story_of},
    watched::{Watch, WatchedBlobs, WatchedLeases},
};

impl Orders for Watch {
    async fn arm(&self, arm: Arm) -> Result<(), ProofError> {
        self.arms().arm(arm);
        Ok(())
    }

    async fn until_reached(&self, point: Point) -> Result<(), ProofError> {
        self.arms().until_fired(point).await;
        Ok(())
    }

    async fn go(&self) -> Result<(), ProofError> {
        self.arms().go();
        Ok(())
    }
}

/// Leads a life in this process, without a fault, and looks at it.
async fn lead(story: Story) {
    let key = "proof/watched".parse().expect("a lease key");
    let mut watch = None;
    let stage = Stage::with_edges(World::Embedded, |stores, mut edges| {
        let (blobs, leases) =
            (FaultyBlobs::new(Arc::clone(&stores.blobs)), FaultyLeases::new(Arc::clone(&stores.leases)));
        let watching = Watch::new(Arms::new("proof/watched".parse()?, blobs.clone(), leases.clone(), false));
        stores.blobs = Arc::new(WatchedBlobs(Arc::new(blobs), watching.clone()));
        stores.leases = Arc::new(WatchedLeases(Arc::new(leases), watching.clone()));
        edges.points = Arc::new(watching.clone());
        watch = Some(watching);
        Ok(edges)
    });
    let stage = stage.await.expect("a stage");
    let watch = watch.expect("a stage is made with it");
    story.prepare(&stage, &key, "other").await.expect("what was there before");
    story.tell(&stage.other(&key).expect("a caller"), &watch).await.expect("what is asked for");
    if story == Story::Rechecking {
        stage.router.keep_house().await;
    }
    let acts: BTreeSet<Act> = Act::ALL.iter().copied().filter(|act| story_of(*act) == story).collect();
    let missing = || acts.difference(&watch.ended()).copied().collect::<Vec<_>>();
    // Sweeps, checkpoints and renewals come beside what is asked for.
    eventually(PATIENCE, &format!("all acts of {story:?}"), || async { missing().is_empty() }).await;
    assert_eq!(watch.outside(), [""; 0], "calls outside of every step");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_a_publish_a_handoff_and_a_forget_are_made_of_named_steps() {
    lead(Story::Usual).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forget_that_is_finished_by_a_sweep_is_made_of_named_steps() {
    lead(Story::Unfinished).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_again_at_a_forgotten_tenant_is_made_of_named_steps() {
    lead(Story::Rechecking).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_and_checkpoints_are_named_steps() {
    lead(Story::Renewing).await;
    lead(Story::Writing).await;
}
