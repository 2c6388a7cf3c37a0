//! What a driver does that goes astray, and what it believes: [`Mutation`], where it touches a tenure.

use leasehold_blob::Put;
use leasehold_lease::{LeaseRow, Owner};
use leasehold_snapshot::{
    Name,
    format::{Content, Digest, Encoding, Entry, FloorRecord, Format, Manifest, Part, PartKind},
    plan::{Answer, Ask, OpenPlan},
};
use leasehold_types::{AttemptId, Epoch, Floor, Position};

use super::{Tenure, Work, ask};
use crate::{
    mutation::Mutation,
    tables::{NOW, Tables},
    world::Deed,
};

/// What only a mutated driver keeps in mind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Astray {
    /// What the pin came to that was put before the seals.
    pub(super) pinned: Option<Put>,
    /// The row renewed at the opening's end.
    pub(super) renewed: bool,
    /// The floor object is put.
    pub(super) floor_put: bool,
    /// Something dead is deleted.
    pub(super) deleted: bool,
}

impl Tenure {
    /// What a mutated driver does instead; `None`: what was asked.
    pub(super) fn strays(&self, mutation: Mutation, work: Work, ask: &Ask, tables: &Tables) -> Option<Deed> {
        let created = || Deed::Known(Answer::Put(Put::Created));
        let claim = self.open.as_ref().map(OpenPlan::claim).or(self.claim.as_ref());
        let own = claim.map(|claim| claim.epoch);
        let put = match ask {
            Ask::Put { key, .. } => tables.layout.name(key),
            _ => None,
        };
        let is_floor = matches!(ask, Ask::Put { .. }) && put.is_none();
        Some(match (mutation, work, ask) {
            (Mutation::NoNameSeal, Work::Open, _) if matches!(put, Some(Name::Manifest(_))) => created(),
            (Mutation::NoBaseSeal, Work::Open, _) if matches!(put, Some(Name::Base(epoch)) if Some(epoch) != own) => {
                created()
            }
            (Mutation::PinBeforeSeal, Work::Open, Ask::Put { .. }) => {
                let pins = matches!(put, Some(Name::Base(epoch)) if Some(epoch) == own);
                match (pins, self.astray.pinned) {
                    (true, Some(put)) => Deed::Known(Answer::Put(put)),
                    (false, None) => Deed::Ask { ask: self.pin()?, image: None, repeated: false },
                    _ => return None,
                }
            }
            (Mutation::AdvanceUnconditional, Work::Open, Ask::Advance { beyond, .. }) => {
                Deed::AdvanceAnyway { beyond: *beyond }
            }
            (Mutation::FloorsNotReadAgain, Work::Open, Ask::ReadFloors) if self.astray.renewed => {
                Deed::Known(Answer::Floors(Floor::NONE))
            }
            (Mutation::UncheckedPublish, Work::Upload, Ask::ReadRow) => {
                let claim = claim?.clone();
                let owner = Owner {
                    replica: claim.replica,
                    endpoint: None,
                    tenure: claim.tenure,
                    remaining: std::time::Duration::ZERO,
                };
                let row = LeaseRow {
                    key: claim.key,
                    epoch: claim.epoch,
                    owner: Some(owner),
                    floor: Floor::NONE,
                    forgotten_at: None,
                    receipt: None,
                    paused_at: None,
                };
                Deed::Known(Answer::Row(Ok(Some(row))))
            }
            (Mutation::FloorObjectFirst, Work::Forget, Ask::RaiseFloor(claim)) if !self.astray.floor_put => {
                let floor = Floor::at(claim.epoch);
                let record = FloorRecord { format: Format, floor, replica: claim.replica.clone(), at: NOW };
                let put = Ask::Put { key: tables.layout.floor(claim.epoch), body: record.encode() };
                Deed::Ask { ask: put, image: None, repeated: false }
            }
            (Mutation::NoFloorObject, _, _) | (Mutation::FloorUnwitnessed, Work::Open, _) if is_floor => {
                created()
            }
            (Mutation::DeletedFirst, Work::Forget, _) if is_floor && !self.astray.deleted => {
                Deed::Ask { ask: Ask::DeleteEpoch(Epoch::FIRST), image: None, repeated: false }
            }
            (Mutation::YoungerUnread, Work::Forget, Ask::Get(_)) => Deed::Known(Answer::Got(None)),
            _ => return None,
        })
    }

    /// The pin that an opening would put after its seals.
    fn pin(&self) -> Option<Ask> {
        let mut ahead = self.open.clone()?;
        let own = ahead.claim().epoch;
        let layout = leasehold_snapshot::Layout::new(&ahead.claim().key);
        loop {
            let ask = ask(ahead.next())?;
            match &ask {
                Ask::Put { key, .. } if layout.name(key) == Some(Name::Base(own)) => return Some(ask),
                Ask::Put { .. } => ahead.feed(Answer::Put(Put::Created)).ok()?,
                _ => return None,
            }
        }
    }

    /// What a hastier plan would have made of an answer.
    pub(super) fn believed(
        &self,
        mutation: Option<Mutation>,
        work: Work,
        tables: &Tables,
        answer: Answer,
    ) -> Answer {
        let asked = self.asks(work);
        let manifest = match &asked {
            Some(Ask::Put { key, .. } | Ask::Get(key)) => match tables.layout.name(key) {
                Some(Name::Manifest(snapshot)) => Some(snapshot),
                _ => None,
            },
            _ => None,
        };
        match (mutation, work, manifest, &answer) {
            (Some(Mutation::TakenNameIgnored), Work::Open, Some(_), Answer::Put(Put::Exists))
            | (Some(Mutation::ExistsIsOurs), Work::Upload, Some(_), Answer::Put(Put::Exists)) => {
                Answer::Put(Put::Created)
            }
            (Some(Mutation::NamesTrusted), Work::Open, Some(snapshot), Answer::Got(Some(body))) => {
                match Entry::decode(&tables.layout, snapshot, body) {
                    Ok(Entry::Sealed(seal)) => {
                        let image = tables.layout.image(snapshot, AttemptId::new(0));
                        let part = Part {
                            content: Content::Object(image),
                            kind: PartKind::Image,
                            bytes: 1,
                            sha256: Digest::of(b""),
                            encoding: Encoding::Plain,
                        };
                        let manifest = Manifest {
                            format: Format,
                            tenure_id: seal.sealed_by.tenure_id,
                            attempt: AttemptId::new(0),
                            key: tables.key().clone(),
                            epoch: snapshot.epoch,
                            number: snapshot.number,
                            closed: false,
                            parts: vec![part],
                            page_size: 4096,
                            pages: 1,
                            position: Position { epoch: Epoch::FIRST, seq: 1 },
                            at: NOW,
                            replica: seal.sealed_by.replica,
                        };
                        Answer::Got(Some(manifest.encode()))
                    }
                    _ => answer,
                }
            }
            _ => answer,
        }
    }

    /// Whether the answer was to something that only a mutated driver did, which remembers it.
    pub(super) fn goes_astray(
        &mut self,
        mutation: Option<Mutation>,
        work: Work,
        tables: &Tables,
        answer: &Answer,
    ) -> bool {
        let asked = self.asks(work);
        match (mutation, work, asked, answer) {
            (Some(Mutation::PinBeforeSeal), Work::Open, Some(Ask::Put { key, .. }), Answer::Put(put)) => {
                let own = self.open.as_ref().map(|plan| plan.claim().epoch);
                let pins = matches!(tables.layout.name(&key), Some(Name::Base(epoch)) if Some(epoch) == own);
                let early = !pins && self.astray.pinned.is_none();
                if early {
                    self.astray.pinned = Some(*put);
                }
                early
            }
            (Some(Mutation::FloorsNotReadAgain), Work::Open, Some(Ask::Renew(_)), Answer::Renewed(true)) => {
                self.astray.renewed = true;
                false
            }
            (Some(Mutation::FloorObjectFirst), Work::Forget, Some(Ask::RaiseFloor(_)), Answer::Put(_)) => {
                self.astray.floor_put = true;
                true
            }
            (Some(Mutation::DeletedFirst), Work::Forget, Some(Ask::Put { .. }), Answer::Deleted(_)) => {
                self.astray.deleted = true;
                true
            }
            _ => false,
        }
    }
}
