//! Whether a tenure whose lease lapsed may serve on: protocol.md, "Lapsed, then resumed".

use leasehold_lease::Claim;
use leasehold_types::FencedReason;

use super::step::{Answer, Ask, Step, illegal};
use crate::{
    Layout, OwnManifests, SnapshotError, SnapshotRef,
    format::{Base, Entry},
};

/// How many manifests of ours that we did not know of one look steps over.
const UNKNOWN_MAX: u32 = 64;

/// What the store says of a tenure whose row granted a renewal after a lapse. The row alone may have been rewound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resume {
    /// Nobody took over: serve on, in the same epoch, with nothing lost.
    Agrees,
    /// The tenure is superseded, for this reason.
    Superseded(FencedReason),
}

/// The look at the store as a machine. Begun only after the row has granted a renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResumePlan {
    layout: Layout,
    claim: Claim,
    /// The next name whose fate is not known.
    name: SnapshotRef,
    stepped: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Base,
    Name,
    Floors,
    Done(Resume),
}

impl ResumePlan {
    /// The look by the tenure of `claim`, which knows `own`.
    #[must_use]
    pub fn new(claim: Claim, own: &OwnManifests) -> Self {
        let name = SnapshotRef { epoch: claim.epoch, number: own.next() };
        Self { layout: Layout::new(&claim.key), claim, name, stepped: 0, state: State::Base }
    }

    /// What is to be done now.
    #[must_use]
    pub fn next(&self) -> Step<Resume> {
        Step::Ask(match self.state {
            State::Base => Ask::Get(self.layout.base(self.claim.epoch)),
            State::Name => Ask::Get(self.layout.manifest(self.name)),
            State::Floors => Ask::ReadFloors,
            State::Done(resume) => return Step::Done(resume),
        })
    }

    /// Takes the answer to what [`Self::next`] asked.
    pub fn feed(&mut self, answer: Answer) -> Result<(), SnapshotError> {
        let superseded = |reason| State::Done(Resume::Superseded(reason));
        self.state = match (self.state, answer) {
            // Our own base is deleted by a forget alone.
            (State::Base, Answer::Got(None)) => superseded(FencedReason::Lost),
            (State::Base, Answer::Got(Some(body))) => {
                match Base::decode(&self.layout.base(self.claim.epoch), &body)? {
                    Base::Pinned(pin) if pin.tenure_id == self.claim.tenure => State::Name,
                    Base::Pinned(_) | Base::Sealed(_) => superseded(FencedReason::Sealed),
                }
            }
            (State::Name, Answer::Got(None)) => State::Floors,
            (State::Name, Answer::Got(Some(body))) => match Entry::decode(&self.layout, self.name, &body)? {
                // A put of ours whose answer was lost: the name above it is the one that a successor seals.
                Entry::Published(manifest) if manifest.tenure_id == self.claim.tenure => self.step_over()?,
                Entry::Published(_) => superseded(FencedReason::Lost),
                Entry::Sealed(_) => superseded(FencedReason::Sealed),
            },
            (State::Floors, Answer::Floors(floor)) => {
                if floor.covers(self.claim.epoch) {
                    superseded(FencedReason::Lost)
                } else {
                    State::Done(Resume::Agrees)
                }
            }
            (_, answer) => return Err(illegal("resumption", &self.claim.key, &self.next(), &answer)),
        };
        Ok(())
    }

    fn step_over(&mut self) -> Result<State, SnapshotError> {
        self.stepped += 1;
        match self.name.number.next() {
            Some(number) if self.stepped <= UNKNOWN_MAX => {
                self.name.number = number;
                Ok(State::Name)
            }
            _ => {
                let (action, key) = ("resume", self.claim.key.clone());
                Err(SnapshotError::Contended { action, key, tries: self.stepped })
            }
        }
    }
}
