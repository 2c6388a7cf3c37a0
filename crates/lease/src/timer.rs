//! Waiting in production.

use std::{future::Future, pin::Pin, time::Duration};

use leasehold_types::Timer;

/// The runtime's timers. They stand still while the machine is suspended, as the [`Timer`] seam says.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    #[expect(clippy::disallowed_methods, reason = "the one place where the runtime's timers are handed in")]
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(tokio::time::sleep(wait))
    }
}
