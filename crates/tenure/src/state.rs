//! A tenure's life as one pure function: `(state, event) -> (state, effects)`.
//!
//! No clock, no store, no task. [`State::step`] decides; the driver performs the effects and feeds back what came of them.
//! An event that cannot happen in a state is refused by name ([`Illegal`]), never guessed at.
//!
//! ```text
//! Opening -> Serving -> Draining -> Flushing -> Released     (drain time-out or failed flush: back to Serving)
//! Opening | Serving | Draining | Flushing -> Forgetting -> Released
//! Opening | Serving | Draining | Flushing -> Abandoning -> Released
//! ```

use leasehold_types::{FencedReason, Refusal};

use crate::vocabulary::{
    Answer, Effect, Event, Illegal, LeaseState, Notice, Outcome, Phase, State, Step, Upload, UploadFailure,
    Waiter,
};

const DRAINING: Refusal = Refusal::Draining;

impl Default for State {
    fn default() -> Self {
        Self::opening()
    }
}

impl State {
    /// A tenure that begins.
    #[must_use]
    pub const fn opening() -> Self {
        Self {
            phase: Phase::Opening,
            lease: LeaseState::Held,
            upload: Upload::Idle,
            queued: false,
            floor_raised: false,
            releasing: false,
        }
    }

    /// Why a call from outside is refused now; `None` while calls are let in. The phase is asked before the lease.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal> {
        match (self.phase, self.lease) {
            (Phase::Released | Phase::Serving, LeaseState::Lost(reason)) => Some(Refusal::Fenced(reason)),
            (Phase::Released, _) => Some(Refusal::Fenced(FencedReason::Released)),
            (Phase::Serving, LeaseState::Held) => None,
            (Phase::Serving, LeaseState::Lapsed) => Some(Refusal::Fenced(FencedReason::Lapsed)),
            _ => Some(DRAINING),
        }
    }

    /// Whether the keeper should go on renewing.
    #[must_use]
    pub const fn renews(&self) -> bool {
        !matches!(self.phase, Phase::Released)
            && !self.releasing
            && !matches!(self.lease, LeaseState::Lost(_))
    }

    /// What `event` leads to.
    pub fn step(self, event: Event) -> Result<Step, Illegal> {
        let mut next = Next { was: self, state: self, effects: Vec::new(), answer: Answer::Begun };
        match event {
            Event::Opened | Event::OpenedToForget | Event::OpenFailed { .. } | Event::StopAsked => {
                next.opening(event)?;
            }
            Event::SnapshotAsked { dirty } => next.snapshot_asked(event, dirty)?,
            Event::HandoffAsked => next.handoff_asked(event)?,
            Event::AbandonAsked => next.abandon_asked(event)?,
            Event::ForgetAsked => next.forget_asked(event)?,
            Event::Drained { dirty } => next.drained(dirty),
            Event::DrainTimedOut => next.drain_timed_out(),
            Event::UploadPublished { dirty } => next.upload_ended(event, None, dirty)?,
            Event::UploadFailed { failure, dirty } => next.upload_ended(event, Some(failure), dirty)?,
            Event::FloorRaised | Event::Forgotten | Event::ForgetFailed { .. } => next.forgetting(event)?,
            Event::Renewed | Event::RenewedLate | Event::DeadlinePassed | Event::StoreAgrees => {
                next.lease_lives(event);
            }
            Event::RenewRefused => next.superseded(FencedReason::Lost),
            Event::StoreDisagrees(reason) => next.superseded(reason),
            Event::ReleaseEnded { flushed } => next.release_ended(event, flushed)?,
        }
        Ok(Step { state: next.state, effects: next.effects, answer: next.answer })
    }
}

/// A step under construction.
struct Next {
    was: State,
    state: State,
    effects: Vec<Effect>,
    answer: Answer,
}

impl Next {
    fn illegal(&self, event: Event) -> Illegal {
        Illegal { state: self.was, event }
    }

    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn tell(&mut self, notice: Notice) {
        self.push(Effect::Tell(notice));
    }

    fn settle(&mut self, waiter: Waiter, outcome: Outcome) {
        self.push(Effect::Settle(waiter, outcome));
    }

    fn start_upload(&mut self, last: bool) {
        self.state.upload = Upload::Running { last };
        self.state.queued = false;
        self.push(Effect::StartUpload { last });
    }

    fn start_release(&mut self, flushed: bool) {
        self.state.releasing = true;
        self.push(Effect::StartRelease { flushed });
    }

    /// Back to serving, with the snapshot that waited for it.
    fn serve_again(&mut self) {
        self.state.phase = Phase::Serving;
        if self.state.queued && self.state.upload == Upload::Idle {
            self.start_upload(false);
        }
    }

    /// The tenure is over because the tenant is another's.
    fn end_lost(&mut self, reason: FencedReason) {
        self.state.lease = LeaseState::Lost(reason);
        self.state.phase = Phase::Released;
        self.tell(Notice::Lost(reason));
        self.push(Effect::Salvage);
        // Callers are told last: whoever asks the router next does not find what is over.
        self.push(Effect::LeaveTable);
        self.push(Effect::End);
        self.settle(Waiter::NextSnapshot, Outcome::Refused(Refusal::Fenced(reason)));
    }

    /// Draining, Flushing and the queue of snapshots end because something stronger begins.
    fn overtake(&mut self) {
        if matches!(self.was.phase, Phase::Draining | Phase::Flushing) {
            self.settle(Waiter::Handoff, Outcome::Refused(DRAINING));
        }
        self.state.queued = false;
        self.settle(Waiter::NextSnapshot, Outcome::Refused(DRAINING));
        self.push(Effect::LeaveTable);
    }

    fn opening(&mut self, event: Event) -> Result<(), Illegal> {
        match (self.state.phase, event) {
            (Phase::Opening, Event::Opened | Event::OpenedToForget)
                if matches!(self.state.lease, LeaseState::Lost(_)) =>
            {
                self.state.phase = Phase::Abandoning;
                self.push(Effect::LeaveTable);
                self.start_release(false);
            }
            // The opening's last step asked the row and the store once more, so a deadline that passed on the way is made good.
            (Phase::Opening, Event::Opened) => {
                self.state.phase = Phase::Serving;
                self.state.lease = LeaseState::Held;
                self.tell(Notice::Acquired);
            }
            (Phase::Opening, Event::OpenedToForget) => {
                self.state.phase = Phase::Forgetting;
                self.push(Effect::StartForget);
            }
            (Phase::Opening, Event::StopAsked) => {
                self.state.phase = Phase::Abandoning;
                self.push(Effect::LeaveTable);
            }
            // The opening had got through before it saw that it should stop.
            (Phase::Abandoning, Event::Opened | Event::OpenedToForget) if !self.state.releasing => {
                self.start_release(false);
            }
            (Phase::Opening | Phase::Abandoning, Event::OpenFailed { acquired }) if !self.state.releasing => {
                self.state.phase = Phase::Abandoning;
                self.push(Effect::LeaveTable);
                if acquired {
                    self.start_release(false);
                } else {
                    self.state.phase = Phase::Released;
                    self.settle(Waiter::Abandon, Outcome::Done);
                    self.push(Effect::End);
                }
            }
            (phase, Event::StopAsked) => {
                // Nothing is opening any more: whoever asked looks at what there is now.
                self.answer = if phase == Phase::Released { Answer::Nothing } else { Answer::Joined };
            }
            _ => return Err(self.illegal(event)),
        }
        Ok(())
    }

    fn snapshot_asked(&mut self, event: Event, dirty: bool) -> Result<(), Illegal> {
        if self.state.phase == Phase::Opening {
            return Err(self.illegal(event));
        }
        if let Some(refusal) = self.state.refusal() {
            self.answer = Answer::Refused(refusal);
        } else if self.state.upload == Upload::Idle {
            if dirty {
                self.start_upload(false);
            } else {
                self.answer = Answer::Nothing;
            }
        } else {
            // The running upload may not have what this caller wrote: one more after it covers everybody who waits.
            self.state.queued = true;
            self.answer = Answer::Joined;
        }
        Ok(())
    }

    fn handoff_asked(&mut self, event: Event) -> Result<(), Illegal> {
        match self.state.phase {
            Phase::Opening => return Err(self.illegal(event)),
            Phase::Draining | Phase::Flushing => self.answer = Answer::Joined,
            _ => {
                if let Some(refusal) = self.state.refusal() {
                    self.answer = Answer::Refused(refusal);
                } else {
                    self.state.phase = Phase::Draining;
                    self.push(Effect::ArmDrainTimer);
                }
            }
        }
        Ok(())
    }

    fn abandon_asked(&mut self, event: Event) -> Result<(), Illegal> {
        match self.state.phase {
            Phase::Opening => return Err(self.illegal(event)),
            // A forget is not left half done, and what is over is over (contract row F6).
            Phase::Forgetting | Phase::Released => self.answer = Answer::Nothing,
            Phase::Abandoning => self.answer = Answer::Joined,
            // Everything is flushed and the lease is going back already: that is what abandon wants, and more.
            Phase::Flushing if self.state.releasing => self.answer = Answer::Joined,
            Phase::Serving | Phase::Draining | Phase::Flushing => {
                self.overtake();
                self.state.phase = Phase::Abandoning;
                self.push(Effect::Salvage);
                self.start_release(false);
            }
        }
        Ok(())
    }

    fn forget_asked(&mut self, event: Event) -> Result<(), Illegal> {
        match self.state.phase {
            Phase::Opening => return Err(self.illegal(event)),
            Phase::Released => self.answer = Answer::Refused(self.state.refusal().unwrap_or(DRAINING)),
            Phase::Forgetting | Phase::Abandoning => self.answer = Answer::Refused(DRAINING),
            Phase::Flushing if self.state.releasing => self.answer = Answer::Refused(DRAINING),
            Phase::Serving | Phase::Draining | Phase::Flushing => {
                self.overtake();
                self.state.phase = Phase::Forgetting;
                if self.state.upload == Upload::Idle {
                    self.push(Effect::StartForget);
                }
            }
        }
        Ok(())
    }

    /// A late `Drained`, from a drain that is over, changes nothing.
    fn drained(&mut self, dirty: bool) {
        if self.state.phase != Phase::Draining {
            return;
        }
        self.state.phase = Phase::Flushing;
        self.tell(Notice::GateClosed);
        if self.state.upload == Upload::Idle {
            self.flush_or_release(dirty);
        }
    }

    /// With the gate closed and no upload running: upload what is unpublished, or hand the lease back.
    fn flush_or_release(&mut self, dirty: bool) {
        if dirty {
            self.start_upload(true);
            return;
        }
        self.state.queued = false;
        self.settle(Waiter::NextSnapshot, Outcome::Done);
        match self.state.lease {
            LeaseState::Held => self.start_release(true),
            LeaseState::Lapsed => {
                // Nothing is unpublished, but that this is the newest cannot be proven now.
                self.settle(Waiter::Handoff, Outcome::Refused(Refusal::Fenced(FencedReason::Lapsed)));
                self.serve_again();
            }
            LeaseState::Lost(reason) => {
                self.end_lost(reason);
                self.settle(Waiter::Handoff, Outcome::Refused(Refusal::Fenced(reason)));
            }
        }
    }

    fn drain_timed_out(&mut self) {
        if self.state.phase == Phase::Draining {
            self.tell(Notice::DrainTimeout);
            self.settle(Waiter::Handoff, Outcome::DrainTimeout);
            self.serve_again();
        }
    }

    fn upload_ended(
        &mut self,
        event: Event,
        failure: Option<UploadFailure>,
        dirty: bool,
    ) -> Result<(), Illegal> {
        let Upload::Running { last } = self.state.upload else { return Err(self.illegal(event)) };
        self.state.upload = Upload::Idle;
        if failure.is_none() {
            self.tell(Notice::SnapshotPublished);
            self.settle(Waiter::Snapshot, Outcome::Done);
        } else {
            self.tell(Notice::SnapshotFailed);
            self.settle(Waiter::Snapshot, Outcome::Failed);
        }
        match failure {
            Some(UploadFailure::Superseded(reason)) => {
                self.superseded(reason);
                return Ok(());
            }
            Some(UploadFailure::Lapsed) if self.state.lease == LeaseState::Held => {
                self.state.lease = LeaseState::Lapsed;
                self.tell(Notice::Lapsed);
            }
            _ => {}
        }
        match self.state.phase {
            Phase::Serving => {
                if self.state.queued {
                    self.start_upload(false);
                }
            }
            // A joined upload is over; the last one is taken once the work has ended.
            Phase::Draining | Phase::Abandoning | Phase::Released => {}
            Phase::Flushing if last => match failure {
                None => self.flush_or_release(dirty),
                Some(failure) => {
                    self.settle(
                        Waiter::Handoff,
                        match failure {
                            UploadFailure::Lapsed => Outcome::Refused(Refusal::Fenced(FencedReason::Lapsed)),
                            _ => Outcome::Failed,
                        },
                    );
                    self.serve_again();
                }
            },
            Phase::Flushing => self.flush_or_release(dirty),
            Phase::Forgetting => self.push(Effect::StartForget),
            Phase::Opening => return Err(self.illegal(event)),
        }
        Ok(())
    }

    fn forgetting(&mut self, event: Event) -> Result<(), Illegal> {
        if self.state.phase != Phase::Forgetting || self.state.releasing {
            return Err(self.illegal(event));
        }
        match event {
            Event::FloorRaised => self.state.floor_raised = true,
            Event::Forgotten if self.state.floor_raised => {
                self.tell(Notice::Forgotten);
                self.start_release(false);
            }
            Event::ForgetFailed { superseded: Some(reason) } => {
                self.end_lost(reason);
                self.settle(Waiter::Forget, Outcome::Failed);
            }
            // What was begun cannot be taken back: whoever forgets again goes on from here, on this replica or another.
            Event::ForgetFailed { superseded: None } => self.start_release(false),
            _ => return Err(self.illegal(event)),
        }
        Ok(())
    }

    fn lease_lives(&mut self, event: Event) {
        if !self.state.renews() {
            return;
        }
        match (self.state.lease, event) {
            (LeaseState::Held, Event::Renewed) => {
                self.push(Effect::ExtendDeadline);
                self.tell(Notice::Renewed);
            }
            (LeaseState::Held, Event::DeadlinePassed) => {
                self.state.lease = LeaseState::Lapsed;
                self.tell(Notice::Lapsed);
            }
            // Granted although the deadline had passed here: what the row says may have been set back, so the store is asked.
            (LeaseState::Held, Event::RenewedLate) => {
                self.state.lease = LeaseState::Lapsed;
                self.tell(Notice::Lapsed);
                self.push(Effect::StartResumeCheck);
            }
            (LeaseState::Lapsed, Event::Renewed | Event::RenewedLate) => self.push(Effect::StartResumeCheck),
            (LeaseState::Lapsed, Event::StoreAgrees) => {
                self.state.lease = LeaseState::Held;
                self.push(Effect::ExtendDeadline);
                self.tell(Notice::Resumed);
            }
            _ => {}
        }
    }

    /// Another tenure holds the tenant.
    fn superseded(&mut self, reason: FencedReason) {
        match self.state.phase {
            // A refusal after the release is nothing, and a refused release is a done one.
            Phase::Released | Phase::Abandoning => {}
            _ if self.state.releasing => {}
            // With the floor raised nothing of ours is served again; only what lies at or below it is still to go.
            Phase::Forgetting if self.state.floor_raised => {}
            // The floor's own condition on the row says the rest.
            Phase::Opening | Phase::Forgetting => {
                self.state.lease = LeaseState::Lost(reason);
                if self.state.phase == Phase::Forgetting
                    && self.state.upload == Upload::Idle
                    && self.was.upload != Upload::Idle
                {
                    self.push(Effect::StartForget);
                }
            }
            Phase::Serving => self.end_lost(reason),
            Phase::Draining => {
                self.end_lost(reason);
                self.settle(Waiter::Handoff, Outcome::Refused(DRAINING));
            }
            Phase::Flushing => {
                self.end_lost(reason);
                self.settle(Waiter::Handoff, Outcome::Refused(Refusal::Fenced(reason)));
            }
        }
    }

    fn release_ended(&mut self, event: Event, flushed: bool) -> Result<(), Illegal> {
        if !self.state.releasing || self.state.phase == Phase::Released {
            return Err(self.illegal(event));
        }
        let phase = self.state.phase;
        self.state.phase = Phase::Released;
        self.state.releasing = false;
        self.tell(Notice::Released { flushed });
        // Callers are told last: whoever asks the router next does not find what is over.
        self.push(Effect::LeaveTable);
        self.push(Effect::End);
        match phase {
            Phase::Flushing => self.settle(Waiter::Handoff, Outcome::Done),
            // With the receipt, or with how it failed.
            Phase::Forgetting => self.settle(Waiter::Forget, Outcome::Kept),
            _ => {}
        }
        self.settle(Waiter::Abandon, Outcome::Done);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
