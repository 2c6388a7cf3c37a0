//! A publish, performed.

use std::path::{Path, PathBuf};

use leasehold_blob::Payload;
use leasehold_lease::Claim;
use leasehold_types::{Act, FencedReason, Position};

use super::{
    act::Operation,
    context::SnapshotContext,
    encode::{EncodedFile, encode},
    scratch::Scratch,
};
use crate::{
    Layout, OwnManifests, SnapshotError, SnapshotNumber,
    format::{Encoding, INLINE_BYTES_MAX},
    plan::{Answer, Ask, Draft, EncodedImage, PublishPlan, Step},
};

/// A whole database in a plain file that does not change: what a ledger's `take_image` leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// The file. It is encoded into a scratch file in the same directory, and stays the caller's to remove.
    pub path: PathBuf,
    /// The last event in it.
    pub position: Position,
    /// Bytes per page.
    pub page_size: u32,
    /// Pages.
    pub pages: u64,
}

/// A snapshot that counts: its manifest is in the store and the lease was held after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its number in the tenure's epoch.
    pub number: SnapshotNumber,
    /// The last event in it.
    pub position: Position,
    /// The bytes of the image as it was uploaded.
    pub bytes_uploaded: u64,
}

/// Publishes `image` (protocol.md, "Publish"): image, manifest, the row, the deadline; only then is it published.
///
/// `held` answers whether the lease is provably held at that moment. A passed deadline is
/// [`SnapshotError::Fenced`] although the manifest is in (contract row H3). Nothing is renewed here. An error
/// of the store leaves open whether the manifest is in: the number is kept in `own` and its fate is found out
/// by the next publish. One publish at a time per tenure; how many tenures upload at a time is the caller's to
/// bound.
pub async fn publish(
    ctx: &SnapshotContext,
    claim: &Claim,
    own: &mut OwnManifests,
    image: &ImageFile,
    closed: bool,
    held: &(dyn Fn() -> Result<(), FencedReason> + Send + Sync),
) -> Result<Published, SnapshotError> {
    let layout = Layout::new(&claim.key);
    let attempt = ctx.entropy.attempt_id();
    let (operation, encoding) = if closed {
        (Operation::Handoff, Act::HandoffEncode)
    } else {
        (Operation::Publish, Act::PublishEncode)
    };
    let encode = encode_beside(ctx, image, Scratch::beside(&image.path, attempt));
    let encoded = ctx.points.around(encoding, Some(&claim.key), encode).await?;
    let bytes_uploaded = encoded.bytes;
    let inline = if encoded.bytes <= ctx.options.inline_bytes_max.min(INLINE_BYTES_MAX) {
        let path = encoded.file.path();
        Some(tokio::fs::read(path).await.map_err(SnapshotError::local("read", path))?.into())
    } else {
        None
    };
    let draft = Draft {
        attempt,
        image: EncodedImage {
            inline,
            bytes: encoded.bytes,
            sha256: encoded.sha256,
            encoding: Encoding::Zstd,
        },
        closed,
        page_size: image.page_size,
        pages: image.pages,
        position: image.position,
        at: ctx.clock.wall(),
    };
    let mut plan = PublishPlan::new(claim.clone(), own.clone(), draft);
    loop {
        let ask = match plan.next() {
            Step::Ask(ask) => ask,
            Step::Done(number) => {
                return Ok(Published { number, position: image.position, bytes_uploaded });
            }
        };
        let work = async {
            Ok::<_, SnapshotError>(match &ask {
                Ask::Upload(key) => {
                    let (limit, tries) = (ctx.options.transfer_limit, ctx.options.retry.tries);
                    let file = encoded.file.path();
                    let put = || ctx.blobs.put_if_absent(key, Payload::File(file.to_path_buf()));
                    Answer::Put(ctx.blob(&format!("put {key}"), limit, tries, put).await?)
                }
                Ask::Held => Answer::Held(held()),
                ask => ctx.perform(&layout, ask).await?,
            })
        };
        let answer = ctx.step(operation, &layout, &ask, work).await?;
        let fed = plan.feed(answer);
        // Kept as it is learned: what is ours stays ours however this publish ends, also when it is dropped.
        own.clone_from(plan.own());
        fed?;
    }
}

async fn encode_beside(
    ctx: &SnapshotContext,
    image: &ImageFile,
    to: Scratch,
) -> Result<EncodedFile, SnapshotError> {
    let len = image.pages.saturating_mul(u64::from(image.page_size));
    let (path, level) = (image.path.clone(), ctx.options.zstd_level);
    let lost = |path: &Path| SnapshotError::local("encode", path);
    tokio::task::spawn_blocking(move || encode(&path, len, to, level))
        .await
        .map_err(|error| lost(&image.path)(std::io::Error::other(error)))?
}
