//! The way in: one request for what fits into a block, blocks and their list for what does not.

use std::path::Path;

use azure_core::{prelude::IfMatchCondition, request_options::Metadata};
use azure_storage_blobs::prelude::{BlobBlockType, BlobClient, BlockList};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use leasehold_types::AttemptId;
use tokio::{fs::File, io::AsyncReadExt as _};

use super::{
    calls::{Answer, Refused, unavailable},
    mark,
    request::Request,
    store::{AzureStore, PART_LEN, PARTS_MAX},
};
use crate::{BlobError, BlobKey, Payload, Put};

/// How often a create begins again because the object that it found was gone when it was looked at.
const RACES_MAX: u32 = 8;
/// The service's own bound.
const BLOCKS_MAX: usize = 50_000;

/// Whose object stands where we wanted to create ours.
enum Found {
    Ours,
    Theirs,
    Nothing,
}

impl AzureStore {
    pub(super) async fn put(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        let action = format!("put {key}");
        let blob = self.blob(key);
        let attempt = self.entropy().attempt_id();
        let (path, bytes) = match payload {
            Payload::Bytes(bytes) if bytes.len() <= PART_LEN => {
                return self.put_whole(&blob, &action, attempt, bytes).await;
            }
            Payload::Bytes(bytes) => (None, bytes),
            Payload::File(path) => (Some(path), Bytes::new()),
        };
        let Some(path) = path else {
            let mut rest = bytes;
            let parts = std::iter::from_fn(move || {
                let part = rest.split_to(rest.len().min(PART_LEN));
                (!part.is_empty()).then_some(Ok(part))
            });
            return self.put_in_blocks(&blob, &action, attempt, stream::iter(parts)).await;
        };
        let file = File::open(&path).await.map_err(|source| unread(&path, source))?;
        let permit = self.part_permit(&action).await?;
        let mut file = PartedFile { file, path };
        let first = file.next_part().await?;
        if first.len() < PART_LEN {
            return self.put_whole(&blob, &action, attempt, first).await;
        }
        drop(permit);
        let rest = stream::try_unfold(file, |mut file| async move {
            let part = file.next_part().await?;
            Ok((!part.is_empty()).then_some((part, file)))
        });
        let parts = stream::iter([Ok(first)]).chain(rest);
        self.put_in_blocks(&blob, &action, attempt, parts).await
    }

    async fn put_whole(
        &self,
        blob: &BlobClient,
        action: &str,
        attempt: AttemptId,
        bytes: Bytes,
    ) -> Result<Put, BlobError> {
        let is_empty = bytes.is_empty();
        let body = if is_empty { mark::EMPTY_BODY } else { bytes };
        let metadata = mark::of(attempt, is_empty);
        for _ in 0..RACES_MAX {
            let created = self
                .calls()
                .answer(Request::Put, action, || {
                    let request = blob.put_block_blob(body.clone());
                    let request = request.metadata(metadata.clone());
                    async move { request.if_match(absent()).await.map(drop) }
                })
                .await?;
            if let Some(put) = self.outcome(blob, action, attempt, created).await? {
                return Ok(put);
            }
        }
        Err(unavailable(action, "the object that is in the way is gone whenever it is looked at"))
    }

    async fn put_in_blocks(
        &self,
        blob: &BlobClient,
        action: &str,
        attempt: AttemptId,
        parts: impl stream::Stream<Item = Result<Bytes, BlobError>> + Send,
    ) -> Result<Put, BlobError> {
        // The ids hold the attempt: blocks of two writers of one name never pass for each other.
        let blocks: Vec<Bytes> = parts
            .enumerate()
            .map(|(number, part)| async move {
                let part = part?;
                if number >= BLOCKS_MAX {
                    return Err(unavailable(action, "it is too large for an object"));
                }
                let id = Bytes::from(format!("{attempt}-{number:05}"));
                let permit = self.part_permit(action).await?;
                let sent = self
                    .calls()
                    .answer(Request::PutBlock, action, || {
                        let request = blob.put_block(id.clone(), part.clone());
                        async move { request.await.map(drop) }
                    })
                    .await?;
                drop(permit);
                sent.required(action)?;
                Ok(id)
            })
            .buffered(PARTS_MAX)
            .try_collect()
            .await?;
        let list = BlockList { blocks: blocks.into_iter().map(BlobBlockType::new_uncommitted).collect() };
        let metadata: Metadata = mark::of(attempt, false);
        let committed = self
            .calls()
            .answer(Request::CommitBlocks, action, || {
                let request = blob.put_block_list(list.clone());
                let request = request.metadata(metadata.clone());
                async move { request.if_match(absent()).await.map(drop) }
            })
            .await?;
        let committed = self.outcome(blob, action, attempt, committed).await?;
        committed
            .ok_or_else(|| unavailable(action, "another put of the name took its blocks away and is gone"))
    }

    /// `None`: nothing stands there any more.
    async fn outcome(
        &self,
        blob: &BlobClient,
        action: &str,
        attempt: AttemptId,
        created: Answer<()>,
    ) -> Result<Option<Put>, BlobError> {
        match created.result {
            Ok(()) => Ok(Some(Put::Created)),
            Err(refused) if refused.is_taken() || is_without_blocks(&refused) => {
                Ok(match self.found(blob, action, attempt).await? {
                    Found::Ours => Some(Put::Created),
                    Found::Theirs => Some(Put::Exists),
                    Found::Nothing => None,
                })
            }
            Err(refused) => Err(refused.into_error(action)),
        }
    }

    /// An answer that was lost, and asked for again, makes our own object look like somebody else's: its mark tells.
    async fn found(&self, blob: &BlobClient, action: &str, attempt: AttemptId) -> Result<Found, BlobError> {
        let seen = self
            .calls()
            .answer(Request::Look, action, || {
                let request = blob.get_properties();
                async move { request.await.map(|answer| answer.blob.metadata) }
            })
            .await?;
        match seen.result {
            Ok(metadata) if mark::is_of(metadata.as_ref(), attempt) => Ok(Found::Ours),
            Ok(_) => Ok(Found::Theirs),
            Err(refused) if refused.is_absent() => Ok(Found::Nothing),
            Err(refused) => Err(refused.into_error(action)),
        }
    }
}

/// A commit by somebody else drops the blocks that were not in it.
fn is_without_blocks(refused: &Refused) -> bool {
    refused.status == 400 && refused.code == "InvalidBlockList"
}

fn absent() -> IfMatchCondition {
    IfMatchCondition::NotMatch("*".to_owned())
}

/// A local file, a part at a time.
struct PartedFile {
    file: File,
    path: std::path::PathBuf,
}

impl PartedFile {
    /// The next [`PART_LEN`] bytes, or what there is; nothing at the end.
    async fn next_part(&mut self) -> Result<Bytes, BlobError> {
        let mut part = BytesMut::with_capacity(PART_LEN);
        while part.len() < PART_LEN {
            let left = PART_LEN - part.len();
            let mut limited = (&mut self.file).take(left as u64);
            let read = limited.read_buf(&mut part).await.map_err(|source| unread(&self.path, source))?;
            if read == 0 {
                break;
            }
        }
        Ok(part.freeze())
    }
}

fn unread(path: &Path, source: std::io::Error) -> BlobError {
    BlobError::Local { action: "read", path: path.to_owned(), source }
}
