//! Time that moves when a test says so.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_types::{Clock, Moment, Timer, Timestamp};
use tokio::sync::watch;

/// What a new [`ManualClock`] reads: far enough from the origin that nothing is before it.
const START: Moment = Moment::from_nanos(1_000 * 1_000_000_000);
/// The calendar time of that reading: 2026-01-01T00:00:00Z.
const START_WALL: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// A clock that stands still until it is moved. Moving it moves no timer: that is what a suspended or stalled machine sees, whose
/// leases run out while its timers stand still. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    /// Nanoseconds since the start.
    passed: Arc<AtomicU64>,
    /// How often it was read.
    reads: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock at its start. Two new clocks read the same.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both readings, the clock's and the calendar's, `by` onwards.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).expect("a time that a test can mean");
        self.passed.fetch_add(by, Ordering::SeqCst);
    }

    /// How often it was read so far: whoever looks at it again and again, such as a statement that runs, is seen by that.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(self.passed.load(Ordering::SeqCst))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        self.reads.fetch_add(1, Ordering::SeqCst);
        START.plus(self.passed())
    }

    fn wall(&self) -> Timestamp {
        START_WALL.plus(self.passed())
    }
}

/// A timer whose sleeps end by [`elapse`](Self::elapse) alone. Clones are the same timer.
#[derive(Clone, Debug)]
pub struct ManualTimer {
    shared: Arc<Sleepers>,
}

#[derive(Debug)]
struct Sleepers {
    state: Mutex<Asleep>,
    /// How many sleep, for whoever waits for them.
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Asleep {
    elapsed: Duration,
    next: u64,
    /// By the time at which they end; `None` until they are polled.
    sleepers: BTreeMap<(Duration, u64), Option<Waker>>,
}

struct Sleep {
    shared: Arc<Sleepers>,
    at: (Duration, u64),
}

impl Default for ManualTimer {
    fn default() -> Self {
        let state = Mutex::default();
        Self { shared: Arc::new(Sleepers { state, count: watch::Sender::new(0) }) }
    }
}

impl ManualTimer {
    /// A timer on which nobody sleeps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `time` pass and ends the sleeps that it completes. What wakes runs when the runtime gets to it: await
    /// something before looking for its effects.
    pub fn elapse(&self, time: Duration) {
        let woken = {
            let mut state = self.shared.lock();
            state.elapsed += time;
            let later = (state.elapsed + Duration::from_nanos(1), 0);
            let still_asleep = state.sleepers.split_off(&later);
            let woken = std::mem::replace(&mut state.sleepers, still_asleep);
            self.shared.count.send_replace(state.sleepers.len());
            woken
        };
        woken.into_values().flatten().for_each(Waker::wake);
    }

    /// How many sleeps have not ended.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Waits until exactly `count` sleeps have not ended.
    pub async fn until_sleepers(&self, count: usize) {
        let reached = self.shared.count.subscribe().wait_for(|sleepers| *sleepers == count).await.is_ok();
        assert!(reached, "the sender lives as long as the timer");
    }
}

impl Timer for ManualTimer {
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        let mut state = self.shared.lock();
        state.next += 1;
        let at = (state.elapsed.saturating_add(wait), state.next);
        if !wait.is_zero() {
            state.sleepers.insert(at, None);
            self.shared.count.send_replace(state.sleepers.len());
        }
        Box::pin(Sleep { shared: Arc::clone(&self.shared), at })
    }
}

impl Sleepers {
    fn lock(&self) -> MutexGuard<'_, Asleep> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.shared.lock().sleepers.get_mut(&self.at) {
            None => Poll::Ready(()),
            Some(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.sleepers.remove(&self.at).is_some() {
            self.shared.count.send_replace(state.sleepers.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_clock_moves_both_readings_and_its_clones() {
        let clock = ManualClock::new();
        let (now, wall) = (clock.now(), clock.wall());
        clock.clone().advance(SECOND);
        assert_eq!((clock.now().since(now), clock.wall().since(wall)), (SECOND, SECOND));
        assert_eq!(ManualClock::new().wall().to_string(), "2026-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_sleep_ends_when_its_time_has_passed_and_not_before() {
        let timer = ManualTimer::new();
        let (mut short, mut long) = (timer.sleep(SECOND), timer.sleep(2 * SECOND));
        assert!(timer.sleep(Duration::ZERO).now_or_never().is_some());
        timer.elapse(SECOND / 2);
        assert!((&mut short).now_or_never().is_none());
        timer.elapse(SECOND / 2);
        assert!((&mut short).now_or_never().is_some() && (&mut long).now_or_never().is_none());
        assert_eq!(timer.sleepers(), 1);
        drop(long);
        assert_eq!(timer.sleepers(), 0);
    }
}
