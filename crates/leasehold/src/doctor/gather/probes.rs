//! Probes: small objects under a prefix that no tenant can have, since no organization's name begins with `_`.

use bytes::Bytes;
use leasehold_blob::{BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};
use leasehold_types::Entropy;

use super::asking::Asking;
use crate::doctor::{fact::Fact, facts::Probed};

/// Puts of one name at the same time.
const AT_ONCE: usize = 4;
/// A probe's length in bytes, and the most that is read of one.
pub(super) const PROBE_LEN: u64 = 16;

const FIRST: Bytes = Bytes::from_static(b"leasehold doctor");
const SECOND: Bytes = Bytes::from_static(b"a second doctor!");

/// Where one run's probes are.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    pub(super) prefix: BlobPrefix,
    /// The one that is put, put again, read, listed and deleted.
    pub(super) one: BlobKey,
    /// The one that several put at the same time.
    raced: BlobKey,
}

impl Probes {
    /// Names of this run's own.
    pub(super) fn new(entropy: &Entropy) -> Result<Self, BlobError> {
        let prefix: BlobPrefix = format!("_doctor/{}/", entropy.attempt_id()).parse()?;
        Ok(Self { one: prefix.key("one")?, raced: prefix.key("raced")?, prefix })
    }

    /// Puts, reads, lists and deletes. Whatever comes of it, [`clean`](Self::clean) is to be called afterwards.
    pub(super) async fn probe(&self, asking: &Asking, store: &dyn BlobStore) -> Probed {
        let puts = asking.fact("put twice", async {
            let first = store.put_if_absent(&self.one, FIRST.into()).await?;
            Ok::<_, BlobError>((first, store.put_if_absent(&self.one, SECOND.into()).await?))
        });
        let puts = puts.await;
        let put = || store.put_if_absent(&self.raced, Payload::Bytes(FIRST));
        let created_at_once = asking.fact("put several times at once", async {
            let puts = tokio::join!(put(), put(), put(), put());
            let puts: [Put; AT_ONCE] = [puts.0?, puts.1?, puts.2?, puts.3?];
            Ok::<_, BlobError>(puts.iter().filter(|put| **put == Put::Created).count())
        });
        let created_at_once = created_at_once.await;
        if puts.known().is_none() {
            let because = "nothing could be put";
            return Probed { puts, created_at_once, ..Probed::unasked(self.prefix.as_str(), because) };
        }
        let read = asking.fact("read what was put", store.get(&self.one, PROBE_LEN)).await;
        let listed = asking.fact("list what was put", store.list(&self.prefix)).await;
        let deletes = asking.fact("delete what was put", store.delete(&self.one)).await;
        let is_gone = if deletes.known().is_some() {
            asking
                .fact("look for what was deleted", async {
                    let read = store.get(&self.one, PROBE_LEN).await?;
                    let listed = store.list(&self.prefix).await?;
                    Ok::<_, BlobError>(read.is_none() && listed.iter().all(|entry| entry.key != self.one))
                })
                .await
        } else {
            Fact::Unasked("nothing could be deleted".into())
        };
        Probed {
            prefix: self.prefix.to_string(),
            puts,
            created_at_once,
            reads_first: read.map(|body| body.is_some_and(|body| body == FIRST)),
            lists: listed
                .map(|entries| entries.iter().any(|entry| entry.key == self.one && entry.len == PROBE_LEN)),
            deletes,
            is_gone,
            cleaned: Fact::Unasked("it was not tried".into()),
        }
    }

    /// Removes what is left, and says how much that was.
    pub(super) async fn clean(&self, asking: &Asking, store: &dyn BlobStore) -> Fact<u64> {
        asking
            .fact("remove the probes", async {
                let removed = store.delete_prefix(&self.prefix).await?;
                match store.list(&self.prefix).await?.len() {
                    0 => Ok(removed),
                    left => Err(BlobError::Unavailable {
                        action: format!("remove {left} probes under {}", self.prefix),
                        detail: "they are still there".into(),
                    }),
                }
            })
            .await
    }
}
