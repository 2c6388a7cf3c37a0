//! Panics of the driver's own work: each is told as the failure of what it was part of, so that whoever waits is settled.

use std::{future::Future, panic::AssertUnwindSafe};

use futures::FutureExt as _;

/// What `work` gives; `None`: it panicked. What it had begun is left as a crash would leave it, which every step here is made for; what
/// it shares with others is behind locks that say so themselves.
pub(crate) async fn contained<T>(work: impl Future<Output = T>) -> Option<T> {
    // Boxed: an opening and an upload are long, and each is part of another future.
    AssertUnwindSafe(Box::pin(work)).catch_unwind().await.ok()
}
