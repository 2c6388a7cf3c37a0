//! What a serving tenure deletes: protocol.md, "Sweep".

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use leasehold_blob::BlobKey;
use leasehold_lease::Claim;
use leasehold_types::{Epoch, Floor, Timestamp};

use super::step::{Answer, Ask, Step, illegal};
use crate::{
    Layout, Listing, OwnManifest, SnapshotError, SnapshotRef,
    format::{Base, Entry},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many superseded epochs keep their fences beyond a day.
const FENCES_BEYOND_A_DAY: usize = 32;

/// How many manifests stay in a superseded epoch, seals included.
const NAMES_KEPT: usize = 2;

/// What a sweep leaves although nothing live needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keep {
    /// How long the bases and seals of superseded epochs stay: deleting a fence un-fences whoever still sleeps
    /// behind it.
    pub fences: Duration,
    /// How many superseded snapshots stay whole, newest first.
    pub superseded: usize,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Swept {
    /// How many objects went.
    pub objects: u64,
    /// Their bytes, by the listing; those of small objects that went singly are not counted.
    pub bytes: u64,
}

/// A sweep as a machine. Nothing superseded goes before the tenure's first manifest that it knows to be its
/// own; what is dead goes at any time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SweepPlan {
    layout: Layout,
    claim: Claim,
    /// The floor by the store's own witness.
    floor: Floor,
    newest: Option<OwnManifest>,
    keep: Keep,
    now: Timestamp,
    seen: Listing,
    swept: Swept,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Floors,
    Listing,
    /// Bodies that decide: superseded snapshots that stay, and when epochs were superseded.
    Reading(Wanted, Bodies),
    Deleting(VecDeque<(Ask, u64)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    Name(SnapshotRef),
    Base(Epoch),
}

/// What was read so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Bodies {
    /// Superseded names that were read; `true`: a snapshot that stays, `false`: a seal, or gone.
    names: BTreeMap<SnapshotRef, bool>,
    /// The objects that the snapshots that stay consist of.
    objects: BTreeSet<BlobKey>,
    /// When bases were written; `None`: gone meanwhile.
    based: BTreeMap<Epoch, Option<Timestamp>>,
}

impl SweepPlan {
    /// The sweep by the tenure of `claim` at `now`, which knows that `newest` is its own.
    #[must_use]
    pub fn new(claim: Claim, newest: Option<OwnManifest>, keep: Keep, now: Timestamp) -> Self {
        let layout = Layout::new(&claim.key);
        let (floor, seen, swept) = (Floor::NONE, Listing::default(), Swept::default());
        Self { layout, claim, floor, newest, keep, now, seen, swept, state: State::Floors }
    }

    /// What is to be done now.
    #[must_use]
    pub fn next(&self) -> Step<Swept> {
        Step::Ask(match &self.state {
            State::Floors => Ask::ReadFloors,
            State::Listing => Ask::List,
            State::Reading(Wanted::Name(snapshot), _) => Ask::Get(self.layout.manifest(*snapshot)),
            State::Reading(Wanted::Base(epoch), _) => Ask::Get(self.layout.base(*epoch)),
            State::Deleting(queue) => match queue.front() {
                Some((ask, _)) => ask.clone(),
                None => return Step::Done(self.swept),
            },
        })
    }

    /// Takes the answer to what [`Self::next`] asked.
    pub fn feed(&mut self, answer: Answer) -> Result<(), SnapshotError> {
        let state = std::mem::replace(&mut self.state, State::Floors);
        self.state = match (state, answer) {
            (State::Floors, Answer::Floors(floor)) => {
                // What is dead goes by the store's own witness alone; the opening has seen to it that there is one.
                self.floor = floor;
                State::Listing
            }
            (State::Listing, Answer::Listed(listing)) => {
                self.seen = listing;
                self.go_on(Bodies::default())
            }
            (State::Reading(Wanted::Name(at), mut bodies), Answer::Got(body)) => {
                let entry = body.map(|body| Entry::decode(&self.layout, at, &body)).transpose()?;
                let stays = matches!(entry, Some(Entry::Published(_)));
                if let Some(Entry::Published(manifest)) = entry {
                    bodies.objects.extend(manifest.objects().cloned());
                }
                bodies.names.insert(at, stays);
                self.go_on(bodies)
            }
            (State::Reading(Wanted::Base(epoch), mut bodies), Answer::Got(body)) => {
                let base = body.map(|body| Base::decode(&self.layout.base(epoch), &body)).transpose()?;
                bodies.based.insert(epoch, base.map(|base| base.at()));
                self.go_on(bodies)
            }
            (State::Deleting(mut queue), Answer::Deleted(objects)) => {
                if let Some((_, bytes)) = queue.pop_front() {
                    self.swept.objects += objects;
                    self.swept.bytes += bytes;
                }
                State::Deleting(queue)
            }
            (state, answer) => {
                self.state = state;
                return Err(illegal("sweep", &self.claim.key, &self.next(), &answer));
            }
        };
        Ok(())
    }

    fn go_on(&self, bodies: Bodies) -> State {
        match self.wanted_name(&bodies).or_else(|| self.wanted_base(&bodies)) {
            Some(wanted) => State::Reading(wanted, bodies),
            None => State::Deleting(self.deletions(&bodies)),
        }
    }

    /// The superseded names, newest first.
    fn superseded(&self) -> impl Iterator<Item = SnapshotRef> {
        let newest =
            self.newest.as_ref().map(|own| SnapshotRef { epoch: self.claim.epoch, number: own.number });
        let own = self.seen.epochs.get_key_value(&self.claim.epoch).map(|(epoch, facts)| (*epoch, facts));
        let names = |(epoch, facts): (Epoch, &crate::EpochFacts)| {
            let numbers: Vec<_> = facts.manifests.iter().rev().copied().collect();
            numbers.into_iter().map(move |number| SnapshotRef { epoch, number })
        };
        let epochs = own.into_iter().chain(self.seen.between(self.floor, self.claim.epoch).rev());
        epochs.flat_map(names).filter(move |at| newest.is_some_and(|newest| *at < newest))
    }

    fn wanted_name(&self, bodies: &Bodies) -> Option<Wanted> {
        let stay = bodies.names.values().filter(|stays| **stays).count();
        if self.newest.is_none() || stay >= self.keep.superseded {
            return None;
        }
        self.superseded().find(|at| !bodies.names.contains_key(at)).map(Wanted::Name)
    }

    /// Superseded epochs with the base that superseded each, oldest first.
    fn supersessions(&self) -> impl Iterator<Item = (Epoch, Epoch)> {
        let older = self.seen.between(self.floor, self.claim.epoch);
        older.map(|(epoch, _)| {
            let above = self.seen.epochs.range(epoch..).skip(1);
            let by = above.take_while(|(by, _)| **by <= self.claim.epoch).find(|(_, facts)| facts.base);
            (epoch, by.map_or(self.claim.epoch, |(by, _)| *by))
        })
    }

    /// The superseded epochs whose fences may go, as far as the bases that were read tell, and the base to be
    /// read next. Oldest first, up to the first that stays: what is younger was superseded later.
    fn expired(&self, bodies: &Bodies) -> (Vec<Epoch>, Option<Epoch>) {
        let mut expired = Vec::new();
        if self.newest.is_none() {
            return (expired, None);
        }
        let supersessions: Vec<_> = self.supersessions().collect();
        for (index, (epoch, by)) in supersessions.iter().enumerate() {
            let Some(at) = bodies.based.get(by) else { return (expired, Some(*by)) };
            let Some(age) = at.map(|at| self.now.since(at)) else { break };
            let younger = supersessions.len() - index - 1;
            if age < DAY.min(self.keep.fences) || (age < self.keep.fences && younger < FENCES_BEYOND_A_DAY) {
                break;
            }
            expired.push(*epoch);
        }
        (expired, None)
    }

    fn wanted_base(&self, bodies: &Bodies) -> Option<Wanted> {
        self.expired(bodies).1.map(Wanted::Base)
    }

    fn deletions(&self, bodies: &Bodies) -> VecDeque<(Ask, u64)> {
        let dead = self.seen.dead(self.floor);
        let mut queue: VecDeque<_> =
            dead.map(|(epoch, facts)| (Ask::DeleteEpoch(epoch), facts.bytes)).collect();
        let Some(newest) = &self.newest else { return queue };
        let stays = |key: &BlobKey| newest.objects.contains(key) || bodies.objects.contains(key);
        let expired = self.expired(bodies).0;
        for (epoch, facts) in self.seen.between(self.floor, self.claim.epoch) {
            if expired.contains(&epoch) && !facts.images.iter().any(|image| stays(&image.key)) {
                queue.push_back((Ask::DeleteEpoch(epoch), facts.bytes));
                continue;
            }
            let images = facts.images.iter().filter(|image| !stays(&image.key));
            queue.extend(images.map(|image| (Ask::Delete(image.key.clone()), image.len)));
            let old = facts
                .manifests
                .iter()
                .rev()
                .skip(NAMES_KEPT)
                .map(|number| SnapshotRef { epoch, number: *number });
            let old = old.filter(|at| bodies.names.get(at) != Some(&true));
            queue.extend(old.map(|at| (Ask::Delete(self.layout.manifest(at)), 0)));
        }
        // Manifests and seals of our own epoch stay: a successor's seal would land on a freed name and lose
        // what came after.
        let own = self.seen.epochs.get(&self.claim.epoch).into_iter().flat_map(|facts| &facts.images);
        let own = own.filter(|image| image.number < newest.number && !stays(&image.key));
        queue.extend(own.map(|image| (Ask::Delete(image.key.clone()), image.len)));
        queue
    }
}
