//! Waiting in tests: always bounded, always saying what for.

use std::{future::Future, time::Duration};

use leasehold_lease::TokioTimer;
use leasehold_types::{Clock as _, SystemClock, Timer as _};

/// How long a call may take that has no limit of its own: far above what a busy machine needs, far below for ever.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a call that should wait, and does not, needs at the most to come to an end on an idle machine.
const BETRAYAL: Duration = Duration::from_millis(150);

/// Between two looks of [`eventually`].
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The output of `call`, which has to come within `limit` of real time.
///
/// # Panics
/// If it does not: with `what`.
pub async fn within<T>(limit: Duration, what: &str, call: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        output = call => output,
        () = TokioTimer.sleep(limit) => panic!("{what} did not come to an end within {limit:?}"),
    }
}

/// Shows that `call` waits: a short time of turns is given to what would be wrong, and nothing that is right needs it.
///
/// # Panics
/// If it comes to an end: with `what`.
pub async fn waits<F: Future + Unpin>(what: &str, call: &mut F) {
    tokio::select! {
        biased;
        _ = call => panic!("{what} came to an end while it was to wait"),
        () = TokioTimer.sleep(BETRAYAL) => {}
    }
}

/// Looks until `holds` is true, for at most `limit` of real time.
///
/// # Panics
/// If it never is: with `what`.
pub async fn eventually<F, Fut>(limit: Duration, what: &str, mut holds: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let until = SystemClock.now().plus(limit);
    while !holds().await {
        assert!(SystemClock.now() < until, "waited {limit:?} in vain: {what}");
        TokioTimer.sleep(LOOK_EVERY).await;
    }
}

/// Lets real time pass, in a row that names it.
pub async fn pass(time: Duration) {
    TokioTimer.sleep(time).await;
}
