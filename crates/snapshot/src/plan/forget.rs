//! How a tenant is forgotten: protocol.md, "Forget", from the raised floor to the proof.

use std::{collections::VecDeque, time::Duration};

use leasehold_lease::Claim;
use leasehold_types::{Epoch, FencedReason, Floor, Timestamp};

use super::{
    clear::{ClearPlan, Cleared},
    step::{Answer, Ask, Step, illegal},
};
use crate::{Layout, SnapshotError, format::Base};

/// A forget that is proved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forgotten {
    /// The floor.
    pub floor: Floor,
    /// What went.
    pub cleared: Cleared,
}

/// A forget as a machine: the row first, the floor object second, deletions last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForgetPlan {
    layout: Layout,
    claim: Claim,
    at: Timestamp,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// From its answer on the tenure never serves again.
    Raising,
    Clearing(Floor, ClearPlan),
    /// Whoever opened since must have known of the floor.
    Younger(Forgotten, VecDeque<Epoch>),
}

impl ForgetPlan {
    /// The forget by the tenure of `claim`, which has closed its gate and has no upload under way.
    #[must_use]
    pub fn new(claim: Claim, at: Timestamp) -> Self {
        Self { layout: Layout::new(&claim.key), claim, at, state: State::Raising }
    }

    /// What is to be done now.
    #[must_use]
    pub fn next(&self) -> Step<Forgotten> {
        match &self.state {
            State::Raising => Step::Ask(Ask::RaiseFloor(self.claim.clone())),
            State::Clearing(floor, clear) => match clear.next() {
                Step::Ask(ask) => Step::Ask(ask),
                // Reached by a floor of nothing alone, which a claim cannot raise.
                Step::Done(cleared) => Step::Done(Forgotten { floor: *floor, cleared }),
            },
            State::Younger(forgotten, epochs) => match epochs.front() {
                Some(epoch) => Step::Ask(Ask::Get(self.layout.base(*epoch))),
                None => Step::Done(forgotten.clone()),
            },
        }
    }

    /// Takes the answer to what [`Self::next`] asked.
    pub fn feed(&mut self, answer: Answer) -> Result<(), SnapshotError> {
        match (&mut self.state, answer) {
            (State::Raising, Answer::FloorRaised(None)) => return Err(self.fenced()),
            (State::Raising, Answer::FloorRaised(Some(floor))) => {
                let clear = ClearPlan::new(&self.claim.key, floor, self.claim.replica.clone(), self.at);
                self.state = State::Clearing(floor, clear);
            }
            (State::Clearing(floor, clear), answer) => {
                clear.feed(answer)?;
                if let Step::Done(cleared) = clear.next() {
                    let younger = cleared.younger.iter().copied().collect();
                    self.state = State::Younger(Forgotten { floor: *floor, cleared }, younger);
                }
            }
            (State::Younger(forgotten, epochs), Answer::Got(body)) => {
                let floor = forgotten.floor;
                let Some(epoch) = epochs.pop_front() else { return Ok(()) };
                let base = body.map(|body| Base::decode(&self.layout.base(epoch), &body)).transpose()?;
                // It opened without knowing of the floor: the row was rewound, and was not ours when the floor
                // was raised.
                if matches!(base, Some(Base::Pinned(pin)) if pin.floor < floor) {
                    return Err(self.fenced());
                }
            }
            (_, answer) => return Err(illegal("forget", &self.claim.key, &self.next(), &answer)),
        }
        Ok(())
    }

    fn fenced(&self) -> SnapshotError {
        let (key, epoch) = (self.claim.key.clone(), self.claim.epoch);
        SnapshotError::Fenced { key, epoch, reason: FencedReason::Lost }
    }
}

/// When a forgotten tenant is looked at again: after a ttl, an hour and a day (design.md section 4).
#[must_use]
pub fn recheck_times(ttl: Duration) -> [Duration; 3] {
    [ttl, Duration::from_secs(60 * 60), Duration::from_secs(24 * 60 * 60)]
}

/// How long after `now` a tenant that was forgotten at `forgotten_at` is to be looked at next; `None`: no more.
#[must_use]
pub fn next_recheck(ttl: Duration, forgotten_at: Timestamp, now: Timestamp) -> Option<Duration> {
    let due = recheck_times(ttl).map(|after| forgotten_at.plus(after));
    due.into_iter().filter(|due| *due > now).min().map(|due| due.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_tenant_is_looked_at_after_a_ttl_an_hour_and_a_day() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let next = |now| next_recheck(Duration::from_secs(10), at(0), at(now)).map(|wait| wait.as_secs());
        assert_eq!(
            [0, 10, 11, 3_600, 86_399, 86_400].map(next),
            [Some(10), Some(3_590), Some(3_589), Some(82_800), Some(1), None]
        );
    }
}
