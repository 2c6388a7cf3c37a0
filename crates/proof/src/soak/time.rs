//! Time in a soak: moved by hand, or the machine's.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_lease::TokioTimer;
use leasehold_testkit::{ManualClock, ManualTimer};
use leasehold_types::{Clock, Moment, SystemClock, Timer, Timestamp};
use tokio::sync::watch;

use super::baton::Idle;

/// How time passes.
#[derive(Clone, Debug)]
pub(super) enum Time {
    /// When the soak says so. Between two steps everything is idle.
    ByHand {
        /// What all clocks count from.
        world: ManualClock,
        /// When a step is over.
        idle: Idle,
    },
    /// As it does.
    Real,
}

impl Time {
    pub(super) const fn is_by_hand(&self) -> bool {
        matches!(self, Self::ByHand { .. })
    }

    /// What all clocks count from.
    pub(super) fn base(&self) -> Arc<dyn Clock> {
        match self {
            Self::ByHand { world, .. } => Arc::new(world.clone()),
            Self::Real => Arc::new(SystemClock),
        }
    }
}

/// A replica's own clock: the world's, and what it has jumped ahead by.
#[derive(Clone, Debug)]
pub(super) struct ReplicaClock {
    base: Arc<dyn Clock>,
    ahead_nanos: Arc<AtomicU64>,
}

impl ReplicaClock {
    pub(super) fn new(base: Arc<dyn Clock>) -> Self {
        Self { base, ahead_nanos: Arc::default() }
    }

    pub(super) fn jump(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or_default();
        self.ahead_nanos.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ReplicaClock {
    fn now(&self) -> Moment {
        self.base.now().plus(Duration::from_nanos(self.ahead_nanos.load(Ordering::SeqCst)))
    }

    fn wall(&self) -> Timestamp {
        self.base.wall()
    }
}

/// A replica's timers, which stand still while it is paused.
#[derive(Clone)]
pub(super) enum ReplicaTimer {
    /// Moved by hand.
    ByHand(ManualTimer),
    /// The machine's; what has run out while it is paused ends when it is not.
    Real(watch::Sender<bool>),
}

impl ReplicaTimer {
    pub(super) fn new(time: &Time) -> Self {
        match time {
            Time::ByHand { .. } => Self::ByHand(ManualTimer::new()),
            Time::Real => Self::Real(watch::Sender::new(false)),
        }
    }

    /// Lets time pass, where that is done by hand.
    pub(super) fn elapse(&self, by: Duration) {
        if let Self::ByHand(timer) = self {
            timer.elapse(by);
        }
    }

    /// Pauses the machine's timers or lets them go on. Those that are moved by hand are just not moved.
    pub(super) fn pause(&self, is_paused: bool) {
        if let Self::Real(paused) = self {
            paused.send_replace(is_paused);
        }
    }

    /// How many sleep, where that is known.
    pub(super) fn sleepers(&self) -> usize {
        match self {
            Self::ByHand(timer) => timer.sleepers(),
            Self::Real(_) => 0,
        }
    }
}

impl Timer for ReplicaTimer {
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        match self {
            Self::ByHand(timer) => timer.sleep(wait),
            Self::Real(paused) => {
                let mut paused = paused.subscribe();
                Box::pin(async move {
                    TokioTimer.sleep(wait).await;
                    // An error says that the replica is gone, and with it what would pause it.
                    let _ = paused.wait_for(|is_paused| !is_paused).await;
                })
            }
        }
    }
}

impl fmt::Debug for ReplicaTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplicaTimer")
    }
}
