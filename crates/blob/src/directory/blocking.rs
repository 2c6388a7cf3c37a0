//! Blocking work beside the runtime, bounded, and told when nobody waits for it any more.

use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

use crate::BlobError;

/// Whether somebody still waits for the work's answer. Long work asks between its steps.
pub(super) struct Caller<'a> {
    is_gone: &'a dyn Fn() -> bool,
    action: &'a str,
}

impl Caller<'_> {
    /// An error, which nobody will see, once the caller has dropped its future.
    pub(super) fn still_waits(&self) -> Result<(), BlobError> {
        if (self.is_gone)() {
            return Err(unanswered(self.action, "its caller is gone"));
        }
        Ok(())
    }
}

/// Runs `work` on a thread that may block, after waiting for one of the `permits`. An answer that comes too late is dropped, and whatever
/// it guards with it.
pub(super) async fn run<T, F>(permits: &Arc<Semaphore>, action: String, work: F) -> Result<T, BlobError>
where
    T: Send + 'static,
    F: FnOnce(&Caller<'_>) -> Result<T, BlobError> + Send + 'static,
{
    let permit =
        Arc::clone(permits).acquire_owned().await.map_err(|_| unanswered(&action, "the store is closed"))?;
    let (answer, answered) = oneshot::channel();
    let name = action.clone();
    // Not awaited: the channel says all there is to say, a panic included.
    drop(tokio::task::spawn_blocking(move || {
        let done = work(&Caller { is_gone: &|| answer.is_closed(), action: &name });
        drop(permit);
        // An error here gives the answer back, to be dropped: the caller is gone.
        drop(answer.send(done));
    }));
    answered.await.unwrap_or_else(|_| Err(unanswered(&action, "the work ended without an answer")))
}

fn unanswered(action: &str, detail: &str) -> BlobError {
    BlobError::Unavailable { action: action.to_owned(), detail: detail.to_owned() }
}
