//! All points, by both faults, on each pair of stores.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream};
use leasehold_proof::{ProofError, World};
use leasehold_services::{Azurite, OwnServers};
use leasehold_types::{Act, Clock as _, Point, SystemClock};

use crate::{
    life::{Fault, Led, Place, lead},
    stage::Stage,
    stories::{Story, story_of},
};

/// How many lives are led at a time: each mostly waits for a lease to run out.
const AT_ONCE: usize = 16;
/// How many share a set of servers, which answer one after the other.
const AT_ONCE_SHARED: usize = 12;

/// How often a life is begun that goes astray.
const TRIES: usize = 3;

/// Acts that one life comes to more often, where the later time is another step of the protocol.
const AGAIN: [Act; 3] = [Act::OpenFloors, Act::OpenList, Act::ForgetList];

fn places() -> Vec<Place> {
    let again = AGAIN.iter().flat_map(|act| [Point::Before(*act), Point::After(*act)]);
    let first = Point::all().map(|point| Place { point, nth: 1 });
    first.chain(again.map(|point| Place { point, nth: 2 })).collect()
}

/// Whether a place is wanted: all are, unless the environment names some (`LEASEHOLD_PROOF_POINTS`, a part of their names).
fn wanted(place: Place) -> bool {
    std::env::var("LEASEHOLD_PROOF_POINTS").map_or(true, |part| place.to_string().contains(&part))
}

/// What lives of one pair stand on.
enum Stages {
    /// Each life has stores of its own.
    Own,
    /// They share real servers' stores, as tenants do.
    Shared { stage: Box<Stage>, azurite: Box<Azurite> },
}

impl Stages {
    /// Leads the life that comes to `place`, again where it went astray.
    async fn lead(&self, place: Place, fault: Fault, name: String) -> Result<(), ProofError> {
        let mut astray = Vec::new();
        while astray.len() < TRIES {
            match self.try_to_lead(place, fault, &format!("{name}-{}", astray.len())).await? {
                Led::Judged => return Ok(()),
                Led::Astray(why) => astray.push(why),
            }
        }
        Err(format!("it never came there: {astray:?}").into())
    }

    async fn try_to_lead(&self, place: Place, fault: Fault, name: &str) -> Result<Led, ProofError> {
        match self {
            // A house is kept for everybody's forgotten tenants, so what is about that has stores of its own.
            Self::Shared { azurite, .. } if story_of(place.point.act()) == Story::Rechecking => {
                let world = World::new_cloud(&azurite.connection_string()).await?;
                lead(&Stage::new(world).await?, place, fault, name).await
            }
            Self::Shared { stage, .. } => lead(stage, place, fault, name).await,
            Self::Own => lead(&Stage::new(World::Embedded).await?, place, fault, name).await,
        }
    }
}

async fn every_point(stages: Stages, fault: Fault) {
    let began = SystemClock.now();
    let at_once = match stages {
        Stages::Own => AT_ONCE,
        Stages::Shared { .. } => AT_ONCE_SHARED,
    };
    let places = places().into_iter().enumerate().filter(|(_, place)| wanted(*place));
    let lives: Vec<_> =
        places.map(|(number, place)| (place, stages.lead(place, fault, format!("life-{number}")))).collect();
    let count = lives.len();
    let outcomes: Vec<_> = stream::iter(lives)
        .map(|(place, life)| async move {
            let began = SystemClock.now();
            let outcome = AssertUnwindSafe(life).catch_unwind().await;
            let took: Duration = SystemClock.now().since(began);
            match outcome {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{place} ({took:?}): {error}")),
                Err(panic) => {
                    let why = panic.downcast_ref::<String>().map_or("it panicked", String::as_str);
                    Some(format!("{place} ({took:?}): {why}"))
                }
            }
        })
        .buffer_unordered(at_once)
        .collect()
        .await;
    let failures: Vec<String> = outcomes.into_iter().flatten().collect();
    println!("{count} lives in {:?}", SystemClock.now().since(began));
    assert!(failures.is_empty(), "{} of {count} lives:\n{}", failures.len(), failures.join("\n"));
}

async fn shared(test: &str) -> Stages {
    let azurite = OwnServers::of(test).and_then(|own| own.azurite_in_memory()).expect("an Azurite");
    let world = World::new_cloud(&azurite.connection_string()).await.expect("a schema and a container");
    let stage = Box::new(Stage::new(world).await.expect("a stage"));
    Stages::Shared { stage, azurite: Box::new(azurite) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_at_any_point_of_the_embedded_pair_breaks_no_promise() {
    every_point(Stages::Own, Fault::Kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_stopped_at_any_point_of_the_embedded_pair_breaks_no_promise() {
    every_point(Stages::Own, Fault::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_at_any_point_of_the_cloud_pair_breaks_no_promise() {
    every_point(shared("proof_killed").await, Fault::Kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_stopped_at_any_point_of_the_cloud_pair_breaks_no_promise() {
    every_point(shared("proof_stopped").await, Fault::Stop).await;
}
