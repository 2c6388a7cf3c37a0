//! A question that has so much time and no more.

use std::{future::Future, io, sync::Arc, time::Duration};

use leasehold_types::Timer;

use crate::doctor::fact::{Fact, Failure, local};

/// How long a question may take, and by whose time.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) limit: Duration,
    pub(super) timer: Arc<dyn Timer>,
}

impl Asking {
    /// For limits of whoever is asked: a little less, so that it says itself what took too long.
    pub(super) fn limit_within(&self) -> Duration {
        self.limit.saturating_sub(self.limit / 10).max(Duration::from_millis(1))
    }

    /// What came of `question`; nothing, if it takes too long.
    pub(super) async fn fact<T, E>(&self, what: &str, question: impl Future<Output = Result<T, E>>) -> Fact<T>
    where
        Failure: From<E>,
    {
        tokio::select! {
            answer = question => answer.into(),
            () = self.timer.sleep(self.limit) => Fact::Failed(Failure {
                what: format!("failed to {what} within {:?}", self.limit),
                next: "see what keeps it from answering, or give it more time (--limit)".into(),
            }),
        }
    }

    /// The same of work that holds up its thread. One that takes too long is left behind.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Fact<T> {
        self.fact(what, async move {
            tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|error| Err(local(what, &io::Error::other(error))))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::ManualTimer;

    use super::*;

    #[tokio::test]
    async fn what_does_not_answer_is_given_up() {
        let timer = ManualTimer::new();
        let asking = Asking { limit: Duration::from_secs(7), timer: Arc::new(timer.clone()) };
        let silent = {
            let asking = asking.clone();
            tokio::spawn(
                async move { asking.fact("ask", std::future::pending::<Result<(), Failure>>()).await },
            )
        };
        while timer.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        timer.elapse(Duration::from_secs(7));
        let Fact::Failed(failure) = silent.await.unwrap() else { panic!("it answered") };
        assert!(failure.what.contains("within 7s") && failure.next.contains("--limit"), "{failure:?}");
        assert_eq!(asking.blocking("work", || Ok(7)).await, Fact::Known(7));
    }
}
