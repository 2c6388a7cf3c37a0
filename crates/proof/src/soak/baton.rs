//! One thread at a time, in one order.
//!
//! The product's tasks run on this thread, its blocking work on one other one. Left to themselves the two race: whether a task is woken
//! before or after its neighbour has run depends on how fast a disk was. So a baton goes between them. While tasks run, the other
//! thread is held inside a job that does nothing. When no task can run any more, the runtime is about to park: then another such job
//! is queued behind what was submitted meanwhile, the first one is let go, and this thread waits until the other one has come to the
//! new one. All blocking work in between was done in the order in which it was submitted, and has woken its tasks in that order; they
//! run when this thread goes on. Where nothing was woken, nothing is under way but what waits for time or for a fault to end: that
//! is idle, and the one moment at which the next step begins.

use std::{
    future::Future,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    runtime::{Builder, Handle},
    sync::Notify,
};

/// Tells when nothing can go on by itself. Clones are the same.
#[derive(Clone, Debug)]
pub struct Idle(Arc<Baton>);

impl Idle {
    /// Completes once no task can run and no blocking work is left. For one task alone.
    pub async fn until_idle(&self) {
        self.0.idle.notified().await;
    }
}

#[derive(Debug, Default)]
struct Baton {
    state: Mutex<State>,
    moved: Condvar,
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the hold that was queued last.
    queued: u64,
    /// In which hold the other thread is, or was last.
    reached: u64,
    /// Holds up to this one are let go.
    let_go: u64,
    /// Set once: nobody is held any more.
    over: bool,
}

impl Baton {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a hold, lets the one before it go, and waits until the other thread has come to the new one.
    fn pass(self: &Arc<Self>, runtime: &Handle) {
        let next = {
            let mut state = self.state();
            if state.over {
                return;
            }
            state.queued += 1;
            state.queued
        };
        let other = Arc::clone(self);
        drop(runtime.spawn_blocking(move || other.hold(next)));
        let mut state = self.state();
        state.let_go = next - 1;
        self.moved.notify_all();
        drop(self.moved.wait_while(state, |state| state.reached < next && !state.over));
    }

    fn hold(&self, number: u64) {
        let mut state = self.state();
        state.reached = number;
        self.moved.notify_all();
        drop(self.moved.wait_while(state, |state| state.let_go < number && !state.over));
    }

    fn end(&self) {
        self.state().over = true;
        self.moved.notify_all();
    }

    /// Called when no task can run.
    fn parks(self: &Arc<Self>) {
        let runtime = Handle::current();
        self.pass(&runtime);
        if runtime.metrics().global_queue_depth() == 0 {
            self.idle.notify_waiters();
        }
    }
}

/// Runs what `main` makes as a task among others. Nothing in it may wait for the machine's time: there are no timers here.
///
/// # Panics
/// If no runtime can be built, or if the task panics.
pub fn one_thread_at_a_time<F>(main: impl FnOnce(Idle) -> F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let baton = Arc::new(Baton::default());
    let parks = Arc::clone(&baton);
    let runtime = Builder::new_current_thread()
        // What the other thread has woken waits until nothing here can run: then when that was makes no difference.
        .global_queue_interval(u32::MAX)
        .max_blocking_threads(1)
        .on_thread_park(move || parks.parks())
        .build()
        .expect("a runtime on this thread");
    baton.pass(runtime.handle());
    // A task and not what is blocked on, which would be polled out of order.
    let task = runtime.spawn(main(Idle(Arc::clone(&baton))));
    let ended = runtime.block_on(task);
    baton.end();
    drop(runtime);
    match ended {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => panic!("the task did not end by itself: {error}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Tasks that hop between the threads, with work of unlike lengths.
    fn order() -> Vec<(u64, u64)> {
        one_thread_at_a_time(|idle| async move {
            let seen = Arc::new(Mutex::new(Vec::new()));
            for task in 0..20_u64 {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    for hop in 0..20_u64 {
                        let busy = (task * 7 + hop * 13) % 11;
                        let blocking = tokio::task::spawn_blocking(move || {
                            let spun = AtomicU64::new(0);
                            (0..busy * 200).for_each(|_| {
                                spun.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                        blocking.await.unwrap();
                        if task % 3 == 0 {
                            tokio::task::yield_now().await;
                        }
                        seen.lock().unwrap().push((task, hop));
                    }
                });
            }
            idle.until_idle().await;
            let seen = seen.lock().unwrap();
            seen.clone()
        })
    }

    #[test]
    fn idle_comes_when_everything_is_done_and_the_order_is_always_the_same() {
        let first = order();
        assert_eq!(first.len(), 400);
        for _ in 0..10 {
            assert!(order() == first);
        }
    }

    #[test]
    fn a_panic_is_the_callers() {
        let panicked = std::panic::catch_unwind(|| {
            one_thread_at_a_time(|_| async { panic!("of the task") });
        });
        assert!(panicked.is_err());
    }
}
