//! Steps and their answers, for people.

use bytes::Bytes;
use leasehold_blob::{BlobKey, Put};
use leasehold_snapshot::{
    EpochFacts,
    format::Base,
    plan::{Answer, Ask},
};
use leasehold_types::Epoch;

use super::{Action, Doing, Life, State, WorkKind};
use crate::{tables::Tables, world::Deed};

impl Life {
    /// An action and what came of it, for people.
    #[must_use]
    pub fn told(&self, state: &State, action: Action) -> String {
        let tables = &self.tables;
        match action {
            Action::Acquire => format!("r{} takes the lease", state.acquired + 1),
            Action::AcquireToForget => {
                format!("r{} takes the lease to forget the tenant", state.acquired + 1)
            }
            Action::Recheck => "the forgotten tenant is looked at again".to_owned(),
            Action::FallBack(to) => {
                let row = self.worlds.value(state.world).earlier_rows()[usize::from(to)];
                format!("the row falls back to epoch {} of r{}, floor {}", row.epoch, row.tenure, row.floor)
            }
            Action::Land(which) => {
                let name = self.worlds.value(state.world).late()[usize::from(which)].0;
                format!("a late put is executed: {}", tables.name(name))
            }
            Action::Do(doing, who, WorkKind(work)) => {
                let Some((_, deed)) = self.begin(state.world, state.actors[usize::from(who)], work) else {
                    return format!("r{who} {work:?}: nothing");
                };
                let value = self.deeds.value(deed);
                let asked = match &*value {
                    Deed::Ask { ask: Ask::Put { key, .. }, .. } => format!("put {key}"),
                    Deed::Ask { ask: Ask::Upload(key), .. } => format!("upload {key}"),
                    Deed::Ask { ask: Ask::Get(key), .. } => format!("get {key}"),
                    Deed::Ask { ask: Ask::Delete(key), .. } => format!("delete {key}"),
                    Deed::Ask { ask: Ask::DeleteEpoch(epoch), .. } => format!("delete epoch {epoch}"),
                    Deed::Ask { ask: Ask::Fetch(manifest), .. } => format!("fetch {}", manifest.snapshot()),
                    Deed::Ask { ask: Ask::Advance { beyond, .. }, .. } => {
                        format!("raise the row's epoch past {beyond}")
                    }
                    Deed::Ask { ask: Ask::RaiseFloor(claim), .. } => {
                        format!("raise the floor to {}", claim.epoch)
                    }
                    Deed::Ask { ask: Ask::Renew(_), .. } => "renew".to_owned(),
                    Deed::Ask { ask, .. } => format!("{ask:?}"),
                    Deed::RestOfList { .. } => "the rest of the listing".to_owned(),
                    Deed::AdvanceAnyway { beyond } => {
                        format!("raise the row's epoch past {beyond}, whoever's it is")
                    }
                    Deed::Known(_) => "a step that is left out".to_owned(),
                };
                let answer = match doing {
                    Doing::Step => {
                        let answer = self.perform(state.world, deed).1;
                        shown(&self.answers.value(answer), tables)
                    }
                    other => format!("{other:?}"),
                };
                format!("r{who} {work:?}: {asked}: {answer}")
            }
        }
    }

    /// The names in the store, for people.
    #[must_use]
    pub fn names(&self, state: &State) -> Vec<String> {
        self.worlds.value(state.world).names(&self.tables)
    }
}

/// The epochs of a listing, for people.
fn shown(answer: &Answer, tables: &Tables) -> String {
    let facts = |(epoch, facts): (&Epoch, &EpochFacts)| {
        let base = if facts.base { "base " } else { "" };
        format!("{epoch}: {base}{:?}", facts.manifests.iter().map(|n| n.get()).collect::<Vec<_>>())
    };
    match answer {
        Answer::Listed(listing) => listing.epochs.iter().map(facts).collect::<Vec<_>>().join(", "),
        Answer::Got(Some(body)) => named(body, tables),
        Answer::Got(None) => "nothing".to_owned(),
        Answer::Put(Put::Created) => "created".to_owned(),
        Answer::Put(Put::Exists) => "exists".to_owned(),
        Answer::Row(Ok(Some(row))) => {
            let owner =
                row.owner.as_ref().map_or_else(|| "nobody".to_owned(), |owner| owner.replica.to_string());
            format!("epoch {}, {owner}, floor {}", row.epoch, row.floor)
        }
        answer => format!("{answer:?}"),
    }
}

fn named(body: &Bytes, tables: &Tables) -> String {
    let place: BlobKey = tables.layout.base(Epoch::FIRST);
    match Base::decode(&place, body) {
        Ok(Base::Pinned(pin)) => {
            let from = pin.snapshot.map_or_else(|| "nothing".to_owned(), |snapshot| snapshot.to_string());
            format!("{}'s pin of {from}, floor {}", pin.replica, pin.floor)
        }
        Ok(Base::Sealed(seal)) => format!("{}'s seal", seal.sealed_by.replica),
        Err(_) => "a manifest".to_owned(),
    }
}
