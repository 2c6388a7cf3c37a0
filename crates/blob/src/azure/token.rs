//! A token that is fetched again before it ends, by one caller for all.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use azure_core::{
    Error,
    auth::{AccessToken, Secret, TokenCredential},
    error::ErrorKind,
};
use leasehold_types::{Clock, Moment};
use time::OffsetDateTime;
use tokio::sync::Mutex;

/// A token is fetched again when it has no more than this left.
const LEFT_MIN: Duration = Duration::from_secs(5 * 60);

/// A token as it was granted.
pub(super) struct Grant {
    pub(super) token: Secret,
    /// From when it was asked for.
    pub(super) lives: Duration,
}

/// Where tokens come from.
#[async_trait]
pub(super) trait TokenSource: fmt::Debug + Send + Sync {
    /// A new token for the storage service.
    async fn fetch(&self) -> azure_core::Result<Grant>;
}

#[derive(Clone)]
struct Kept {
    token: Secret,
    ends: Moment,
    /// The calendar's reading of the same, which the client wants and does not use.
    expires_on: OffsetDateTime,
}

/// Keeps the token of a source.
pub(super) struct Tokens<S> {
    source: S,
    clock: Arc<dyn Clock>,
    /// Held while a token is fetched, so that one request is made for all who wait.
    kept: Mutex<Option<Kept>>,
}

impl<S> Tokens<S> {
    pub(super) fn new(source: S, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock, kept: Mutex::new(None) }
    }
}

impl<S: TokenSource> Tokens<S> {
    async fn fetched(&self) -> azure_core::Result<Kept> {
        let (now, wall) = (self.clock.now(), self.clock.wall());
        let grant = self.source.fetch().await?;
        let expires_on = OffsetDateTime::from_unix_timestamp(wall.plus(grant.lives).as_millis() / 1_000)
            .map_err(|_| Error::message(ErrorKind::Credential, "a token that ends beyond the calendar"))?;
        Ok(Kept { token: grant.token, ends: now.plus(grant.lives), expires_on })
    }
}

#[async_trait]
impl<S: TokenSource> TokenCredential for Tokens<S> {
    async fn get_token(&self, _scopes: &[&str]) -> azure_core::Result<AccessToken> {
        let mut kept = self.kept.lock().await;
        let left = kept.as_ref().map_or(Duration::ZERO, |kept| kept.ends.since(self.clock.now()));
        if left <= LEFT_MIN {
            match self.fetched().await {
                Ok(fetched) => *kept = Some(fetched),
                // It still serves: the next call tries again.
                Err(_) if left > Duration::ZERO => {}
                Err(error) => return Err(error),
            }
        }
        let kept = kept.as_ref().ok_or_else(|| Error::message(ErrorKind::Credential, "no token"))?;
        Ok(AccessToken::new(kept.token.clone(), kept.expires_on))
    }

    async fn clear_cache(&self) -> azure_core::Result<()> {
        *self.kept.lock().await = None;
        Ok(())
    }
}

impl<S: fmt::Debug> fmt::Debug for Tokens<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("source", &self.source).finish_non_exhaustive()
    }
}
