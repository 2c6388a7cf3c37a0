//! Single steps against the two stores: each with a time limit, repeated within bounds.

use std::{future::Future, time::Duration};

use leasehold_blob::{BlobError, Payload};
use leasehold_lease::{Claim, LeaseError};
use leasehold_types::Epoch;

use super::{act::Operation, context::SnapshotContext};
use crate::{
    Layout, Listing, SnapshotError,
    format::DOCUMENT_BYTES_MAX,
    plan::{Answer, Ask},
};

impl SnapshotContext {
    /// `call`, or nothing once `limit` has passed.
    async fn within<T>(&self, limit: Duration, call: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            answer = call => Some(answer),
            () = self.timer.sleep(limit) => None,
        }
    }

    /// Waits before the try after `tries` tries.
    async fn pause(&self, tries: u32, at_least: Option<Duration>) {
        let retry = &self.options.retry;
        let doubled = retry.wait_first.saturating_mul(1 << (tries - 1).min(16)).min(retry.wait_max);
        let asked = at_least.unwrap_or_default().min(self.options.call_limit);
        self.timer.sleep(self.entropy.jittered(doubled.max(asked))).await;
    }

    /// A call to the blob store that is safe to repeat: up to `tries` times, each within `limit`.
    pub(crate) async fn blob<T, F>(
        &self,
        action: &str,
        limit: Duration,
        tries: u32,
        call: impl Fn() -> F,
    ) -> Result<T, BlobError>
    where
        F: Future<Output = Result<T, BlobError>>,
    {
        let mut made = 0;
        loop {
            let answer = self
                .within(limit, call())
                .await
                .unwrap_or_else(|| Err(BlobError::Timeout { action: action.to_owned(), limit }));
            made += 1;
            match answer {
                Err(error) if error.is_transient() && made < tries => {
                    tracing::debug!(action, made, %error, "blob store call repeated");
                    let asked = match &error {
                        BlobError::Throttled { retry_after, .. } => *retry_after,
                        _ => None,
                    };
                    self.pause(made, asked).await;
                }
                answer => return answer,
            }
        }
    }

    /// A call to the lease store that is safe to repeat. The flag says whether an earlier one had no answer.
    pub(crate) async fn lease<T, F>(
        &self,
        action: &str,
        call: impl Fn() -> F,
    ) -> Result<(T, bool), LeaseError>
    where
        F: Future<Output = Result<T, LeaseError>>,
    {
        let limit = self.options.call_limit;
        let mut made = 0;
        loop {
            let answer = self
                .within(limit, call())
                .await
                .unwrap_or_else(|| Err(LeaseError::Timeout { action: action.to_owned(), limit }));
            made += 1;
            match answer {
                Err(error) if error.is_transient() && made < self.options.retry.tries => {
                    tracing::debug!(action, made, %error, "lease store call repeated");
                    self.pause(made, None).await;
                }
                answer => return answer.map(|answer| (answer, made > 1)),
            }
        }
    }

    /// `work`, which is the step `ask` of `operation`, between the points of that step.
    ///
    /// Readers for operators take no such way: they change nothing and acknowledge nothing.
    pub(super) async fn step<T>(
        &self,
        operation: Operation,
        layout: &Layout,
        ask: &Ask,
        work: impl Future<Output = T>,
    ) -> T {
        let act = operation.act(layout, ask);
        debug_assert!(act.is_some(), "{operation:?} has no name for {ask:?}: give it one in act.rs");
        match act {
            Some(act) => self.points.around(act, Some(layout.key()), work).await,
            None => work.await,
        }
    }

    /// Performs what every plan may ask; what only one plan asks, its own driver performs.
    ///
    /// A put is repeated as it is until it has an answer, or this errs and the plan is given up with its fate open.
    pub(crate) async fn perform(&self, layout: &Layout, ask: &Ask) -> Result<Answer, SnapshotError> {
        let (blobs, limit, tries) = (&self.blobs, self.options.call_limit, self.options.retry.tries);
        Ok(match ask {
            Ask::ReadFloors => {
                let prefix = layout.floors();
                let action = format!("list {prefix}");
                let entries = self.blob(&action, limit, tries, || blobs.list(prefix)).await?;
                Answer::Floors(layout.highest_floor(entries.iter().map(|entry| &entry.key)))
            }
            Ask::List => {
                let prefix = layout.tenant();
                let action = format!("list {prefix}");
                let entries = self.blob(&action, limit, tries, || blobs.list(prefix)).await?;
                Answer::Listed(Listing::new(layout, &entries))
            }
            Ask::Get(key) => {
                let action = format!("get {key}");
                let body = self.blob(&action, limit, tries, || blobs.get(key, DOCUMENT_BYTES_MAX)).await;
                Answer::Got(body.map_err(|error| match error {
                    BlobError::TooLarge { len, len_max, .. } => {
                        let detail = format!("it has {len} bytes, at most {len_max} are read");
                        SnapshotError::damaged(key, detail)
                    }
                    error => error.into(),
                })?)
            }
            Ask::Put { key, body } => {
                let action = format!("put {key}");
                let put = || blobs.put_if_absent(key, Payload::Bytes(body.clone()));
                Answer::Put(self.blob(&action, limit, tries, put).await?)
            }
            // A deletion is not repeated here: a sweep's must not be (contract row S2), and a forget lists again.
            Ask::DeleteEpoch(epoch) => {
                let prefix = layout.epoch(*epoch);
                let action = format!("delete {prefix}");
                Answer::Deleted(self.blob(&action, limit, 1, || blobs.delete_prefix(&prefix)).await?)
            }
            Ask::Delete(key) => {
                let action = format!("delete {key}");
                Answer::Deleted(u64::from(self.blob(&action, limit, 1, || blobs.delete(key)).await?))
            }
            Ask::ReadRow => {
                let row = self.within(limit, self.leases.read(layout.key())).await;
                Answer::Row(match row {
                    Some(Ok(row)) => Ok(row),
                    Some(Err(_)) | None => Err(()),
                })
            }
            Ask::Advance { claim, beyond } => Answer::Advanced(self.advance(claim, *beyond).await?),
            Ask::Upload(_) | Ask::Fetch(_) | Ask::Renew(_) | Ask::Held | Ask::RaiseFloor(_) => {
                let (plan, key, asked) = ("driver", layout.key().clone(), ask.name());
                return Err(SnapshotError::IllegalAnswer { plan, key, asked, answer: "nothing" });
            }
        })
    }

    /// Raises the row's epoch past `beyond`. An advance whose answer was lost is recognised in the row: its
    /// tenure id is ours alone.
    async fn advance(&self, claim: &Claim, beyond: Epoch) -> Result<Option<Epoch>, SnapshotError> {
        let call = || self.leases.advance_epoch(claim, beyond);
        let (answer, lost) = self.lease("advance an epoch", call).await?;
        if answer.is_some() || !lost {
            return Ok(answer);
        }
        let (row, _) = self.lease("read a row", || self.leases.read(&claim.key)).await?;
        Ok(row.and_then(|row| {
            let owner = row.owner.as_ref()?;
            let ours = owner.replica == claim.replica && owner.tenure == claim.tenure;
            (ours && row.epoch > beyond).then_some(row.epoch)
        }))
    }
}
