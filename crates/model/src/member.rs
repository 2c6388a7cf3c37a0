//! One tenure of a fleet: the product's transition function, its plans, and the books of a driver.

use leasehold_lease::Claim;
use leasehold_tenure::{
    Answer as Told, Effect, Event, LeaseState, Notice, Outcome, Phase, State as Machine, Upload, Waiter,
};

use crate::{rule::Rule, tenure::Tenure};

/// How long a lease runs, in ticks.
pub(crate) const TTL: u8 = 3;

/// How much earlier its holder's deadline is.
pub(crate) const MARGIN: u8 = 1;

/// Callers that wait, at least one of each kind or none.
#[expect(clippy::struct_excessive_bools, reason = "each is one kind of caller that waits or does not")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    pub(crate) handoff: bool,
    pub(crate) abandon: bool,
    pub(crate) forget: bool,
    pub(crate) snapshot: bool,
    pub(crate) next_snapshot: bool,
}

impl Waiting {
    const fn of(&mut self, waiter: Waiter) -> &mut bool {
        match waiter {
            Waiter::Handoff => &mut self.handoff,
            Waiter::Abandon => &mut self.abandon,
            Waiter::Forget => &mut self.forget,
            Waiter::Snapshot => &mut self.snapshot,
            Waiter::NextSnapshot => &mut self.next_snapshot,
        }
    }

    const fn anybody(self) -> bool {
        self.handoff || self.abandon || self.forget || self.snapshot || self.next_snapshot
    }
}

/// A tenure with its driver's books, between two events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) machine: Machine,
    pub(crate) plans: Tenure,
    pub(crate) claim: Option<Claim>,
    /// How many ticks there are until its deadline.
    pub(crate) left: u8,
    /// How long ago a renewal left that is not answered yet, and what the answer is.
    pub(crate) renewal: Option<(u8, bool)>,
    /// How long ago the renewal left that was granted last; the opening's own is one.
    pub(crate) granted: u8,
    /// A call that is running.
    pub(crate) working: bool,
    pub(crate) waiting: Waiting,
    /// The release that is under way, and whether it is a flushed one.
    pub(crate) releasing: Option<bool>,
    /// How many writes it had when it last published, or began.
    pub(crate) published: u8,
    /// How many writes it may still make.
    pub(crate) writes: u8,
    released: u8,
    ended: bool,
}

/// What an event leaves to be done.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing to do or not")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aftermath {
    pub(crate) upload: bool,
    pub(crate) forget: bool,
    pub(crate) resume: bool,
    /// A handoff ended well: everything acknowledged has to be in the store.
    pub(crate) handed_off: bool,
}

impl Member {
    pub(crate) fn opening(plans: Tenure, claim: Claim, writes: u8) -> Self {
        Self {
            machine: Machine::opening(),
            plans,
            claim: Some(claim),
            left: TTL - MARGIN,
            renewal: None,
            granted: 0,
            working: false,
            waiting: Waiting::default(),
            releasing: None,
            published: 0,
            writes,
            released: 0,
            ended: false,
        }
    }

    pub(crate) fn dirty(&self) -> bool {
        self.plans.ledger().len() > usize::from(self.published)
    }

    /// Whether a new call is let in now: phase first, deadline second.
    pub(crate) fn lets_in(&self) -> bool {
        self.machine.refusal().is_none() && self.left > 0
    }

    /// Whether anything is acknowledged now: a new call's write, or a running one's while it is drained.
    pub(crate) fn acknowledges(&self) -> bool {
        let drains = self.machine.phase == Phase::Draining
            && self.machine.lease == LeaseState::Held
            && self.working
            && self.left > 0;
        self.lets_in() || drains
    }

    /// The event of an upload's end, by the state that the rest of the books are in.
    pub(crate) fn uploading(&self) -> bool {
        self.machine.upload != Upload::Idle
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.ended
    }

    /// A tick of everybody's clock.
    pub(crate) fn tick(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.granted = (self.granted + 1).min(TTL);
        if let Some((age, _)) = &mut self.renewal {
            *age = (*age + 1).min(TTL);
        }
    }

    /// Feeds `event` and takes its effects into the books. `sent`: how long ago what proves the lease left.
    pub(crate) fn feed(&mut self, event: Event, sent: u8, after: &mut Aftermath) -> Result<(), Rule> {
        let before = self.machine;
        let step = before.step(event).map_err(|_| Rule::Transition)?;
        let asks = match event {
            Event::HandoffAsked => Some(Waiter::Handoff),
            Event::AbandonAsked => Some(Waiter::Abandon),
            Event::ForgetAsked => Some(Waiter::Forget),
            Event::SnapshotAsked { .. } => Some(Waiter::NextSnapshot),
            _ => None,
        };
        if let (Some(waiter), Told::Begun | Told::Joined) = (asks, step.answer) {
            *self.waiting.of(waiter) = true;
        }
        self.machine = step.state;
        for effect in step.effects {
            match effect {
                Effect::StartUpload { .. } => {
                    let covered = std::mem::take(&mut self.waiting.next_snapshot);
                    self.waiting.snapshot |= covered;
                    after.upload = true;
                }
                Effect::StartForget => after.forget = true,
                Effect::StartResumeCheck => after.resume = true,
                Effect::StartRelease { flushed } => {
                    if self.releasing.is_some() || self.released > 0 {
                        return Err(Rule::Transition);
                    }
                    self.releasing = Some(flushed);
                    self.renewal = None;
                }
                Effect::ExtendDeadline => self.left = self.left.max((TTL - MARGIN).saturating_sub(sent)),
                Effect::Settle(waiter, outcome) => {
                    let told = std::mem::take(self.waiting.of(waiter));
                    after.handed_off |= told && waiter == Waiter::Handoff && outcome == Outcome::Done;
                }
                Effect::Tell(Notice::Released { .. }) => self.released += 1,
                Effect::End => {
                    if self.ended {
                        return Err(Rule::Transition);
                    }
                    (self.ended, self.renewal, self.working) = (true, None, false);
                }
                Effect::ArmDrainTimer | Effect::Salvage | Effect::LeaveTable | Effect::Tell(_) => {}
            }
        }
        self.judge(before)
    }

    /// What holds after every event.
    fn judge(&self, before: Machine) -> Result<(), Rule> {
        let now = self.machine;
        let undone = before.floor_raised && !matches!(now.phase, Phase::Forgetting | Phase::Released);
        let revived = before.phase == Phase::Released && now.phase != Phase::Released;
        let served_on =
            before.phase == Phase::Abandoning && !matches!(now.phase, Phase::Abandoning | Phase::Released);
        if undone || revived || served_on || self.ended != (now.phase == Phase::Released) {
            return Err(Rule::Transition);
        }
        let waiting = self.waiting;
        let over = now.phase == Phase::Released
            && Waiting { snapshot: waiting.snapshot && !self.uploading(), ..waiting }.anybody();
        let handoff = waiting.handoff && !matches!(now.phase, Phase::Draining | Phase::Flushing);
        let abandon = waiting.abandon && now.phase != Phase::Abandoning && !now.releasing;
        let forget = waiting.forget && now.phase != Phase::Forgetting;
        let next = waiting.next_snapshot && !self.uploading() && now.phase != Phase::Draining;
        if over || handoff || abandon || forget || next || (waiting.snapshot && !self.uploading()) {
            return Err(Rule::WaitsForEver);
        }
        Ok(())
    }
}
