//! How a tenure comes to what it starts from: protocol.md, "Open", steps 0 to 8, under their numbers.

use std::collections::VecDeque;

use leasehold_blob::{BlobKey, Put};
use leasehold_lease::Claim;
use leasehold_types::{AttemptId, Epoch, FencedReason, Floor, Timestamp};

use super::step::{Answer, Ask, Step, illegal};
use crate::{
    Layout, Listing, SnapshotError, SnapshotNumber, SnapshotRef,
    format::{Base, Entry, FloorRecord, Format, Manifest, Pin, Seal},
};

/// How often an opening starts again before it gives up. Each time, another tenure got something done.
const RESTARTS_MAX: u32 = 64;

/// How many epochs without a base one opening fences.
const GAP_MAX: u64 = 4_096;

/// What an opening begins with (step 0).
#[derive(Clone, Debug)]
pub struct Opening {
    /// The lease as it was acquired.
    pub claim: Claim,
    /// The row's floor.
    pub floor: Floor,
    /// The id of this opening.
    pub attempt: AttemptId,
    /// The replica's calendar, for people who read the objects.
    pub at: Timestamp,
}

/// What a tenure starts from: it may serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The claim; its epoch may have been advanced.
    pub claim: Claim,
    /// The highest floor that the opening met.
    pub floor: Floor,
    /// The snapshot whose parts were fetched last; `None`: the tenure starts empty, whatever was fetched.
    pub manifest: Option<Box<Manifest>>,
    /// What the opening saw of the tenant.
    pub seen: Listing,
}

/// The opening as a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenPlan {
    layout: Layout,
    claim: Claim,
    attempt: AttemptId,
    at: Timestamp,
    /// The highest that was met; it never falls.
    floor: Floor,
    restarts: u32,
    /// The last listing.
    seen: Listing,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Step 1.
    Floors,
    /// Step 1: the row's floor has no witness in the store.
    Witnessing,
    /// Steps 1 and 2: past what the store has seen, then to step 1 or, with `relist`, to step 2.
    Advancing {
        beyond: Epoch,
        relist: bool,
    },
    /// Step 2.
    Listing,
    /// Step 3: downwards through a candidate's names. `sealed`: its highest one is a seal.
    Reading {
        at: SnapshotRef,
        sealed: bool,
    },
    /// Step 3: a candidate without a manifest.
    ReadingBase {
        epoch: Epoch,
        sealed: bool,
    },
    /// Step 4.
    SealingName {
        name: SnapshotRef,
        found: Found,
    },
    /// Step 5.
    SealingBases {
        epochs: VecDeque<Epoch>,
        found: Found,
    },
    /// Step 6.
    Pinning(Found),
    /// Step 6: there is a base already.
    ReadingOwnBase(Found),
    /// Step 7: a pin named the snapshot, its manifest was not read yet.
    ReadingManifest(SnapshotRef),
    /// Step 7.
    Fetching(Box<Manifest>),
    /// Step 7: a part, or the manifest, is not there.
    Missing {
        snapshot: SnapshotRef,
        object: BlobKey,
        check: Check,
    },
    /// Step 8.
    Renewing(Option<Box<Manifest>>),
    /// Step 8.
    LastFloors(Option<Box<Manifest>>),
    Done(Option<Box<Manifest>>),
}

/// Whether what is missing was forgotten, belongs to somebody else by now, or is damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Check {
    Floors,
    OwnName,
    OwnBase,
    Row,
}

/// What step 3 found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Found {
    snapshot: Option<SnapshotRef>,
    /// Its manifest, where it was read on the way.
    manifest: Option<Box<Manifest>>,
}

impl OpenPlan {
    /// The opening from its first step.
    #[must_use]
    pub fn new(opening: Opening) -> Self {
        let Opening { claim, floor, attempt, at } = opening;
        let layout = Layout::new(&claim.key);
        Self {
            layout,
            claim,
            attempt,
            at,
            floor,
            restarts: 0,
            seen: Listing::default(),
            state: State::Floors,
        }
    }

    /// The claim as it stands: its epoch may have been advanced.
    #[must_use]
    pub const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What is to be done now.
    #[must_use]
    pub fn next(&self) -> Step<Start> {
        let seal = || Seal::new(&self.claim, self.at).encode();
        let ask = match &self.state {
            State::Floors | State::LastFloors(_) | State::Missing { check: Check::Floors, .. } => {
                Ask::ReadFloors
            }
            State::Witnessing => {
                let (floor, replica, at) = (self.floor, self.claim.replica.clone(), self.at);
                let epoch = floor.epoch().unwrap_or(Epoch::FIRST);
                let record = FloorRecord { format: Format, floor, replica, at };
                Ask::Put { key: self.layout.floor(epoch), body: record.encode() }
            }
            State::Advancing { beyond, .. } => Ask::Advance { claim: self.claim.clone(), beyond: *beyond },
            State::Listing => Ask::List,
            State::Reading { at, .. } => Ask::Get(self.layout.manifest(*at)),
            State::ReadingBase { epoch, .. } => Ask::Get(self.layout.base(*epoch)),
            State::SealingName { name, .. } => Ask::Put { key: self.layout.manifest(*name), body: seal() },
            State::SealingBases { epochs, .. } => {
                let epoch = epochs.front().copied().unwrap_or(self.claim.epoch);
                Ask::Put { key: self.layout.base(epoch), body: seal() }
            }
            State::Pinning(found) => {
                Ask::Put { key: self.layout.base(self.claim.epoch), body: self.pin(found).encode() }
            }
            State::ReadingOwnBase(_) | State::Missing { check: Check::OwnBase, .. } => {
                Ask::Get(self.layout.base(self.claim.epoch))
            }
            State::ReadingManifest(snapshot) => Ask::Get(self.layout.manifest(*snapshot)),
            State::Fetching(manifest) => Ask::Fetch(manifest.clone()),
            State::Missing { check: Check::OwnName, .. } => {
                let (epoch, number) = (self.claim.epoch, SnapshotNumber::FIRST);
                Ask::Get(self.layout.manifest(SnapshotRef { epoch, number }))
            }
            State::Renewing(_) | State::Missing { check: Check::Row, .. } => Ask::Renew(self.claim.clone()),
            State::Done(manifest) => {
                return Step::Done(Start {
                    claim: self.claim.clone(),
                    floor: self.floor,
                    manifest: manifest.clone(),
                    seen: self.seen.clone(),
                });
            }
        };
        Step::Ask(ask)
    }

    /// Takes the answer to what [`Self::next`] asked. After an error the plan is over.
    pub fn feed(&mut self, answer: Answer) -> Result<(), SnapshotError> {
        let state = std::mem::replace(&mut self.state, State::Done(None));
        self.state = match (state, answer) {
            // A forget that stopped after its row: what this opening does not fence because it lies below the
            // floor would be open to whoever a rewound row tells of no floor.
            (State::Floors, Answer::Floors(floor)) if floor < self.floor => State::Witnessing,
            (State::Floors, Answer::Floors(floor)) => self.with_floor(floor, || State::Listing)?,
            (State::Witnessing, Answer::Put(_)) => self.with_floor(self.floor, || State::Listing)?,
            (State::Advancing { relist, .. }, Answer::Advanced(epoch)) => {
                // Heeding a refusal is what keeps a rewound row from moving an epoch under somebody's feet.
                self.claim.epoch = epoch.ok_or_else(|| self.fenced(FencedReason::Lost))?;
                if relist { State::Listing } else { State::Floors }
            }
            (State::Listing, Answer::Listed(listing)) => self.listed(listing)?,
            (State::Reading { at, sealed }, Answer::Got(body)) => match body {
                None => self.again(State::Listing)?,
                Some(body) => self.read_name(at, sealed, &body)?,
            },
            (State::ReadingBase { epoch, sealed }, Answer::Got(body)) => match body {
                None => self.again(State::Listing)?,
                Some(body) => self.read_base(epoch, sealed, &body)?,
            },
            (State::SealingName { name, found }, Answer::Put(put)) => match put {
                Put::Created => self.fence_bases(Some(name.epoch), found)?,
                // Its owner was faster, or another opener: what is there decides.
                Put::Exists => self.again(State::Listing)?,
            },
            (State::SealingBases { mut epochs, found }, Answer::Put(put)) => match put {
                Put::Created => {
                    epochs.pop_front();
                    if epochs.is_empty() {
                        State::Pinning(found)
                    } else {
                        State::SealingBases { epochs, found }
                    }
                }
                Put::Exists => self.again(State::Listing)?,
            },
            (State::Pinning(found), Answer::Put(put)) => match put {
                Put::Created => Self::pinned(found),
                Put::Exists => State::ReadingOwnBase(found),
            },
            (State::ReadingOwnBase(found), Answer::Got(body)) => match body {
                // Put and deleted again: by a forget, which the floors tell.
                None => self.again(State::Floors)?,
                Some(body) => {
                    let base = Base::decode(&self.layout.base(self.claim.epoch), &body)?;
                    if base == Base::Pinned(self.pin(&found)) {
                        Self::pinned(found)
                    } else {
                        return Err(self.fenced(FencedReason::Sealed));
                    }
                }
            },
            (State::ReadingManifest(snapshot), Answer::Got(body)) => match body {
                None => Self::missing(snapshot, self.layout.manifest(snapshot)),
                Some(body) => match Entry::decode(&self.layout, snapshot, &body)? {
                    Entry::Published(manifest) => State::Fetching(manifest),
                    // It was forgotten, and a seal that was on its way landed on the freed name.
                    Entry::Sealed(_) => Self::missing(snapshot, self.layout.manifest(snapshot)),
                },
            },
            (State::Fetching(manifest), Answer::Fetched) => State::Renewing(Some(manifest)),
            (State::Fetching(manifest), Answer::PartMissing(object)) => {
                Self::missing(manifest.snapshot(), object)
            }
            (State::Missing { snapshot, object, check }, answer) => {
                self.checked(snapshot, object, check, answer)?
            }
            (State::Renewing(manifest), Answer::Renewed(granted)) => {
                if !granted {
                    return Err(self.fenced(FencedReason::Lost));
                }
                State::LastFloors(manifest)
            }
            (State::LastFloors(manifest), Answer::Floors(floor)) => self.with_floor(floor, || {
                State::Done(manifest.filter(|manifest| !floor.covers(manifest.epoch)))
            })?,
            (state, answer) => {
                self.state = state;
                return Err(illegal("opening", &self.claim.key, &self.next(), &answer));
            }
        };
        Ok(())
    }

    fn fenced(&self, reason: FencedReason) -> SnapshotError {
        SnapshotError::Fenced { key: self.claim.key.clone(), epoch: self.claim.epoch, reason }
    }

    fn pin(&self, found: &Found) -> Pin {
        Pin {
            format: Format,
            tenure_id: self.claim.tenure,
            attempt: self.attempt,
            snapshot: found.snapshot,
            floor: self.floor,
            replica: self.claim.replica.clone(),
            at: self.at,
        }
    }

    /// Starts again at `state`, as long as that is within bounds.
    fn again(&mut self, state: State) -> Result<State, SnapshotError> {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            let (action, key) = ("open", self.claim.key.clone());
            return Err(SnapshotError::Contended { action, key, tries: self.restarts });
        }
        Ok(state)
    }

    /// Goes on to `then` where the epoch lies above the floor, and above it otherwise: a rewound row forgets
    /// its floor.
    fn with_floor(&mut self, floor: Floor, then: impl FnOnce() -> State) -> Result<State, SnapshotError> {
        self.floor = self.floor.max(floor);
        match self.floor.epoch() {
            Some(beyond) if self.floor.covers(self.claim.epoch) => {
                self.again(State::Advancing { beyond, relist: false })
            }
            _ => Ok(then()),
        }
    }

    fn listed(&mut self, listing: Listing) -> Result<State, SnapshotError> {
        self.seen = listing;
        match self.seen.highest() {
            Some(beyond) if beyond >= self.claim.epoch => {
                self.again(State::Advancing { beyond, relist: true })
            }
            _ => self.candidate_below(self.claim.epoch),
        }
    }

    /// Step 3: the highest epoch above the floor and below `epoch` that has a base.
    fn candidate_below(&self, epoch: Epoch) -> Result<State, SnapshotError> {
        let candidate = self.seen.between(self.floor, epoch).rev().find(|(_, facts)| facts.base);
        let Some((epoch, facts)) = candidate else {
            return self.fence_bases(None, Found { snapshot: None, manifest: None });
        };
        Ok(match facts.manifests.last() {
            Some(number) => State::Reading { at: SnapshotRef { epoch, number: *number }, sealed: false },
            None => State::ReadingBase { epoch, sealed: false },
        })
    }

    fn read_name(&self, at: SnapshotRef, sealed: bool, body: &[u8]) -> Result<State, SnapshotError> {
        let SnapshotRef { epoch, number } = at;
        let names = self.seen.epochs.get(&epoch).map(|facts| &facts.manifests);
        match Entry::decode(&self.layout, at, body)? {
            Entry::Sealed(_) => {
                let highest = names.and_then(|names| names.last().copied()) == Some(number);
                let sealed = sealed || highest;
                Ok(match names.and_then(|names| names.range(..number).next_back()) {
                    Some(lower) => State::Reading { at: SnapshotRef { epoch, number: *lower }, sealed },
                    None => State::ReadingBase { epoch, sealed },
                })
            }
            Entry::Published(manifest) => {
                let found = Found { snapshot: Some(at), manifest: Some(manifest) };
                self.seal_name(epoch, sealed, found)
            }
        }
    }

    fn read_base(&self, epoch: Epoch, sealed: bool, body: &[u8]) -> Result<State, SnapshotError> {
        match Base::decode(&self.layout.base(epoch), body)? {
            Base::Pinned(pin) => {
                let snapshot = pin.snapshot.filter(|snapshot| !self.floor.covers(snapshot.epoch));
                self.seal_name(epoch, sealed, Found { snapshot, manifest: None })
            }
            Base::Sealed(_) => self.candidate_below(epoch),
        }
    }

    /// Step 4, unless the seal is there.
    fn seal_name(&self, epoch: Epoch, sealed: bool, found: Found) -> Result<State, SnapshotError> {
        if sealed {
            return self.fence_bases(Some(epoch), found);
        }
        let highest = self.seen.epochs.get(&epoch).and_then(|facts| facts.manifests.last().copied());
        let number = match highest {
            None => SnapshotNumber::FIRST,
            Some(number) => number.next().ok_or_else(|| {
                let object = self.layout.manifest(SnapshotRef { epoch, number });
                SnapshotError::damaged(&object, "there is no number above it")
            })?,
        };
        Ok(State::SealingName { name: SnapshotRef { epoch, number }, found })
    }

    /// Step 5: every epoch between `candidate` or the floor and ours that has no base.
    fn fence_bases(&self, candidate: Option<Epoch>, found: Found) -> Result<State, SnapshotError> {
        let low = candidate.map_or(0, Epoch::get).max(self.floor.get());
        let above = Floor::new(low).unwrap_or(Floor::NONE);
        let based = || self.seen.between(above, self.claim.epoch).filter(|(_, facts)| facts.base);
        let between = self.claim.epoch.get().saturating_sub(low).saturating_sub(1);
        let gap = between.saturating_sub(based().count() as u64);
        if gap > GAP_MAX {
            let (key, epoch) = (self.claim.key.clone(), self.claim.epoch);
            return Err(SnapshotError::EpochGap { key, epoch, gap, gap_max: GAP_MAX });
        }
        if gap == 0 {
            return Ok(State::Pinning(found));
        }
        // Walked from one base to the next, so that a long row of sealed epochs costs no more than its listing.
        let mut epochs = VecDeque::new();
        let mut from = low + 1;
        for upto in based().map(|(epoch, _)| epoch.get()).chain([self.claim.epoch.get()]) {
            epochs.extend((from..upto).filter_map(|number| Epoch::new(number).ok()));
            from = upto + 1;
        }
        Ok(State::SealingBases { epochs, found })
    }

    fn pinned(found: Found) -> State {
        match (found.snapshot, found.manifest) {
            (_, Some(manifest)) => State::Fetching(manifest),
            (Some(snapshot), None) => State::ReadingManifest(snapshot),
            (None, None) => State::Renewing(None),
        }
    }

    fn missing(snapshot: SnapshotRef, object: BlobKey) -> State {
        State::Missing { snapshot, object, check: Check::Floors }
    }

    fn checked(
        &mut self,
        snapshot: SnapshotRef,
        object: BlobKey,
        check: Check,
        answer: Answer,
    ) -> Result<State, SnapshotError> {
        let check = match (check, answer) {
            (Check::Floors, Answer::Floors(floor)) => {
                return self.with_floor(floor, || {
                    if floor.covers(snapshot.epoch) {
                        State::Renewing(None)
                    } else {
                        State::Missing { snapshot, object, check: Check::OwnName }
                    }
                });
            }
            (Check::OwnName, Answer::Got(None)) => Check::OwnBase,
            (Check::OwnName, Answer::Got(Some(_))) => return Err(self.fenced(FencedReason::Sealed)),
            (Check::OwnBase, Answer::Got(body)) => {
                let key = self.layout.base(self.claim.epoch);
                let base = body.map(|body| Base::decode(&key, &body)).transpose()?;
                let ours = |base: &Base| match base {
                    Base::Pinned(pin) => pin.tenure_id == self.claim.tenure && pin.attempt == self.attempt,
                    Base::Sealed(_) => false,
                };
                if !base.as_ref().is_some_and(ours) {
                    return Err(self.fenced(FencedReason::Sealed));
                }
                Check::Row
            }
            (Check::Row, Answer::Renewed(false)) => return Err(self.fenced(FencedReason::Lost)),
            (Check::Row, Answer::Renewed(true)) => {
                let detail =
                    format!("it belongs to snapshot {snapshot}, which counts, and is not in the store");
                return Err(SnapshotError::damaged(&object, detail));
            }
            (check, answer) => {
                self.state = State::Missing { snapshot, object, check };
                return Err(illegal("opening", &self.claim.key, &self.next(), &answer));
            }
        };
        Ok(State::Missing { snapshot, object, check })
    }
}
