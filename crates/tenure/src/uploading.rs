//! An upload: image, publish, and what came of it. One at a time per tenure, by the state.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use leasehold_snapshot::{ImageFile, Published, SnapshotError};
use leasehold_types::{Act, FencedReason};

use crate::{
    TenureError, TenureEvent,
    contained::contained,
    opening::scratch_dir,
    steps::{Cause, with_sources},
    tenure::{PublishedState, Tenure},
    vocabulary::{Event, UploadFailure},
};

/// A file that goes when it is let go of.
struct Scratch(std::path::PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "failed to remove a scratch file");
        }
    }
}

impl Tenure {
    /// Takes an image and publishes it. `last`: a handoff's, taken with the gate closed.
    pub(crate) async fn upload(self: Arc<Self>, last: bool) {
        let began = self.now();
        let limit = self.shared.options.upload_timeout;
        // A panic is a failed upload like any other: whoever waits for it is told, and what it had begun is read back by the next one, as
        // after one that took too long.
        let outcome = match self.within(limit, contained(self.publish(last))).await {
            Some(Some(outcome)) => outcome,
            Some(None) => Err(TenureError::TaskEnded { key: self.key.clone() }),
            None => Err(match self.epoch() {
                Some(epoch) => TenureError::UploadTimeout { key: self.key.clone(), epoch, limit },
                None => TenureError::TaskEnded { key: self.key.clone() },
            }),
        };
        let dirty = self.unpublished.upload_ended(self.now(), outcome.is_ok(), || {
            self.ledger().is_ok_and(|ledger| ledger.is_dirty())
        });
        match outcome {
            Ok(published) => {
                let state = PublishedState {
                    number: published.number,
                    position: published.position,
                    at: self.shared.backends.clock.wall(),
                };
                *self.published.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
                let took = self.now().since(began);
                self.failed_uploads.store(0, Ordering::Release);
                self.feed(
                    Event::UploadPublished { dirty },
                    &Cause { published: Some((published, took)), ..Cause::default() },
                );
                if !last {
                    Arc::clone(&self).sweep_after_publish().await;
                }
            }
            Err(error) => {
                self.failed_uploads.fetch_add(1, Ordering::AcqRel);
                let failure = match &error {
                    TenureError::Fenced { reason: FencedReason::Lapsed, .. } => UploadFailure::Lapsed,
                    TenureError::Fenced { reason, .. } => UploadFailure::Superseded(*reason),
                    _ => UploadFailure::Store,
                };
                self.feed(Event::UploadFailed { failure, dirty }, &error.into());
            }
        }
        self.wake.notify_one();
    }

    async fn publish(&self, closed: bool) -> Result<Published, TenureError> {
        // The pool is never closed.
        let _place = self.shared.uploads.acquire().await;
        let ledger = self.ledger()?;
        let epoch = self.epoch();
        let lease =
            self.gate.lease().cloned().ok_or_else(|| TenureError::TaskEnded { key: self.key.clone() })?;
        let attempt = self.shared.backends.entropy.attempt_id();
        let file = Scratch(scratch_dir(self.root.path()).join(format!("image-{attempt}.db")));
        let (taken_from, to) = (Arc::clone(&ledger), file.0.clone());
        self.unpublished.image_begins(self.now());
        let act = if closed { Act::HandoffImage } else { Act::PublishImage };
        let image = self
            .around(act, self.blocking(move || taken_from.take_image(&to)))
            .await?
            .map_err(|source| TenureError::ledger(&self.key, epoch, source))?;
        let plain = ImageFile {
            path: file.0.clone(),
            position: image.position,
            page_size: u32::try_from(image.page_size).unwrap_or(u32::MAX),
            pages: image.pages,
        };
        let held = || self.gate.proven();
        let mut own = self.own.lock().await;
        let outcome = leasehold_snapshot::publish(
            &self.shared.snapshots,
            &lease.claim(),
            &mut own,
            &plain,
            closed,
            &held,
        )
        .await;
        self.own_seen.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&own);
        let published = outcome.map_err(|source| TenureError::snapshot(&self.key, epoch, source))?;
        ledger.mark_published(&image);
        Ok(published)
    }

    /// Deletes what is dead, beside the opening and never in it (contract rows S1, S2).
    pub(crate) async fn sweep(self: Arc<Self>) {
        if self.sweep_failed.load(Ordering::Acquire) {
            return;
        }
        let newest = self.own.lock().await.newest().cloned();
        let Some(lease) = self.gate.lease().cloned() else { return };
        let swept =
            contained(leasehold_snapshot::sweep(&self.shared.snapshots, &lease.claim(), newest)).await;
        let (key, epoch) = (self.key.clone(), lease.epoch());
        match swept {
            Some(Ok(swept)) if swept.objects == 0 => {}
            Some(Ok(swept)) => {
                self.shared.tell(&TenureEvent::Swept {
                    key,
                    epoch,
                    objects: swept.objects,
                    bytes: swept.bytes,
                });
            }
            failed => {
                // Not tried again by this tenure: the next open sweeps.
                self.sweep_failed.store(true, Ordering::Release);
                self.shared.tell(&TenureEvent::SweepFailed { key, epoch, error: said_of(failed) });
            }
        }
    }

    /// After a publish: the first of a tenure makes its predecessors superseded, each further one its own last but some.
    async fn sweep_after_publish(self: Arc<Self>) {
        if !self.swept_superseded.swap(true, Ordering::AcqRel) {
            self.sweep().await;
            return;
        }
        let Some(lease) = self.gate.lease().cloned() else { return };
        let mut own = self.own.lock().await;
        let trimmed =
            contained(leasehold_snapshot::trim(&self.shared.snapshots, &lease.claim(), &mut own)).await;
        if !matches!(trimmed, Some(Ok(_))) {
            let (key, epoch) = (self.key.clone(), lease.epoch());
            self.shared.tell(&TenureEvent::SweepFailed { key, epoch, error: said_of(trimmed) });
        }
    }
}

/// What a sweep failed for.
fn said_of<T>(failed: Option<Result<T, SnapshotError>>) -> String {
    match failed {
        Some(Err(error)) => with_sources(&error),
        Some(Ok(_)) | None => "it panicked".to_owned(),
    }
}
