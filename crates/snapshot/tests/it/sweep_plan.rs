//! Sweeps and forgets, case by case: protocol.md, "Sweep" and "Forget".

use std::time::Duration;

use leasehold_blob::BlobKey;
use leasehold_lease::Claim;
use leasehold_snapshot::{
    OwnManifests, SnapshotError,
    plan::{Answer, Ask, ClearPlan, ForgetPlan, Keep, PublishPlan, Step},
};
use leasehold_types::{FencedReason, Floor};

use crate::world::{KEEP, NOW, World, epoch, key};

const DAY: Duration = Duration::from_secs(86_400);

fn object(name: &str) -> BlobKey {
    format!("acme/u/{name}").parse().unwrap()
}

fn opened(world: &mut World) -> (Claim, OwnManifests) {
    let claim = world.acquire();
    let claim = world.open(&claim).unwrap().claim;
    (claim, OwnManifests::new())
}

fn publish(world: &mut World, claim: &Claim, own: &mut OwnManifests, times: u32) {
    for number in 0..times {
        world.publish(claim, own, &vec![number]).unwrap();
    }
}

/// The names without the attempts' ids, which say nothing here.
fn names(world: &World) -> Vec<String> {
    let short = |name: &str| match name.split_once("-0000000000") {
        Some((stem, _)) => format!("{stem}.db"),
        None => name.to_owned(),
    };
    world.names().into_iter().map(short).collect()
}

#[test]
fn a_dead_epoch_goes_before_the_first_publish_and_by_its_prefix() {
    let mut world = World::new();
    let (claim, _) = opened(&mut world);
    world.forget(&claim).unwrap();
    let neighbour: BlobKey = "acme/u2/e00000001/snap-000001.json".parse().unwrap();
    for late in
        ["e00000001/snap-000001-00000000000000ff.db", "e00000001/snap-000001.json", "e00000001/unknown"]
    {
        world.objects.insert(object(late), "late".into());
    }
    world.objects.insert(neighbour.clone(), "theirs".into());
    let (next, own) = opened(&mut world);
    let swept = world.sweep(&next, &own, KEEP, NOW).unwrap();
    assert_eq!((swept.objects, swept.bytes), (3, 12));
    assert_eq!(names(&world), ["e00000002/base.json"]);
    assert!(world.objects.contains_key(&neighbour));
}

#[test]
fn nothing_goes_by_a_floor_that_the_store_has_no_witness_of() {
    let mut world = World::new();
    let (claim, _) = opened(&mut world);
    // A forget that crashed between row and floor object.
    world.row.floor = Floor::at(claim.epoch);
    let (next, own) = opened(&mut world);
    // The opening has put the witness.
    let witness = world.layout.floor(claim.epoch);
    let body = world.objects.remove(&witness).unwrap();
    world.asked.clear();
    world.sweep(&next, &own, KEEP, NOW).unwrap();
    assert_eq!(world.asked, ["floors", "list"]);

    world.objects.insert(witness, body);
    world.asked.clear();
    world.sweep(&next, &own, KEEP, NOW).unwrap();
    assert_eq!(world.asked, ["floors", "list", "delete"]);
}

#[test]
fn nothing_superseded_goes_before_the_first_manifest_of_our_own() {
    let mut world = World::new();
    let (first, mut own) = opened(&mut world);
    publish(&mut world, &first, &mut own, 3);
    let (next, own) = opened(&mut world);
    assert_eq!(world.sweep(&next, &own, KEEP, NOW).unwrap().objects, 0);
}

#[test]
fn images_that_nothing_live_names_go_and_fences_stay() {
    let mut world = World::new();
    let (first, mut first_own) = opened(&mut world);
    publish(&mut world, &first, &mut first_own, 3);
    let (second, mut own) = opened(&mut world);
    publish(&mut world, &second, &mut own, 2);
    world.sweep(&second, &own, KEEP, NOW).unwrap();
    assert_eq!(
        names(&world),
        [
            "e00000001/base.json",
            "e00000001/snap-000003.json",
            "e00000001/snap-000004.json",
            "e00000002/base.json",
            "e00000002/snap-000001.json",
            "e00000002/snap-000002.db",
            "e00000002/snap-000002.json",
        ],
        "the newest manifest and the seal above it, both bases, every name of our own epoch"
    );
    world.sweep(&second, &own, KEEP, NOW).unwrap();
    assert_eq!(world.names().len(), 7, "a second sweep finds nothing");
    // The stalled owner's next put still finds its seal.
    let error = world.publish(&first, &mut first_own, &vec![9]).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Sealed));
}

#[test]
fn the_newest_superseded_snapshots_stay_whole_as_many_as_asked() {
    let mut world = World::new();
    let (first, mut own) = opened(&mut world);
    publish(&mut world, &first, &mut own, 3);
    let (second, mut own) = opened(&mut world);
    publish(&mut world, &second, &mut own, 2);
    let keep = Keep { superseded: 2, ..KEEP };
    world.sweep(&second, &own, keep, NOW).unwrap();
    let images: Vec<_> = names(&world).into_iter().filter(|name| !name.contains(".json")).collect();
    assert_eq!(images, ["e00000001/snap-000003.db", "e00000002/snap-000001.db", "e00000002/snap-000002.db"]);
}

#[test]
fn an_image_whose_number_was_taken_by_an_earlier_attempt_is_live_by_its_manifest() {
    let mut world = World::new();
    let (claim, mut own) = opened(&mut world);
    let (draft, _) = world.draft(&vec![1], true);
    let lost = PublishPlan::new(claim.clone(), own.clone(), draft);
    let Step::Ask(ask) = lost.next() else { panic!() };
    world.perform(&ask, None);
    publish(&mut world, &claim, &mut own, 1);
    assert_eq!(own.newest().unwrap().number.get(), 2);
    world.sweep(&claim, &own, KEEP, NOW).unwrap();
    let names = names(&world);
    assert!(names.contains(&"e00000001/snap-000001.db".to_owned()), "{names:?}");
}

#[test]
fn an_image_that_is_on_its_way_is_not_swept_although_its_number_turned_out_to_be_used() {
    let mut world = World::new();
    let (claim, own) = opened(&mut world);
    let (draft, _) = world.draft(&vec![1], true);
    let lost = PublishPlan::new(claim.clone(), own.clone(), draft);
    let Step::Ask(ask) = lost.next() else { panic!() };
    world.perform(&ask, None);
    let (draft, body) = world.draft(&vec![1, 2], false);
    let mut plan = PublishPlan::new(claim.clone(), own, draft);
    // The upload, the taken name, and reading it: 1 is ours, 2 is next, and the image is called 1 still.
    for _ in 0..3 {
        let Step::Ask(ask) = plan.next() else { panic!() };
        plan.feed(world.perform(&ask, Some(&body))).unwrap();
    }
    assert_eq!((plan.own().newest().unwrap().number.get(), plan.own().next().get()), (1, 2));
    assert_eq!(world.sweep(&claim, plan.own(), KEEP, NOW).unwrap().objects, 0);
}

#[test]
fn fences_go_after_their_retention_and_at_most_32_outlive_a_day() {
    let mut world = World::new();
    for _ in 0..40 {
        opened(&mut world);
    }
    let (last, mut own) = opened(&mut world);
    publish(&mut world, &last, &mut own, 1);
    let epochs = |world: &World| {
        let mut epochs: Vec<_> = world.names().iter().map(|name| name[..9].to_owned()).collect();
        epochs.dedup();
        (epochs.len(), epochs[0].clone())
    };
    world.sweep(&last, &own, KEEP, NOW.plus(DAY / 2)).unwrap();
    assert_eq!(epochs(&world), (41, "e00000001".to_owned()));
    world.sweep(&last, &own, KEEP, NOW.plus(DAY)).unwrap();
    assert_eq!(epochs(&world), (33, "e00000009".to_owned()));
    world.sweep(&last, &own, KEEP, NOW.plus(KEEP.fences)).unwrap();
    assert_eq!(epochs(&world), (1, "e00000041".to_owned()));
}

#[test]
fn a_forget_deletes_only_at_or_below_its_floor() {
    let mut world = World::new();
    let (first, mut own) = opened(&mut world);
    publish(&mut world, &first, &mut own, 1);
    let mut plan = ForgetPlan::new(first.clone(), NOW);
    let Step::Ask(raise) = plan.next() else { panic!() };
    plan.feed(world.perform(&raise, None)).unwrap();
    // Paused past its lease; the successor knows of the floor and publishes (contract row F7).
    let (second, mut own) = opened(&mut world);
    publish(&mut world, &second, &mut own, 1);
    let forgotten = loop {
        match plan.next() {
            Step::Ask(ask) => plan.feed(world.perform(&ask, None)).unwrap(),
            Step::Done(forgotten) => break forgotten,
        }
    };
    assert_eq!((forgotten.floor, forgotten.cleared.younger), (Floor::at(first.epoch), vec![second.epoch]));
    assert_eq!(
        names(&world),
        ["e00000002/base.json", "e00000002/snap-000001.db", "e00000002/snap-000001.json"]
    );
}

#[test]
fn a_forget_that_the_row_refuses_did_nothing() {
    let mut world = World::new();
    let (first, _) = opened(&mut world);
    world.acquire();
    let before = world.objects.clone();
    assert_eq!(world.forget(&first).unwrap_err().fenced(), Some(FencedReason::Lost));
    assert_eq!(world.objects, before);
}

#[test]
fn a_forget_through_a_rewound_row_gives_no_receipt() {
    let mut world = World::new();
    let (first, _) = opened(&mut world);
    let rewound = world.row.clone();
    opened(&mut world);
    world.row = rewound;
    assert_eq!(world.forget(&first).unwrap_err().fenced(), Some(FencedReason::Lost));
}

#[test]
fn a_clearing_lists_until_nothing_is_there_and_within_bounds() {
    let mut world = World::new();
    let plan = || ClearPlan::new(&key(), Floor::at(epoch(1)), "a".parse().unwrap(), NOW);
    let late = object("e00000001/snap-000001.json");
    world.objects.insert(late.clone(), "late".into());
    let mut clear = plan();
    let mut again = 2;
    let cleared = loop {
        match clear.next() {
            Step::Ask(ask) => {
                let answer = world.perform(&ask, None);
                if matches!(ask, Ask::DeleteEpoch(_)) && again > 0 {
                    again -= 1;
                    world.objects.insert(late.clone(), "late".into());
                }
                clear.feed(answer).unwrap();
            }
            Step::Done(cleared) => break cleared,
        }
    };
    assert_eq!((cleared.objects, cleared.bytes, world.names().len()), (3, 12, 0));

    let mut clear = plan();
    world.objects.insert(late, "late".into());
    let error = loop {
        let Step::Ask(ask) = clear.next() else { panic!("it is not empty") };
        let answer = match &ask {
            Ask::DeleteEpoch(_) => Answer::Deleted(1),
            ask => world.perform(ask, None),
        };
        if let Err(error) = clear.feed(answer) {
            break error;
        }
    };
    assert!(matches!(error, SnapshotError::Contended { action: "clear", .. }), "{error}");
}
