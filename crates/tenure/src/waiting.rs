//! Who waits for the outcome of an operation. The operation is the driver's: dropping the future that waits changes nothing.

use std::future::Future;

use leasehold_snapshot::{Published, Receipt};
use leasehold_types::LeaseKey;
use tokio::sync::oneshot;

use crate::TenureError;

/// One caller that waits.
pub(crate) type Waiting<T> = oneshot::Sender<Result<T, TenureError>>;

/// A caller with what it asked for.
pub(crate) enum Asker {
    Snapshot(Waiting<Option<Published>>),
    Handoff(Waiting<()>),
    Abandon(Waiting<()>),
    Forget(Waiting<Receipt>),
}

/// The callers of one tenure.
#[derive(Default)]
pub(crate) struct Waiters {
    /// Covered by the running upload.
    pub(crate) snapshot: Vec<Waiting<Option<Published>>>,
    /// Covered by the next one.
    pub(crate) next_snapshot: Vec<Waiting<Option<Published>>>,
    pub(crate) handoff: Vec<Waiting<()>>,
    pub(crate) abandon: Vec<Waiting<()>>,
    pub(crate) forget: Vec<Waiting<Receipt>>,
    /// How the forget went, until the lease is handed back.
    pub(crate) forgotten: Option<Result<Receipt, TenureError>>,
}

/// A call's two ends.
pub(crate) fn ask<T: Send + 'static>(
    key: &LeaseKey,
) -> (Waiting<T>, impl Future<Output = Result<T, TenureError>> + Send + 'static) {
    let (told, wait) = oneshot::channel();
    let key = key.clone();
    (told, async move { wait.await.unwrap_or(Err(TenureError::TaskEnded { key })) })
}

/// Something to tell a group of callers, ready to be told outside any lock.
pub(crate) type Telling = Box<dyn FnOnce() + Send>;

/// Tells everybody in `waiting` the same.
pub(crate) fn telling<T: Clone + Send + 'static>(
    waiting: &mut Vec<Waiting<T>>,
    outcome: Result<T, TenureError>,
) -> Option<Telling> {
    if waiting.is_empty() {
        return None;
    }
    let waiting = std::mem::take(waiting);
    Some(Box::new(move || {
        for caller in waiting {
            // Who has stopped waiting need not be told.
            let _ = caller.send(outcome.clone());
        }
    }))
}
