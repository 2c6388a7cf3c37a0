//! Resumptions, case by case: protocol.md, "Lapsed, then resumed".

use leasehold_lease::Claim;
use leasehold_snapshot::{
    OwnManifests,
    plan::{PublishPlan, Resume, ResumePlan, Step},
};
use leasehold_types::FencedReason;

use crate::world::World;

fn look(world: &mut World, claim: &Claim, own: &OwnManifests) -> Resume {
    let mut plan = ResumePlan::new(claim.clone(), own);
    loop {
        match plan.next() {
            Step::Ask(ask) => plan.feed(world.perform(&ask, None)).unwrap(),
            Step::Done(resume) => return resume,
        }
    }
}

fn serving() -> (World, Claim, OwnManifests) {
    let mut world = World::new();
    let claim = world.acquire();
    world.open(&claim).unwrap();
    let mut own = OwnManifests::new();
    world.publish(&claim, &mut own, &vec![1]).unwrap();
    (world, claim, own)
}

/// A publish that was given up with its manifest in.
fn lose(world: &mut World, claim: &Claim, own: &OwnManifests) {
    let (draft, _) = world.draft(&vec![1, 2], true);
    let plan = PublishPlan::new(claim.clone(), own.clone(), draft);
    let Step::Ask(ask) = plan.next() else { panic!() };
    world.perform(&ask, None);
}

#[test]
fn nobody_took_over_and_it_serves_on() {
    let (mut world, claim, own) = serving();
    world.asked.clear();
    assert_eq!(look(&mut world, &claim, &own), Resume::Agrees);
    assert_eq!(world.asked, ["get", "get", "floors"]);
    lose(&mut world, &claim, &own);
    assert_eq!(look(&mut world, &claim, &own), Resume::Agrees, "what we put ourselves is no seal");
}

#[test]
fn a_seal_on_the_next_name_supersedes_also_above_a_manifest_of_ours_that_we_did_not_know_of() {
    for unknown in [false, true] {
        let (mut world, claim, own) = serving();
        if unknown {
            lose(&mut world, &claim, &own);
        }
        let rewound = world.row.clone();
        let successor = world.acquire();
        world.open(&successor).unwrap();
        world.row = rewound;
        assert_eq!(look(&mut world, &claim, &own), Resume::Superseded(FencedReason::Sealed));
    }
}

#[test]
fn a_forget_by_somebody_else_supersedes() {
    let (mut world, claim, own) = serving();
    let rewound = world.row.clone();
    let forgetter = world.acquire();
    world.forget(&forgetter).unwrap();
    world.row = rewound;
    assert_eq!(look(&mut world, &claim, &own), Resume::Superseded(FencedReason::Lost));

    // The floor object is there and nothing is deleted yet.
    let (mut world, claim, own) = serving();
    let floor = world.layout.floor(claim.epoch);
    world.put(&floor, bytes::Bytes::from_static(b"{}"));
    assert_eq!(look(&mut world, &claim, &own), Resume::Superseded(FencedReason::Lost));
}
