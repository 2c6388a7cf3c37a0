//! How far a replica that goes has come, for what it forwards.

use tokio::sync::watch;

/// What is not waited for any more; it only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// Everything is waited for.
    Nothing,
    /// Streams of events end: they have no end of their own.
    Streams,
    /// Every answer of another replica: this one has no time left.
    Answers,
}

/// Completes once `seen` has come to `ending`.
pub(super) async fn reached(seen: &mut watch::Receiver<Ending>, ending: Ending) {
    // A dropped sender says the same: nobody serves any more.
    let _ = seen.wait_for(|seen| *seen >= ending).await;
}
