//! Panics: each is contained to its request, its task or its observer, is counted, and is told without what it says.

use std::{
    any::Any,
    backtrace::Backtrace,
    future::Future,
    panic::{AssertUnwindSafe, PanicHookInfo, set_hook},
    sync::{LazyLock, Once},
    time::Duration,
};

use futures::FutureExt as _;
use leasehold_types::Timer;
use prometheus_client::metrics::counter::Counter;

/// Panics of this process since [`watch_panics`].
static PANICS: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Has every panic of this process counted (`leasehold_panics_total`) and logged with its place and how it came there.
///
/// What a panic says may hold what a caller sent, so it is written only where it stands in the program as it is; the standard hook,
/// which writes it whatever it holds, is not asked. For the program that serves, once, at its start: the hook is the process's.
pub fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_hook(Box::new(tell)));
}

/// How long what panicked rests before it is begun again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What `begin` comes to, begun again each time that it panics: what a replica does as long as it lives ends with nothing else.
pub(crate) async fn lasting<T, F: Future<Output = T>>(
    timer: &dyn Timer,
    what: &'static str,
    begin: impl Fn() -> F,
) -> T {
    loop {
        if let Ok(done) = AssertUnwindSafe(begin()).catch_unwind().await {
            return done;
        }
        tracing::error!(what, "it panicked and is begun again");
        timer.sleep(AGAIN_AFTER).await;
    }
}

/// The counter, for the metrics.
pub(crate) fn counter() -> Counter {
    PANICS.clone()
}

fn tell(panic: &PanicHookInfo<'_>) {
    PANICS.inc();
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    tracing::error!(
        location,
        thread = thread.name().unwrap_or_default(),
        said = said(panic.payload()),
        backtrace = %Backtrace::force_capture(),
        "a panic"
    );
}

/// What a panic says, where no caller can have a part in it.
fn said(payload: &(dyn Any + Send)) -> &'static str {
    // A text without arguments is one of the program's own.
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(not told: it may hold what a caller sent)")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use leasehold_lease::TokioTimer;

    use super::*;

    #[tokio::test]
    async fn what_panics_is_begun_again_until_it_has_done_its_work() {
        let begun = AtomicU32::new(0);
        let done = lasting(&TokioTimer, "counting", || async {
            let number = begun.fetch_add(1, Ordering::SeqCst);
            assert_ne!(number, 0, "the first one panics");
            number
        });
        assert_eq!(done.await, 1);
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_may_be_a_callers_is_not_told() {
        assert_eq!(said(&"the queue is closed"), "the queue is closed");
        assert!(said(&"a caller's own".to_owned()).starts_with("(not told"));
        assert!(said(&7_u8).starts_with("(not told"));
    }
}
