//! Openings, case by case: protocol.md, "Open".

use leasehold_blob::{BlobKey, Put};
use leasehold_snapshot::{
    OwnManifests, SnapshotError,
    format::{Base, Entry, Seal},
    plan::{Answer, Ask, OpenPlan, Start, Step},
};
use leasehold_types::{ErrorCode, FencedReason, Floor};

use crate::world::{NOW, World, at, epoch};

/// Drives `plan` until it asks for something that `here` accepts.
fn until(world: &mut World, plan: &mut OpenPlan, here: impl Fn(&Ask) -> bool) -> Ask {
    for _ in 0..100 {
        match plan.next() {
            Step::Ask(ask) if here(&ask) => return ask,
            Step::Ask(ask) => plan.feed(world.perform(&ask, None)).unwrap(),
            Step::Done(_) => panic!("it was done before"),
        }
    }
    panic!("it never asked")
}

fn finish(world: &mut World, plan: &mut OpenPlan) -> Result<Start, SnapshotError> {
    loop {
        match plan.next() {
            Step::Ask(ask) => plan.feed(world.perform(&ask, None))?,
            Step::Done(start) => return Ok(start),
        }
    }
}

fn is_put_of(ask: &Ask, name: &str) -> bool {
    matches!(ask, Ask::Put { key, .. } if key.as_str().ends_with(name))
}

fn object(name: &str) -> BlobKey {
    format!("acme/u/{name}").parse().unwrap()
}

#[test]
fn a_first_opening_pins_nothing_and_costs_one_put() {
    let mut world = World::new();
    let claim = world.acquire();
    let start = world.open(&claim).unwrap();
    assert_eq!((start.claim, start.floor, start.manifest), (claim.clone(), Floor::NONE, None));
    assert_eq!(world.asked, ["floors", "list", "put", "renew", "floors"]);
    let base =
        Base::decode(&object("e00000001/base.json"), &world.objects[&object("e00000001/base.json")]).unwrap();
    assert!(matches!(base, Base::Pinned(pin) if pin.snapshot.is_none() && pin.tenure_id == claim.tenure));
}

#[test]
fn an_opening_without_contention_needs_one_list_a_few_gets_and_two_puts() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    let mut own = OwnManifests::new();
    world.publish(&first, &mut own, &vec![1]).unwrap();
    world.publish(&first, &mut own, &vec![1, 2]).unwrap();
    let second = world.acquire();
    world.asked.clear();
    let start = world.open(&second).unwrap();
    assert_eq!(start.manifest.unwrap().snapshot(), at(1, 2));
    assert_eq!(world.asked, ["floors", "list", "get", "put", "put", "fetch", "renew", "floors"]);
    assert!(matches!(
        Entry::decode(&world.layout, at(1, 3), &world.objects[&object("e00000001/snap-000003.json")]),
        Ok(Entry::Sealed(_))
    ));
    // An owner that never published: its pin names what the next one starts from.
    let third = world.acquire();
    assert_eq!(world.open(&third).unwrap().manifest.unwrap().snapshot(), at(1, 2));
    assert!(world.objects.contains_key(&object("e00000002/snap-000001.json")), "sealed");
}

#[test]
fn whoever_acquired_and_slept_finds_its_epoch_sealed() {
    let mut world = World::new();
    let sleeper = world.acquire();
    let mut plan = world.open_plan(&sleeper);
    until(&mut world, &mut plan, |ask| is_put_of(ask, "e00000001/base.json"));
    let other = world.acquire();
    world.open(&other).unwrap();
    let error = finish(&mut world, &mut plan).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Sealed));
    assert!(error.to_string().contains("acme/u at epoch 1 is fenced"), "{error}");
    // The sealed epoch is stepped over by the next one, and fenced no second time.
    let third = world.acquire();
    world.asked.clear();
    world.open(&third).unwrap();
    assert_eq!(world.asked.iter().filter(|step| **step == "put").count(), 2);
}

#[test]
fn a_manifest_that_is_put_first_is_what_the_successor_starts_from() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    let mut own = OwnManifests::new();
    world.publish(&first, &mut own, &vec![1]).unwrap();
    let second = world.acquire();
    let mut plan = world.open_plan(&second);
    until(&mut world, &mut plan, |ask| is_put_of(ask, "e00000001/snap-000002.json"));
    // The owner is faster than the seal; that the row is lost keeps it from calling it published.
    let error = world.publish(&first, &mut own, &vec![1, 2]).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Lost));
    let start = finish(&mut world, &mut plan).unwrap();
    assert_eq!(start.manifest.unwrap().snapshot(), at(1, 2));
}

#[test]
fn a_pin_whose_answer_was_lost_is_known_again() {
    let mut world = World::new();
    let claim = world.acquire();
    let mut plan = world.open_plan(&claim);
    let pin = until(&mut world, &mut plan, |ask| is_put_of(ask, "base.json"));
    assert!(matches!(world.perform(&pin, None), Answer::Put(Put::Created)));
    assert_eq!(plan.next(), Step::Ask(pin), "without an answer, the same is asked again");
    assert!(finish(&mut world, &mut plan).is_ok());
}

#[test]
fn another_opening_of_the_same_tenure_goes_past_the_epoch_that_the_first_one_pinned() {
    let mut world = World::new();
    let claim = world.acquire();
    world.open(&claim).unwrap();
    let again = world.open(&claim).unwrap();
    assert_eq!(again.claim.epoch, epoch(2));
}

#[test]
fn a_rewound_row_raises_its_epoch_past_all_that_the_store_has_seen() {
    let mut world = World::new();
    let first = world.acquire();
    let early = world.row.clone();
    world.open(&first).unwrap();
    for _ in 0..3 {
        let next = world.acquire();
        world.open(&next).unwrap();
        world.publish(&next, &mut OwnManifests::new(), &vec![world.row.epoch.try_into().unwrap()]).unwrap();
    }
    world.row = early;
    let restored = world.acquire();
    assert_eq!(restored.epoch, epoch(2));
    let start = world.open(&restored).unwrap();
    assert_eq!((start.claim.epoch, world.row.epoch), (epoch(5), 5));
    assert_eq!(start.manifest.unwrap().snapshot(), at(4, 1));
}

#[test]
fn an_advance_that_the_row_refuses_is_heeded() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    world.row.epoch = 0;
    let rewound = world.acquire();
    let mut plan = world.open_plan(&rewound);
    until(&mut world, &mut plan, |ask| matches!(ask, Ask::Advance { .. }));
    world.acquire();
    assert_eq!(finish(&mut world, &mut plan).unwrap_err().fenced(), Some(FencedReason::Lost));
}

#[test]
fn a_rewound_row_forgets_its_floor_and_the_store_does_not() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    world.publish(&first, &mut OwnManifests::new(), &vec![1]).unwrap();
    let early = world.row.clone();
    let forgetter = world.acquire();
    let forgotten = world.forget(&forgetter).unwrap();
    assert_eq!((forgotten.floor, forgotten.cleared.objects), (Floor::at(epoch(2)), 3));
    assert!(world.names().is_empty());
    world.row = early;
    let late = world.acquire();
    let start = world.open(&late).unwrap();
    assert_eq!((start.claim.epoch, start.floor, start.manifest), (epoch(3), Floor::at(epoch(2)), None));
}

/// A forget that acquired the tenant without opening it, and so fenced nothing, stopped between its row and its floor object.
#[test]
fn a_floor_that_only_the_row_has_gets_its_witness_before_an_opening_rests_on_it() {
    let mut world = World::new();
    let sleeper = world.acquire();
    let early = world.row.clone();
    let mut asleep = world.open_plan(&sleeper);
    until(&mut world, &mut asleep, |ask| is_put_of(ask, "e00000001/base.json"));
    let forgetter = world.acquire();
    world.perform(&Ask::RaiseFloor(forgetter), None);
    let third = world.acquire();
    world.asked.clear();
    world.open(&third).unwrap();
    assert_eq!(world.asked, ["floors", "put", "list", "put", "renew", "floors"]);
    assert_eq!(world.floor(), Floor::at(epoch(2)));
    world.publish(&third, &mut OwnManifests::new(), &vec![1]).unwrap();

    // Without the witness it would serve at epoch 1, beside the third, and lose what it publishes.
    world.row = early;
    let start = finish(&mut world, &mut asleep).unwrap();
    let from = start.manifest.map(|manifest| manifest.snapshot());
    assert_eq!((start.claim.epoch, from), (epoch(4), Some(at(3, 1))));
}

#[test]
fn a_forget_that_comes_between_pin_and_fetch_lets_it_start_empty() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    world.publish(&first, &mut OwnManifests::new(), &vec![1]).unwrap();
    let second = world.acquire();
    let mut plan = world.open_plan(&second);
    until(&mut world, &mut plan, |ask| matches!(ask, Ask::Fetch(_)));
    // A floor at the pinned snapshot's epoch, whose forgetter is past its lease (contract row F7).
    let (floor, dead) = (world.layout.floor(epoch(1)), world.keys_in(epoch(1)));
    world.put(&floor, bytes::Bytes::from_static(b"{}"));
    for key in dead {
        world.objects.remove(&key);
    }
    let start = finish(&mut world, &mut plan).unwrap();
    assert_eq!((start.claim.epoch, start.floor, start.manifest), (epoch(2), Floor::at(epoch(1)), None));
}

#[test]
fn a_seal_that_lands_late_on_a_forgotten_name_is_taken_for_what_was_forgotten() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    world.publish(&first, &mut OwnManifests::new(), &vec![1]).unwrap();
    let second = world.acquire();
    world.open(&second).unwrap();
    let third = world.acquire();
    let mut plan = world.open_plan(&third);
    // Its candidate's pin names 1.1, whose manifest it has not read yet.
    until(&mut world, &mut plan, |ask| is_put_of(ask, "e00000003/base.json"));
    let floor = world.layout.floor(epoch(1));
    world.put(&floor, bytes::Bytes::from_static(b"{}"));
    for key in world.keys_in(epoch(1)) {
        world.objects.remove(&key);
    }
    world.put(&object("e00000001/snap-000001.json"), Seal::new(&second, NOW).encode());
    let start = finish(&mut world, &mut plan).unwrap();
    assert_eq!((start.claim.epoch, start.manifest), (epoch(3), None));
}

#[test]
fn a_missing_part_is_damage_only_when_nobody_took_over() {
    let lose_image = |world: &mut World| {
        let image = world.objects.keys().find(|key| key.as_str().contains("snap-000001-")).unwrap().clone();
        world.objects.remove(&image);
        image
    };
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    world.publish(&first, &mut OwnManifests::new(), &vec![1]).unwrap();
    let second = world.acquire();
    let mut superseded = world.clone();
    let image = lose_image(&mut world);
    let error = world.open(&second).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Damaged);
    assert!(error.to_string().starts_with(image.as_str()), "{error}");

    let mut plan = superseded.open_plan(&second);
    until(&mut superseded, &mut plan, |ask| matches!(ask, Ask::Fetch(_)));
    let third = superseded.acquire();
    superseded.open(&third).unwrap();
    lose_image(&mut superseded);
    assert_eq!(finish(&mut superseded, &mut plan).unwrap_err().fenced(), Some(FencedReason::Sealed));
}

#[test]
fn a_damaged_or_newer_manifest_is_named_and_never_stepped_over() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    let mut own = OwnManifests::new();
    world.publish(&first, &mut own, &vec![1]).unwrap();
    world.publish(&first, &mut own, &vec![1, 2]).unwrap();
    let newest = object("e00000001/snap-000002.json");
    for (body, code) in [("{\"format\":2}", ErrorCode::FormatTooNew), ("{\"format\":1", ErrorCode::Damaged)] {
        world.objects.insert(newest.clone(), body.into());
        let next = world.acquire();
        let error = world.open(&next).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().starts_with(newest.as_str()), "{error}");
    }
}

#[test]
fn what_nobody_wrote_here_still_counts_as_a_trace_of_its_epoch() {
    let mut world = World::new();
    let claim = world.acquire();
    world.objects.insert(object("e00000009/unknown"), "?".into());
    world.objects.insert(object("notes"), "?".into());
    assert_eq!(world.open(&claim).unwrap().claim.epoch, epoch(10));
    // More epochs than can be fenced one by one are an error with a name, not a loop.
    world.objects.insert(object("e99999999/unknown"), "?".into());
    let next = world.acquire();
    let error = world.open(&next).unwrap_err();
    assert!(matches!(error, SnapshotError::EpochGap { gap: 99_999_989, .. }), "{error}");
}

#[test]
fn an_opening_that_is_always_overtaken_gives_up_within_bounds() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    let claim = world.acquire();
    let mut plan = world.open_plan(&claim);
    let mut asked = 0;
    let error = loop {
        let Step::Ask(ask) = plan.next() else { panic!("it was done") };
        asked += 1;
        // Somebody is always faster with the name that it wants to seal.
        let answer = match &ask {
            Ask::Put { .. } => Answer::Put(Put::Exists),
            ask => world.perform(ask, None),
        };
        if let Err(error) = plan.feed(answer) {
            break error;
        }
    };
    assert!(matches!(error, SnapshotError::Contended { action: "open", .. }), "{error}");
    assert!(asked < 400);
}

#[test]
fn an_answer_that_was_not_asked_for_is_an_error_by_name() {
    let mut world = World::new();
    let claim = world.acquire();
    let mut plan = world.open_plan(&claim);
    let error = plan.feed(Answer::Renewed(true)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Internal);
    assert_eq!(error.to_string(), "the opening of acme/u asked for the floors and was answered a renewal");
}

#[test]
fn a_seal_by_another_opener_is_as_good_as_our_own() {
    let mut world = World::new();
    let first = world.acquire();
    world.open(&first).unwrap();
    let crashed = world.acquire();
    let body = Seal::new(&crashed, NOW).encode();
    world.objects.insert(object("e00000001/snap-000001.json"), body);
    let next = world.acquire();
    world.asked.clear();
    assert_eq!(world.open(&next).unwrap().manifest, None);
    // The name, the base under it; one base seal and the pin.
    assert_eq!(world.asked, ["floors", "list", "get", "get", "put", "put", "renew", "floors"]);
}
