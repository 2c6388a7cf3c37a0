//! How everything at or below a floor goes, and is shown to be gone: the last part of protocol.md, "Forget".

use std::collections::VecDeque;

use leasehold_types::{Epoch, Floor, LeaseKey, ReplicaId, Timestamp};

use super::step::{Answer, Ask, Step, illegal};
use crate::{
    Layout, SnapshotError,
    format::{FloorRecord, Format},
};

/// How often it is listed. Each time that something is found again, a superseded tenure uploaded meanwhile.
const ROUNDS_MAX: u32 = 32;

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cleared {
    /// How many objects, by the deletions' own counts.
    pub objects: u64,
    /// Their bytes, by the listings.
    pub bytes: u64,
    /// The epochs above the floor that have a base, ascending: tenures that were opened since.
    pub younger: Vec<Epoch>,
}

/// The floor object, then deletions until a listing shows nothing at or below the floor, as a machine. Only for
/// a floor that the row has had: the row first, the floor object second, deletions last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClearPlan {
    layout: Layout,
    record: FloorRecord,
    cleared: Cleared,
    rounds: u32,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    PuttingFloor,
    Listing,
    Deleting(VecDeque<(Epoch, u64)>),
    Done,
}

impl ClearPlan {
    /// Clears `key` up to `floor`, which the row has; [`Floor::NONE`] clears nothing.
    #[must_use]
    pub fn new(key: &LeaseKey, floor: Floor, replica: ReplicaId, at: Timestamp) -> Self {
        Self {
            layout: Layout::new(key),
            record: FloorRecord { format: Format, floor, replica, at },
            cleared: Cleared::default(),
            rounds: 0,
            state: State::PuttingFloor,
        }
    }

    /// What is to be done now.
    #[must_use]
    pub fn next(&self) -> Step<Cleared> {
        Step::Ask(match (&self.state, self.record.floor.epoch()) {
            (State::PuttingFloor, Some(floor)) => {
                Ask::Put { key: self.layout.floor(floor), body: self.record.encode() }
            }
            (State::PuttingFloor, None) | (State::Done, _) => return Step::Done(self.cleared.clone()),
            (State::Listing, _) => Ask::List,
            (State::Deleting(epochs), _) => match epochs.front() {
                Some((epoch, _)) => Ask::DeleteEpoch(*epoch),
                None => Ask::List,
            },
        })
    }

    /// Takes the answer to what [`Self::next`] asked.
    pub fn feed(&mut self, answer: Answer) -> Result<(), SnapshotError> {
        match (&mut self.state, answer) {
            (State::PuttingFloor, Answer::Put(_)) => self.state = State::Listing,
            (State::Listing, Answer::Listed(listing)) => {
                let dead: VecDeque<_> =
                    listing.dead(self.record.floor).map(|(epoch, facts)| (epoch, facts.bytes)).collect();
                if dead.is_empty() {
                    let last = Epoch::MAX;
                    let younger = listing.between(self.record.floor, last).filter(|(_, facts)| facts.base);
                    self.cleared.younger = younger.map(|(epoch, _)| epoch).collect();
                    self.state = State::Done;
                } else if self.rounds >= ROUNDS_MAX {
                    let (action, key) = ("clear", self.layout.key().clone());
                    return Err(SnapshotError::Contended { action, key, tries: self.rounds });
                } else {
                    self.rounds += 1;
                    self.state = State::Deleting(dead);
                }
            }
            (State::Deleting(epochs), Answer::Deleted(objects)) => {
                if let Some((_, bytes)) = epochs.pop_front() {
                    self.cleared.objects += objects;
                    self.cleared.bytes += bytes;
                }
                if epochs.is_empty() {
                    self.state = State::Listing;
                }
            }
            (_, answer) => return Err(illegal("clearing", self.layout.key(), &self.next(), &answer)),
        }
        Ok(())
    }
}
