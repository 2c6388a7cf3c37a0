//! Tenants that leave with their replica: the place that each one now belongs to opens it before anybody asks.
//!
//! Told is the best that can be done beside the handing off: it delays no handoff, takes a bounded time, and whoever is not told opens the
//! tenant when it is asked for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use leasehold_tenure::Handle;
use leasehold_types::{LeaseKey, Moment};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::counters::{Cause, MoveOutcome};
use crate::{
    app::{App, AppState},
    forward::{AskError, Forwarding, Owner, Told, tell},
};

/// How many replicas are told side by side.
const TELLINGS_MAX: usize = 8;
/// How long one may take to say that it has the tenant open. Its opening goes on when nobody waits for it.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How many places are told of one tenant, one after the other.
const PLACES_MAX: usize = 2;

/// The tenants that are about to leave.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    leaving: Mutex<Option<Leaving>>,
    tellings: TaskTracker,
}

#[derive(Debug)]
struct Leaving {
    /// Those that were used lately. What was not is opened when it is asked for.
    warm: HashMap<LeaseKey, Handle>,
    /// Takes each of them once it is handed off; as long as there are of them.
    gone: mpsc::Sender<Gone>,
}

/// A tenant that is handed off.
#[derive(Debug)]
struct Gone {
    key: LeaseKey,
    /// When its gate was closed here.
    closed_at: Option<Moment>,
}

impl Departures {
    /// Notes that a tenant was released: whether everything of it is in the store. For the router's observer.
    pub(crate) fn released(&self, key: &LeaseKey, flushed: bool) {
        let mut leaving = self.lock();
        let Some(Leaving { warm, gone }) = &mut *leaving else { return };
        // What was abandoned, or lost, is whoever's it is by now.
        if let Some(handle) = warm.remove(key)
            && flushed
        {
            let _ = gone.try_send(Gone { key: key.clone(), closed_at: handle.closed_at() });
        }
    }

    /// Begins to tell of the tenants that leave from now on; [`end`](Self::end) says that no more will.
    pub(crate) fn begin(&self, app: &AppState) {
        if app.forwarding.is_none() || !app.config.placement.enabled {
            return;
        }
        let handles = app.router.handles();
        let used = handles.iter().filter(|handle| handle.idle_for() < app.config.placement.warm_within);
        let mut warm: HashMap<LeaseKey, Handle> =
            used.map(|handle| (handle.key().clone(), handle.clone())).collect();
        let mut leaving = self.lock();
        // Asked to leave once more: what is on its way out already is nobody's handle any more.
        warm.extend(leaving.take().into_iter().flat_map(|before| before.warm));
        if warm.is_empty() {
            return;
        }
        let (gone, coming) = mpsc::channel(warm.len());
        *leaving = Some(Leaving { warm, gone });
        drop(leaving);
        self.tellings.spawn(tell_all(Arc::clone(app), coming));
    }

    /// No more tenants leave; what is told is told to the end.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    /// Completes once everybody was told who is told.
    pub(crate) async fn told(&self) {
        self.tellings.close();
        self.tellings.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Leaving>> {
        // A removal, or the whole of it, is one step.
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn tell_all(app: AppState, coming: mpsc::Receiver<Gone>) {
    let Some(forwarding) = &app.forwarding else { return };
    let coming =
        stream::unfold(coming, |mut coming| async { coming.recv().await.map(|gone| (gone, coming)) });
    coming.for_each_concurrent(TELLINGS_MAX, |gone| tell_one(&app, forwarding, gone)).await;
}

/// Tells the place that the tenant belongs to, or the next one.
async fn tell_one(app: &App, forwarding: &Forwarding, Gone { key, closed_at }: Gone) {
    let mut without = Vec::new();
    let mut outcome = MoveOutcome::Unopened;
    while without.len() < PLACES_MAX {
        let Some(look) = app.survey.look(app).await else { break };
        let Some(place) = look.fleet.place(&key, &without).filter(|place| !place.is_this) else { break };
        let place = Owner { replica: place.replica.clone(), endpoint: place.endpoint.clone(), epoch: None };
        let told = tell(app, forwarding, &key, &place, ANSWER_MAX).await;
        tracing::debug!(%key, to = place.replica, ?told, "told to open a tenant that left");
        match told {
            Told::Opened(_) => {
                outcome = MoveOutcome::Moved;
                if let Some(closed_at) = closed_at {
                    app.metrics.moved(app.clock.now().since(closed_at));
                }
            }
            Told::Held => outcome = MoveOutcome::Taken,
            // It may have it open by now.
            Told::Unanswered(AskError::Lost(_) | AskError::Gone | AskError::Late | AskError::Ended) => {}
            Told::Refused(..) | Told::Unanswered(AskError::NotSent(_)) => {
                without.push(place.replica);
                continue;
            }
        }
        break;
    }
    app.metrics.placement.moved(Cause::Drain, outcome);
}
