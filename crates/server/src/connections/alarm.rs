//! A moment that is waited for and may be moved.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use leasehold_types::{Clock, Moment, Timer};

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Goes off once its moment has passed.
///
/// A connection moves it twice for each request, nearly always to a later moment: so the timer below is left as it is, and asked
/// for the rest when it ends too early.
pub(super) struct Alarm {
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    /// When it goes off; `None`: not at all.
    at: Option<Moment>,
    /// The timer that runs, and when it ends.
    sleep: Option<(Moment, Sleep)>,
}

impl Alarm {
    pub(super) fn new(clock: Arc<dyn Clock>, timer: Arc<dyn Timer>) -> Self {
        Self { clock, timer, at: None, sleep: None }
    }

    pub(super) const fn is_set(&self) -> bool {
        self.at.is_some()
    }

    pub(super) fn set(&mut self, wait: Duration) {
        let at = self.clock.now().plus(wait);
        if self.sleep.as_ref().is_some_and(|(end, _)| *end > at) {
            self.sleep = None;
        }
        self.at = Some(at);
    }

    pub(super) fn stop(&mut self) {
        self.at = None;
    }

    /// Ready once it has gone off; pending as long as it is stopped.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        loop {
            let (end, sleep) = self.sleep.get_or_insert_with(|| {
                let wait = at.since(self.clock.now());
                (at, self.timer.sleep(wait))
            });
            std::task::ready!(sleep.as_mut().poll(cx));
            let is_over = *end >= at;
            self.sleep = None;
            if is_over {
                self.at = None;
                return Poll::Ready(());
            }
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use leasehold_testkit::{ManualClock, ManualTimer};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_moment_that_was_moved_is_the_one_that_counts() {
        let (clock, timer) = (ManualClock::new(), ManualTimer::new());
        let mut alarm = Alarm::new(Arc::new(clock.clone()), Arc::new(timer.clone()));
        let mut cx = Context::from_waker(Waker::noop());
        let pass = |time| {
            clock.advance(time);
            timer.elapse(time);
        };
        assert!(alarm.poll(&mut cx).is_pending() && timer.sleepers() == 0, "nothing is waited for");

        alarm.set(10 * SECOND);
        assert!(alarm.poll(&mut cx).is_pending());
        pass(9 * SECOND);
        alarm.set(10 * SECOND);
        assert!(alarm.poll(&mut cx).is_pending());
        pass(9 * SECOND);
        assert!(alarm.poll(&mut cx).is_pending(), "the timer ended, its moment had been moved");
        pass(SECOND);
        assert!(alarm.poll(&mut cx).is_ready());
        assert!(alarm.poll(&mut cx).is_pending(), "once");

        alarm.set(10 * SECOND);
        assert!(alarm.poll(&mut cx).is_pending());
        alarm.set(SECOND);
        assert!(alarm.poll(&mut cx).is_pending());
        pass(SECOND);
        assert!(alarm.poll(&mut cx).is_ready(), "an earlier one is not slept through");

        alarm.set(SECOND);
        alarm.stop();
        pass(SECOND);
        assert!(alarm.poll(&mut cx).is_pending() && !alarm.is_set());
    }
}
