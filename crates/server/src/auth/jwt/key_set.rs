//! An issuer's keys, as they were read last.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use leasehold_types::{Entropy, Timer};
use tokio::sync::Notify;

use super::{
    key::Key,
    source::{Source, SourceError},
};

/// How often a file is read anew.
const FILE_EVERY: Duration = Duration::from_secs(5);
/// How often keys are fetched anew.
const URL_EVERY: Duration = Duration::from_secs(300);
/// The least time between two fetches, whoever asks for one: a token that names a key which nobody has costs one fetch in this time at the most.
const PAUSE: Duration = Duration::from_secs(10);

/// Keys that are kept fresh by [`KeySet::keep`], or are what they are.
#[derive(Debug)]
pub(super) struct KeySet {
    source: Option<Source>,
    keys: RwLock<Arc<Vec<Key>>>,
    /// Told when a token names a key that is not there.
    missed: Notify,
}

impl KeySet {
    /// One key that never changes.
    pub(super) fn fixed(key: Key) -> Self {
        Self { source: None, keys: RwLock::new(Arc::new(vec![key])), missed: Notify::new() }
    }

    /// The keys of a source, read for the first time. A file has to be right; an address that does not answer is asked again later, since
    /// nothing but its own people wait for it.
    pub(super) async fn of(source: Source, timer: &dyn Timer) -> Result<Self, SourceError> {
        let keys = match (source.read(timer).await, &source) {
            (Ok(keys), _) => keys,
            (Err(error), Source::File(_)) => return Err(error),
            (Err(error), Source::Url(url, _)) => {
                tracing::warn!(%url, %error, "no keys could be fetched: until they are, nobody is known by a token of this issuer");
                Vec::new()
            }
        };
        Ok(Self { source: Some(source), keys: RwLock::new(Arc::new(keys)), missed: Notify::new() })
    }

    /// The keys.
    pub(super) fn now(&self) -> Arc<Vec<Key>> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A token named a key that is not there: there may be one by now.
    pub(super) fn miss(&self) {
        self.missed.notify_one();
    }

    /// Reads the source once more. What cannot be read leaves the last good keys where they are.
    pub(super) async fn refresh(&self, timer: &dyn Timer) {
        let Some(source) = &self.source else { return };
        match source.read(timer).await {
            Ok(keys) => *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys),
            Err(error) => {
                tracing::warn!(?source, %error, "no keys could be read: those of the last time count");
            }
        }
    }

    /// Keeps the keys fresh until it is dropped.
    pub(super) async fn keep(&self, timer: &dyn Timer, entropy: &Entropy) {
        let every = match &self.source {
            None => return std::future::pending().await,
            Some(Source::File(_)) => FILE_EVERY,
            Some(Source::Url(..)) => URL_EVERY,
        };
        loop {
            let is_short = every <= PAUSE;
            timer.sleep(entropy.jittered(every.min(PAUSE))).await;
            if !is_short && !self.now().is_empty() {
                tokio::select! {
                    () = self.missed.notified() => {}
                    () = timer.sleep(entropy.jittered(every.saturating_sub(PAUSE))) => {}
                }
            }
            self.refresh(timer).await;
        }
    }
}
