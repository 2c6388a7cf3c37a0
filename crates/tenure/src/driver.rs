//! Performs a tenure's effects and feeds back what came of them. Every operation is a task of its own, so that no caller who
//! goes away ends it.

use std::{
    future::Future,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use futures::future::{Either, select};
use leasehold_snapshot::Resume;
use leasehold_types::{Act, Moment, Refusal, Timer};

use crate::{
    TenureError,
    contained::contained,
    steps::Cause,
    tenure::Tenure,
    vocabulary::{Effect, Event},
};

/// How often a release is asked for before the lease is left to run out.
const RELEASE_TRIES: u32 = 3;

impl Tenure {
    /// Begins what an effect asks for. Never waits.
    pub(crate) fn perform(&self, effect: Effect) {
        let Some(me) = self.me() else { return };
        match effect {
            Effect::StartUpload { last } => self.task(async move { me.upload(last).await }),
            Effect::StartForget => self.task(async move { me.forget_all().await }),
            Effect::StartRelease { flushed } => {
                // No renewal after this one: a release is not to be undone.
                self.unregister();
                self.task(async move { me.release(flushed).await });
            }
            Effect::StartResumeCheck => {
                if !self.checking.swap(true, Ordering::AcqRel) {
                    self.task(async move { me.resume_check().await });
                }
            }
            Effect::Salvage => {
                if self.state().releasing {
                    self.salvage_first.store(true, Ordering::Release);
                } else if let Ok(ledger) = self.ledger() {
                    self.task(async move { me.salvage(Act::LostSalvage, ledger).await });
                }
            }
            Effect::LeaveTable => self.shared.table.ending(&self.key, self),
            Effect::End => self.end(),
            // Done where they were decided.
            Effect::ArmDrainTimer | Effect::ExtendDeadline | Effect::Settle(..) | Effect::Tell(_) => {}
        }
    }

    pub(crate) fn task(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.shared.runtime.spawn(work);
    }

    fn unregister(&self) {
        let registration = self.registration.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(registration);
    }

    /// The tenure is over: nothing of it is served, renewed or found any more.
    fn end(&self) {
        self.unregister();
        if let Some(lease) = self.gate.lease() {
            lease.give_up();
        }
        // Closes with the last call that uses it.
        drop(self.take_ledger());
        self.close_changes();
        self.shared.table.ended(&self.key, self);
        self.ended.send_replace(true);
        self.wake.notify_one();
    }

    /// Ends a drain that takes too long, unless it ends by itself.
    pub(crate) fn arm(&self, drain: u64) {
        let Some(me) = self.me() else { return };
        let limit = self.shared.backends.timer.sleep(self.shared.options.drain_timeout);
        self.task(async move {
            let mut over = me.drain_over.subscribe();
            let ended = std::pin::pin!(over.wait_for(|drains| *drains > drain));
            if matches!(select(limit, ended).await, Either::Left(_)) {
                me.feed(Event::DrainTimedOut, &Cause::default());
            }
        });
    }

    async fn release(self: Arc<Self>, flushed: bool) {
        if self.salvage_first.swap(false, Ordering::AcqRel)
            && let Ok(ledger) = self.ledger()
        {
            let _ = contained(Arc::clone(&self).salvage(Act::ReleaseSalvage, ledger)).await;
        }
        if flushed {
            // Everything is in the store, so no copy stays here (contract row L1). Before the lease goes, since after it the path may be
            // another tenure's.
            let discarded = self.around(Act::ReleaseDiscard, Arc::clone(&self).discard_ledger());
            let _ = contained(discarded).await;
        }
        if let Some(lease) = self.gate.lease().cloned() {
            let limit = self.shared.held.ttl() / 2;
            for attempt in 1..=RELEASE_TRIES {
                let asked = self.around(Act::ReleaseRow, self.within(limit, lease.release()));
                match contained(asked).await {
                    Some(Some(Ok(_))) => break,
                    None => {
                        tracing::error!(key = %self.key, epoch = %lease.epoch(), attempt, "a release panicked");
                    }
                    Some(Some(Err(error))) => {
                        tracing::warn!(key = %self.key, epoch = %lease.epoch(), %error, attempt, "a release failed");
                    }
                    Some(None) => {
                        tracing::warn!(key = %self.key, epoch = %lease.epoch(), attempt, "a release had no answer in time");
                    }
                }
                if attempt < RELEASE_TRIES {
                    self.shared.backends.timer.sleep(self.shared.backends.entropy.jittered(limit / 10)).await;
                }
            }
        }
        self.feed(Event::ReleaseEnded { flushed }, &Cause::default());
    }

    /// The outcome of `work`; `None` when it took longer than `limit`.
    pub(crate) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        within(&*self.shared.backends.timer, limit, work).await
    }

    /// `work`, between the points of `act`.
    pub(crate) async fn around<T>(&self, act: Act, work: impl Future<Output = T>) -> T {
        self.shared.backends.points.around(act, Some(&self.key), work).await
    }

    /// Runs blocking work where it may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TenureError> {
        let task = self.shared.runtime.spawn_blocking(work);
        task.await.map_err(|error| {
            tracing::error!(key = %self.key, %error, "a blocking task did not end by itself");
            TenureError::TaskEnded { key: self.key.clone() }
        })
    }

    /// Asks the snapshot store whether a lapsed lease may be resumed (protocol.md, "Lapsed, then resumed").
    pub(crate) async fn ask_store(&self) -> Result<(), TenureError> {
        let Some(lease) = self.gate.lease() else { return Err(self.refused(Refusal::Draining)) };
        let sent_at = Moment::from_nanos(self.granted_at.load(Ordering::Acquire));
        let own = self.own_seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match leasehold_snapshot::resume(&self.shared.snapshots, &lease.claim(), &own).await {
            Ok(Resume::Agrees) => {
                self.feed(Event::StoreAgrees, &Cause { sent_at: Some(sent_at), ..Cause::default() });
                Ok(())
            }
            Ok(Resume::Superseded(reason)) => {
                self.feed(Event::StoreDisagrees(reason), &Cause::default());
                Err(self.refused(Refusal::Fenced(reason)))
            }
            Err(source) => Err(TenureError::snapshot(&self.key, self.epoch(), source)),
        }
    }

    /// Where the store cannot say, the next renewal asks again.
    async fn resume_check(self: Arc<Self>) {
        match contained(self.ask_store()).await {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(key = %self.key, %error, "a lapsed lease is not resumed"),
            None => {
                tracing::error!(key = %self.key, "a lapsed lease is not resumed: the question panicked");
            }
        }
        self.checking.store(false, Ordering::Release);
    }
}

/// The outcome of `work`; `None` when it took longer than `limit`.
pub(crate) async fn within<T>(
    timer: &dyn Timer,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let work = std::pin::pin!(work);
    match select(work, timer.sleep(limit)).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}
