//! Every request is repeated a bounded number of times, under limits of an injected timer, outside any log.

use std::{pin::pin, sync::Arc, time::Duration};

use azure_core::error::ErrorKind;
use futures::future::{Either, select};
use leasehold_types::{Entropy, Timer};
use tokio::sync::Semaphore;
use tracing::{Dispatch, instrument::WithSubscriber as _};

use super::{options::AzureLimits, request::Request, transport::TransportError};
use crate::BlobError;

/// Requests of one store at the same time.
const REQUESTS_MAX: usize = 64;

/// A no that another attempt would only get again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) code: String,
}

impl Refused {
    /// The object is not there. That the container is not there is another matter.
    pub(super) fn is_absent(&self) -> bool {
        self.status == 404 && self.code == "BlobNotFound"
    }

    /// A create found the name taken. Not every conflict is one.
    pub(super) fn is_taken(&self) -> bool {
        matches!(
            (self.status, self.code.as_str()),
            (409, "BlobAlreadyExists")
                | (412, "ConditionNotMet")
                // What a SAS that may create and not write is told.
                | (403, "UnauthorizedBlobOverwrite")
        )
    }

    /// The object is another one than the one that was being read.
    pub(super) fn is_changed(&self) -> bool {
        self.status == 412
    }

    pub(super) fn into_error(self, action: &str) -> BlobError {
        unavailable(action, format!("it answered {} {}", self.status, self.code))
    }
}

/// An answer that means something to the caller.
#[derive(Debug)]
pub(super) struct Answer<T> {
    pub(super) result: Result<T, Refused>,
    /// An earlier attempt of the same request may have been executed.
    pub(super) is_repeat: bool,
}

impl<T> Answer<T> {
    /// For requests for which no refusal means anything.
    pub(super) fn required(self, action: &str) -> Result<T, BlobError> {
        self.result.map_err(|refused| refused.into_error(action))
    }
}

/// What one attempt came to.
enum Failure {
    Refused(Refused),
    Passing { detail: String, is_throttled: bool, retry_after: Option<Duration>, may_be_executed: bool },
}

/// Sends requests.
#[derive(Debug)]
pub(super) struct Calls {
    timer: Arc<dyn Timer>,
    entropy: Arc<Entropy>,
    limits: AzureLimits,
    permits: Semaphore,
}

impl Calls {
    pub(super) fn new(timer: Arc<dyn Timer>, entropy: Arc<Entropy>, limits: AzureLimits) -> Self {
        Self { timer, entropy, limits, permits: Semaphore::new(REQUESTS_MAX) }
    }

    /// Makes `attempt` until there is an answer, the attempts are used up or patience is.
    pub(super) async fn answer<T, F, A>(
        &self,
        request: Request,
        action: &str,
        attempt: F,
    ) -> Result<Answer<T>, BlobError>
    where
        F: Fn() -> A + Send + Sync,
        A: Future<Output = azure_core::Result<T>> + Send,
    {
        let mut last = None;
        let ended = {
            let tries = pin!(self.tries(request, action, &attempt, &mut last));
            match select(tries, self.timer.sleep(self.limits.patience)).await {
                Either::Left((ended, _)) => Some(ended),
                Either::Right(_) => None,
            }
        };
        ended.unwrap_or_else(|| Err(last.unwrap_or_else(|| timeout(action, self.limits.patience))))
    }

    async fn tries<T, F, A>(
        &self,
        request: Request,
        action: &str,
        attempt: &F,
        last: &mut Option<BlobError>,
    ) -> Result<Answer<T>, BlobError>
    where
        F: Fn() -> A + Send + Sync,
        A: Future<Output = azure_core::Result<T>> + Send,
    {
        let mut is_repeat = false;
        let mut wait = self.limits.wait_first;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (error, asked) = match self.once(attempt).await {
                Some(Ok(value)) => return Ok(Answer { result: Ok(value), is_repeat }),
                Some(Err(Failure::Refused(refused))) => {
                    return Ok(Answer { result: Err(refused), is_repeat });
                }
                Some(Err(Failure::Passing { detail, is_throttled, retry_after, may_be_executed })) => {
                    is_repeat |= may_be_executed;
                    tracing::debug!(
                        request = request.name(),
                        action,
                        attempts,
                        detail,
                        "a request to the blob store failed"
                    );
                    let error = if is_throttled {
                        BlobError::Throttled { action: action.to_owned(), retry_after }
                    } else {
                        unavailable(action, detail)
                    };
                    (error, retry_after)
                }
                None => {
                    is_repeat = true;
                    (timeout(action, self.limits.request), None)
                }
            };
            if attempts >= self.limits.attempts || asked > Some(self.limits.wait_max) {
                return Err(error);
            }
            *last = Some(error);
            self.timer.sleep(self.entropy.jittered(wait).max(asked.unwrap_or_default())).await;
            wait = wait.saturating_mul(2).min(self.limits.wait_max);
        }
    }

    /// `None`: it took too long.
    async fn once<T, F, A>(&self, attempt: &F) -> Option<Result<T, Failure>>
    where
        F: Fn() -> A + Send + Sync,
        A: Future<Output = azure_core::Result<T>> + Send,
    {
        let _permit = self.permits.acquire().await.ok()?;
        // The clients log what they send, keys and bodies included, and no filter of a binary's is to be what stands before that.
        let attempt = pin!(attempt().with_subscriber(Dispatch::none()));
        match select(attempt, self.timer.sleep(self.limits.request)).await {
            Either::Left((answer, _)) => Some(answer.map_err(|error| failure(&error))),
            Either::Right(_) => None,
        }
    }
}

fn failure(error: &azure_core::Error) -> Failure {
    let is_credential = *error.kind() == ErrorKind::Credential;
    let (detail, retry_after, is_throttled, may_be_executed) = match TransportError::within(error) {
        Some(TransportError::Refused { status, code, retry_after }) => {
            if !is_credential && !matches!(status, 408 | 429 | 500 | 502 | 503 | 504) {
                return Failure::Refused(Refused { status: *status, code: code.clone() });
            }
            let is_throttled = !is_credential && matches!(status, 429 | 503);
            (format!("it answered {status} {code}"), *retry_after, is_throttled, !is_throttled)
        }
        Some(TransportError::Unreached(detail)) => (detail.clone(), None, false, false),
        Some(TransportError::Broken(detail)) => (detail.clone(), None, false, true),
        // The error's own text may quote what was sent; the system's, about a token's file, does not.
        None => {
            (io_error_within(error).unwrap_or("it could not be understood".to_owned()), None, false, true)
        }
    };
    if is_credential {
        let detail = format!("no token for the storage account: {detail}");
        return Failure::Passing { detail, is_throttled: false, retry_after, may_be_executed: false };
    }
    Failure::Passing { detail, is_throttled, retry_after, may_be_executed }
}

fn io_error_within(error: &azure_core::Error) -> Option<String> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Some(error.to_string());
        }
        source = error.source();
    }
    None
}

pub(super) fn unavailable(action: &str, detail: impl Into<String>) -> BlobError {
    BlobError::Unavailable { action: action.to_owned(), detail: detail.into() }
}

fn timeout(action: &str, limit: Duration) -> BlobError {
    BlobError::Timeout { action: action.to_owned(), limit }
}
