//! From an event to its effects: the one way in which a tenure's state changes.

use std::{collections::VecDeque, time::Duration};

use leasehold_snapshot::{Published, Receipt};
use leasehold_types::{Act, Epoch, Moment, Point};

use crate::{
    TenureError, TenureEvent,
    gate::Drained,
    tenure::Tenure,
    vocabulary::{Answer, Effect, Event, LeaseState, Notice, Outcome, Phase, State, Waiter},
    waiting::{Asker, Telling, Waiters, Waiting, telling},
};

/// What an event brings along that the pure state does not need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause {
    pub(crate) error: Option<TenureError>,
    pub(crate) published: Option<(Published, Duration)>,
    pub(crate) receipt: Option<Receipt>,
    /// When the renewal left that was granted.
    pub(crate) sent_at: Option<Moment>,
}

impl From<TenureError> for Cause {
    fn from(error: TenureError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// Something to do outside the lock, in the order of the steps that led to it.
pub(crate) enum Deed {
    Tell(TenureEvent),
    Settle(Telling),
    Do(Effect),
    /// Let the time limit of this drain begin.
    Arm(u64),
}

/// Everything behind the lock.
#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) state: State,
    waiters: Waiters,
    /// What is still to do. Whoever finds `busy` unset does it all, so that it is done in order.
    outbox: VecDeque<Deed>,
    busy: bool,
}

impl Tenure {
    /// Feeds an event that nobody waits for.
    pub(crate) fn feed(&self, event: Event, cause: &Cause) {
        // An illegal event is logged by its name where it is found; there is nobody to tell.
        let _ = self.step(event, cause, None);
    }

    /// Feeds what a caller asks for. Its outcome reaches the asker; what is refused reaches it at once.
    pub(crate) fn ask(&self, event: Event, asker: Option<Asker>) {
        self.note_deadline();
        let _ = self.step(event, &Cause::default(), asker);
    }

    /// Seats the caller for whom this tenure is begun.
    pub(crate) fn wait_for_forget(&self, told: Waiting<Receipt>) {
        self.inner().waiters.forget.push(told);
    }

    /// Notes that the deadline has passed, if it has: the gate knows by itself, the state and the observers learn it here.
    pub(crate) fn note_deadline(&self) {
        let held = self.state().lease == LeaseState::Held;
        if held && self.gate.lease().is_some() && self.gate.proven().is_err() {
            self.feed(Event::DeadlinePassed, &Cause::default());
        }
    }

    /// The one way in which the state changes.
    fn step(&self, event: Event, cause: &Cause, asker: Option<Asker>) -> Option<Answer> {
        let answer = {
            let mut inner = self.inner();
            if matches!(event, Event::Drained { .. }) && self.gate.in_flight() > 0 {
                // Of a drain that is over; another one waits for other work now.
                return None;
            }
            let step = match inner.state.step(event) {
                Ok(step) => step,
                Err(illegal) => {
                    drop(inner);
                    tracing::error!(key = %self.key, %illegal, "a defect of the tenure's driver");
                    if let Some(asker) = asker {
                        refuse(asker, &TenureError::Defect { key: self.key.clone(), source: illegal });
                    }
                    return None;
                }
            };
            let drained = inner.state.phase == Phase::Draining && step.state.phase != Phase::Draining;
            let act = gate_act(inner.state.phase, step.state);
            let points = &self.shared.backends.points;
            if let Some(act) = act {
                points.reached(Point::Before(act), Some(&self.key));
            }
            // What was due may wait no longer, or what was not due is: whoever looks after time slept by the state that was.
            let looks = (inner.state.phase, inner.state.lease) != (step.state.phase, step.state.lease);
            inner.state = step.state;
            self.gate.show(step.state);
            if looks {
                self.wake.notify_one();
            }
            if let Some(act) = act {
                points.reached(Point::After(act), Some(&self.key));
            }
            if drained {
                self.drain_over.send_modify(|drains| *drains += 1);
            }
            if let Some(asker) = asker {
                self.seat(&mut inner, step.answer, asker);
            }
            for effect in step.effects {
                self.prepare(&mut inner, effect, cause);
            }
            step.answer
        };
        self.work_off();
        // A drain may find nothing to wait for.
        self.drained();
        Some(answer)
    }

    /// Puts an asker where its outcome will be told, or answers it.
    fn seat(&self, inner: &mut Inner, answer: Answer, asker: Asker) {
        match answer {
            Answer::Refused(refusal) => {
                let error = self.refused(refusal);
                inner.outbox.push_back(Deed::Settle(Box::new(move || refuse(asker, &error))));
            }
            Answer::Nothing => inner.outbox.push_back(Deed::Settle(Box::new(move || match asker {
                Asker::Handoff(told) | Asker::Abandon(told) => {
                    let _ = told.send(Ok(()));
                }
                Asker::Snapshot(told) => {
                    let _ = told.send(Ok(None));
                }
                // No forget is answered with nothing.
                Asker::Forget(told) => drop(told),
            }))),
            Answer::Begun | Answer::Joined => match asker {
                Asker::Snapshot(told) => inner.waiters.next_snapshot.push(told),
                Asker::Handoff(told) => inner.waiters.handoff.push(told),
                Asker::Abandon(told) => inner.waiters.abandon.push(told),
                Asker::Forget(told) => inner.waiters.forget.push(told),
            },
        }
    }

    /// Makes a deed of an effect, with the callers that it concerns as they are now.
    fn prepare(&self, inner: &mut Inner, effect: Effect, cause: &Cause) {
        match effect {
            Effect::Tell(notice) => {
                if notice == Notice::GateClosed {
                    self.note_closed();
                }
                if let Some(event) = self.event(notice, cause) {
                    inner.outbox.push_back(Deed::Tell(event));
                }
                if notice == Notice::Forgotten {
                    inner.waiters.forgotten = cause.receipt.clone().map(Ok);
                }
            }
            Effect::Settle(waiter, outcome) => {
                if let Some(told) = self.outcome(&mut inner.waiters, waiter, outcome, cause) {
                    inner.outbox.push_back(Deed::Settle(told));
                }
            }
            Effect::StartUpload { .. } => {
                let Waiters { snapshot, next_snapshot, .. } = &mut inner.waiters;
                snapshot.append(next_snapshot);
                inner.outbox.push_back(Deed::Do(effect));
            }
            // At once: the gate must not refuse what is proven.
            Effect::ExtendDeadline => {
                if let (Some(lease), Some(sent_at)) = (self.gate.lease(), cause.sent_at) {
                    lease.extend(sent_at);
                }
            }
            Effect::StartRelease { .. } => {
                // How a forget failed is told once the lease is handed back.
                if inner.state.phase == Phase::Forgetting && inner.waiters.forgotten.is_none() {
                    inner.waiters.forgotten = cause.error.clone().map(Err);
                }
                inner.outbox.push_back(Deed::Do(effect));
            }
            Effect::ArmDrainTimer => inner.outbox.push_back(Deed::Arm(*self.drain_over.borrow())),
            other => inner.outbox.push_back(Deed::Do(other)),
        }
    }

    fn outcome(
        &self,
        waiters: &mut Waiters,
        waiter: Waiter,
        outcome: Outcome,
        cause: &Cause,
    ) -> Option<Telling> {
        let failure =
            || cause.error.clone().unwrap_or_else(|| TenureError::TaskEnded { key: self.key.clone() });
        let plain = match outcome {
            Outcome::Done | Outcome::Kept => Ok(()),
            Outcome::Failed => Err(failure()),
            Outcome::Refused(refusal) => Err(self.refused(refusal)),
            Outcome::DrainTimeout => Err(TenureError::DrainTimeout {
                key: self.key.clone(),
                epoch: self.epoch().unwrap_or(Epoch::FIRST),
                waited: self.shared.options.drain_timeout,
                in_flight: self.gate.in_flight(),
            }),
        };
        match waiter {
            Waiter::Handoff => telling(&mut waiters.handoff, plain),
            Waiter::Abandon => telling(&mut waiters.abandon, plain),
            Waiter::Snapshot => {
                let published = cause.published.as_ref().map(|(published, _)| published.clone());
                telling(&mut waiters.snapshot, plain.map(|()| published))
            }
            Waiter::NextSnapshot => telling(&mut waiters.next_snapshot, plain.map(|()| None)),
            Waiter::Forget => {
                let kept = waiters.forgotten.take().unwrap_or_else(|| Err(failure()));
                telling(&mut waiters.forget, plain.and(kept))
            }
        }
    }

    fn event(&self, notice: Notice, cause: &Cause) -> Option<TenureEvent> {
        let (key, epoch) = (self.key.clone(), self.epoch()?);
        Some(match notice {
            Notice::Acquired => TenureEvent::Acquired { key, epoch },
            Notice::Renewed => TenureEvent::Renewed { key, epoch },
            Notice::Lapsed => TenureEvent::Lapsed { key, epoch },
            Notice::Resumed => TenureEvent::Resumed { key, epoch },
            Notice::Lost(reason) => TenureEvent::Lost { key, epoch, reason },
            Notice::DrainTimeout => {
                TenureEvent::DrainTimeout { key, epoch, in_flight: self.gate.in_flight() }
            }
            Notice::GateClosed => TenureEvent::GateClosed { key, epoch },
            Notice::Released { flushed } => {
                let closed_at = self.closed_at().filter(|_| flushed);
                let closed_for = closed_at.map(|closed_at| self.now().since(closed_at));
                TenureEvent::Released { key, epoch, flushed, closed_for }
            }
            Notice::SnapshotPublished => {
                let (published, took) = cause.published.clone()?;
                TenureEvent::SnapshotPublished {
                    key,
                    epoch,
                    number: published.number,
                    position: published.position,
                    bytes: published.bytes_uploaded,
                    took,
                }
            }
            Notice::SnapshotFailed => {
                let error = cause.error.as_ref()?;
                TenureEvent::SnapshotFailed { key, epoch, code: error.code(), error: with_sources(error) }
            }
            Notice::Forgotten => TenureEvent::Forgotten { key, epoch, receipt: cause.receipt.clone()? },
        })
    }

    /// Does what is to be done, in order. Where somebody is at it already, he does ours too.
    fn work_off(&self) {
        {
            let mut inner = self.inner();
            if inner.busy {
                return;
            }
            inner.busy = true;
        }
        let _busy = Busy(self);
        loop {
            let deed = {
                let mut inner = self.inner();
                let Some(deed) = inner.outbox.pop_front() else {
                    inner.busy = false;
                    return;
                };
                deed
            };
            match deed {
                Deed::Tell(event) => self.shared.tell(&event),
                Deed::Settle(told) => told(),
                Deed::Do(effect) => self.perform(effect),
                Deed::Arm(drain) => self.arm(drain),
            }
        }
    }
}

/// Lets the next step do what is left when a deed panicked.
struct Busy<'a>(&'a Tenure);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.inner().busy = false;
        }
    }
}

impl Drained for Tenure {
    fn drained(&self) {
        // Looked at without the lock, decided under it.
        if self.state().phase == Phase::Draining && self.gate.in_flight() == 0 {
            let dirty = self.ledger().is_ok_and(|ledger| ledger.is_dirty());
            self.feed(Event::Drained { dirty }, &Cause::default());
        }
    }
}

/// The act that a change of the gate is; `None` where it stays as it is.
fn gate_act(was: Phase, is: State) -> Option<Act> {
    if was == is.phase {
        return None;
    }
    match is.phase {
        // No tenure opens again.
        Phase::Opening => None,
        Phase::Serving if was == Phase::Opening => Some(Act::OpenServe),
        Phase::Serving => Some(Act::HandoffReopen),
        Phase::Draining => Some(Act::HandoffGate),
        Phase::Flushing => Some(Act::HandoffFlush),
        Phase::Forgetting => Some(Act::ForgetGate),
        Phase::Abandoning => Some(Act::AbandonGate),
        Phase::Released => match is.lease {
            LeaseState::Lost(_) => Some(Act::LostGate),
            LeaseState::Held | LeaseState::Lapsed => Some(Act::ReleaseEnd),
        },
    }
}

fn refuse(asker: Asker, error: &TenureError) {
    // Who has stopped waiting need not be told.
    match asker {
        Asker::Snapshot(told) => drop(told.send(Err(error.clone()))),
        Asker::Handoff(told) | Asker::Abandon(told) => drop(told.send(Err(error.clone()))),
        Asker::Forget(told) => drop(told.send(Err(error.clone()))),
    }
}

/// An error with what lies behind it, in one line.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
