//! Publishes, case by case: protocol.md, "Publish".

use leasehold_blob::Put;
use leasehold_lease::Claim;
use leasehold_snapshot::{
    OwnManifests, SnapshotError, SnapshotNumber,
    format::Seal,
    plan::{Answer, Ask, PublishPlan, Step},
};
use leasehold_types::FencedReason;

use crate::world::{Ledger, NOW, World, at};

struct Serving {
    world: World,
    claim: Claim,
    own: OwnManifests,
}

fn serving() -> Serving {
    let mut world = World::new();
    let claim = world.acquire();
    world.open(&claim).unwrap();
    world.asked.clear();
    Serving { world, claim, own: OwnManifests::new() }
}

impl Serving {
    /// A publish whose answers `answer` may change: `None` leaves it to the world.
    fn publish(
        &mut self,
        ledger: &Ledger,
        inline: bool,
        mut answer: impl FnMut(&mut World, &Ask) -> Option<Answer>,
    ) -> Result<SnapshotNumber, SnapshotError> {
        let (draft, body) = self.world.draft(ledger, inline);
        let mut plan = PublishPlan::new(self.claim.clone(), self.own.clone(), draft);
        loop {
            match plan.next() {
                Step::Ask(ask) => {
                    let answer = answer(&mut self.world, &ask)
                        .unwrap_or_else(|| self.world.perform(&ask, Some(&body)));
                    let fed = plan.feed(answer);
                    self.own.clone_from(plan.own());
                    fed?;
                }
                Step::Done(number) => return Ok(number),
            }
        }
    }

    /// A publish that was given up with its manifest's fate open; `executed`: it is in.
    fn lose(&mut self, ledger: &Ledger, executed: bool) {
        let (draft, body) = self.world.draft(ledger, true);
        let plan = PublishPlan::new(self.claim.clone(), self.own.clone(), draft);
        let Step::Ask(ask) = plan.next() else { panic!() };
        assert!(matches!(ask, Ask::Put { .. }));
        if executed {
            self.world.perform(&ask, Some(&body));
        }
        self.own.clone_from(plan.own());
    }
}

#[test]
fn a_publish_is_image_manifest_row_deadline() {
    let mut it = serving();
    assert_eq!(it.publish(&vec![1], false, |_, _| None).unwrap().get(), 1);
    assert_eq!(it.world.asked, ["upload", "put", "row", "held"]);
    it.world.asked.clear();
    assert_eq!(it.publish(&vec![1, 2], true, |_, _| None).unwrap().get(), 2);
    assert_eq!(it.world.asked, ["put", "row", "held"], "a small one is one put");
    assert_eq!(it.own.newest().unwrap().number, at(1, 2).number);
}

#[test]
fn a_passed_deadline_is_fenced_although_the_manifest_is_in() {
    let mut it = serving();
    let lapsed =
        |_: &mut World, ask: &Ask| (*ask == Ask::Held).then_some(Answer::Held(Err(FencedReason::Lapsed)));
    let error = it.publish(&vec![1], false, lapsed).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Lapsed));
    assert_eq!(it.own.newest().unwrap().number.get(), 1, "and it is known to be ours");
    assert_eq!(it.publish(&vec![1, 2], false, |_, _| None).unwrap().get(), 2);
}

#[test]
fn a_seal_in_its_place_is_fenced() {
    let mut it = serving();
    let successor = it.world.acquire();
    let name = it.world.layout.manifest(at(1, 1));
    it.world.put(&name, Seal::new(&successor, NOW).encode());
    let error = it.publish(&vec![1], false, |_, _| None).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Sealed));
    assert_eq!(it.own, OwnManifests::new());
}

#[test]
fn a_put_whose_answer_was_lost_is_read_back_and_is_this_very_publish() {
    let mut it = serving();
    let mut lost = false;
    let number = it.publish(&vec![1], false, |world, ask| {
        if matches!(ask, Ask::Put { .. }) && !lost {
            lost = true;
            world.perform(ask, None);
            // Repeated as it was, it exists.
            return Some(Answer::Put(Put::Exists));
        }
        None
    });
    assert_eq!(number.unwrap().get(), 1);
    assert_eq!(it.world.published.len(), 1);
}

#[test]
fn the_next_number_is_not_used_before_the_fate_of_this_one_is_known() {
    for executed in [false, true] {
        let mut it = serving();
        it.lose(&vec![1], executed);
        assert_eq!(it.own.next().get(), 1);
        // An earlier attempt of ours with other content: its number is used, the image keeps its name.
        let number = it.publish(&vec![1, 2], false, |_, _| None).unwrap();
        assert_eq!(number.get(), if executed { 2 } else { 1 });
        let newest = it.world.published.last().unwrap();
        assert_eq!(newest.ledger, Some(vec![1, 2]));
        let successor = it.world.acquire();
        let start = it.world.open(&successor).unwrap();
        assert_eq!(start.manifest.unwrap().number, number);
    }
}

#[test]
fn a_row_that_is_not_ours_any_more_fences_what_is_in() {
    let mut it = serving();
    it.world.acquire();
    let error = it.publish(&vec![1], false, |_, _| None).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Lost));
}

#[test]
fn where_the_row_cannot_be_asked_the_floors_are() {
    let unanswered = |_: &mut World, ask: &Ask| matches!(ask, Ask::ReadRow).then_some(Answer::Row(Err(())));
    let mut it = serving();
    it.world.acquire();
    assert_eq!(it.publish(&vec![1], false, unanswered).unwrap().get(), 1);
    let floor = it.world.layout.floor(it.claim.epoch);
    it.world.put(&floor, bytes::Bytes::from_static(b"{}"));
    let error = it.publish(&vec![1, 2], false, unanswered).unwrap_err();
    assert_eq!(error.fenced(), Some(FencedReason::Lost));
}

#[test]
fn what_exists_and_is_gone_when_it_is_read_is_put_again_unless_a_floor_says_why() {
    let gone = |_: &mut World, ask: &Ask| matches!(ask, Ask::Put { .. }).then_some(Answer::Put(Put::Exists));
    let mut it = serving();
    let error = it.publish(&vec![1], false, gone).unwrap_err();
    assert!(matches!(error, SnapshotError::Contended { action: "publish", .. }), "{error}");
    let floor = it.world.layout.floor(it.claim.epoch);
    it.world.put(&floor, bytes::Bytes::from_static(b"{}"));
    assert_eq!(it.publish(&vec![1], false, gone).unwrap_err().fenced(), Some(FencedReason::Lost));
}
