//! The way out: ranges of one version of the object, each asked for again where it broke off.

use std::path::{Path, PathBuf};

use azure_core::prelude::{IfMatchCondition, Range};
use azure_storage_blobs::prelude::BlobClient;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::{fs::File, io::AsyncWriteExt as _};

use super::{
    calls::{Refused, unavailable},
    mark,
    request::Request,
    store::{AzureStore, PART_LEN, PARTS_MAX},
};
use crate::{BlobError, BlobKey};

/// How often a read begins again because the object was deleted and put anew under its hands.
const RACES_MAX: u32 = 4;
const PART: u64 = PART_LEN as u64;

/// An object whose first range was read.
struct Opened {
    len: u64,
    first: Bytes,
    /// Which version it is.
    etag: String,
}

/// The answer to a first range.
struct Beginning {
    /// Not read where the range alone is more than the caller takes.
    first: Option<Bytes>,
    range_len: u64,
    is_whole: bool,
    is_empty: bool,
    etag: String,
}

enum ReadError {
    Changed,
    Failed(BlobError),
}

impl From<BlobError> for ReadError {
    fn from(error: BlobError) -> Self {
        Self::Failed(error)
    }
}

impl AzureStore {
    pub(super) async fn read(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        let action = format!("get {key}");
        let blob = self.blob(key);
        for _ in 0..RACES_MAX {
            let read = async {
                let Some(opened) = self.begin(&blob, &action, key, len_max).await? else { return Ok(None) };
                let mut body = BytesMut::from(opened.first);
                let rest = self.rest(&blob, &action, opened.len, &opened.etag);
                let mut rest = std::pin::pin!(rest);
                while let Some((part, _)) = rest.try_next().await? {
                    body.extend_from_slice(&part);
                }
                Ok(Some(body.freeze()))
            };
            match read.await {
                Err(ReadError::Changed) => {}
                Err(ReadError::Failed(error)) => return Err(error),
                Ok(body) => return Ok(body),
            }
        }
        Err(unavailable(&action, "the object changes whenever it is read"))
    }

    pub(super) async fn read_to(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        let action = format!("download {key}");
        let blob = self.blob(key);
        for _ in 0..RACES_MAX {
            let read = async {
                let Some(opened) = self.begin(&blob, &action, key, u64::MAX).await? else { return Ok(None) };
                let mut file = NewFile::create(to)?;
                file.write(&opened.first).await?;
                let rest = self.rest(&blob, &action, opened.len, &opened.etag);
                let mut rest = std::pin::pin!(rest);
                while let Some((part, permit)) = rest.try_next().await? {
                    file.write(&part).await?;
                    drop(permit);
                }
                file.keep().await?;
                Ok(Some(opened.len))
            };
            match read.await {
                Err(ReadError::Changed) => {}
                Err(ReadError::Failed(error)) => return Err(error),
                Ok(len) => return Ok(len),
            }
        }
        Err(unavailable(&action, "the object changes whenever it is read"))
    }

    async fn begin(
        &self,
        blob: &BlobClient,
        action: &str,
        key: &BlobKey,
        len_max: u64,
    ) -> Result<Option<Opened>, ReadError> {
        let answer = self
            .calls()
            .answer(Request::Begin, action, || {
                let mut ranges = blob.get().range(Range::from(0_u64..)).chunk_size(PART).into_stream();
                async move {
                    let answer = ranges.next().await.ok_or_else(no_range)??;
                    let properties = &answer.blob.properties;
                    let mut beginning = Beginning {
                        first: None,
                        range_len: properties.content_length,
                        is_whole: answer.remaining_range.is_none(),
                        is_empty: mark::is_empty(answer.blob.metadata.as_ref()),
                        etag: properties.etag.to_string(),
                    };
                    if beginning.range_len <= len_max || beginning.is_empty {
                        beginning.first = Some(collected(answer.data, beginning.range_len).await?);
                    }
                    Ok(beginning)
                }
            })
            .await?;
        let beginning = match answer.result {
            Ok(beginning) => beginning,
            Err(refused) if refused.is_absent() => return Ok(None),
            // A blob without bytes, which somebody else put.
            Err(Refused { status: 416, .. }) => {
                return Ok(Some(Opened { len: 0, first: Bytes::new(), etag: String::new() }));
            }
            Err(refused) => return Err(refused.into_error(action).into()),
        };
        let Beginning { first, range_len, is_whole, is_empty, etag } = beginning;
        if is_empty {
            return Ok(Some(Opened { len: 0, first: Bytes::new(), etag }));
        }
        let len = if is_whole { range_len } else { self.len_of(blob, action, &etag).await? };
        match first {
            Some(first) if len <= len_max => Ok(Some(Opened { len, first, etag })),
            _ => Err(BlobError::TooLarge { key: key.to_string(), len, len_max }.into()),
        }
    }

    /// The client does not tell the length behind a range.
    async fn len_of(&self, blob: &BlobClient, action: &str, etag: &str) -> Result<u64, ReadError> {
        let answer = self
            .calls()
            .answer(Request::Measure, action, || {
                let request = blob.get_properties().if_match(same(etag));
                async move { request.await.map(|answer| answer.blob.properties.content_length) }
            })
            .await?;
        answer.result.map_err(|refused| changed(refused, action))
    }

    /// What follows the first range, in order, some of it ahead of its turn.
    fn rest<'a>(
        &'a self,
        blob: &'a BlobClient,
        action: &'a str,
        len: u64,
        etag: &'a str,
    ) -> impl stream::Stream<Item = Result<(Bytes, tokio::sync::SemaphorePermit<'a>), ReadError>> + Send + 'a
    {
        let starts = std::iter::successors(Some(PART), |start| start.checked_add(PART));
        stream::iter(starts.take_while(move |start| *start < len))
            .map(move |start| async move {
                let permit = self.part_permit(action).await?;
                let range = start..len.min(start + PART);
                let answer = self
                    .calls()
                    .answer(Request::Continue, action, || {
                        let request = blob.get().range(Range::from(range.clone())).chunk_size(PART);
                        let mut ranges = request.if_match(same(etag)).into_stream();
                        let range_len = range.end - range.start;
                        async move {
                            let answer = ranges.next().await.ok_or_else(no_range)??;
                            collected(answer.data, range_len).await
                        }
                    })
                    .await?;
                answer.result.map(|part| (part, permit)).map_err(|refused| changed(refused, action))
            })
            .buffered(PARTS_MAX)
    }
}

fn changed(refused: Refused, action: &str) -> ReadError {
    if refused.is_changed() || refused.is_absent() {
        ReadError::Changed
    } else {
        refused.into_error(action).into()
    }
}

fn same(etag: &str) -> IfMatchCondition {
    IfMatchCondition::Match(etag.to_owned())
}

fn no_range() -> azure_core::Error {
    azure_core::Error::message(azure_core::error::ErrorKind::Other, "no range was answered")
}

/// A body that is as long as was announced: shorter is broken off, longer is not ours.
async fn collected(mut body: azure_core::ResponseBody, len: u64) -> azure_core::Result<Bytes> {
    let wrong = || azure_core::Error::message(azure_core::error::ErrorKind::Io, "a body of another length");
    let len = usize::try_from(len).ok().filter(|len| *len <= PART_LEN).ok_or_else(wrong)?;
    let mut bytes = BytesMut::with_capacity(len);
    while let Some(chunk) = body.try_next().await? {
        if bytes.len() + chunk.len() > len {
            return Err(wrong());
        }
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() == len { Ok(bytes.freeze()) } else { Err(wrong()) }
}

/// A file that goes again unless it is kept.
struct NewFile {
    path: PathBuf,
    file: File,
    is_kept: bool,
}

impl NewFile {
    // Opened and guarded without a wait between the two, so that no drop leaves a file. It is one system call.
    fn create(path: &Path) -> Result<Self, BlobError> {
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|source| unwritten(path, source))?;
        Ok(Self { path: path.to_owned(), file: File::from_std(file), is_kept: false })
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.file.write_all(bytes).await.map_err(|source| unwritten(&self.path, source))
    }

    async fn keep(mut self) -> Result<(), BlobError> {
        self.file.flush().await.map_err(|source| unwritten(&self.path, source))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "half a download stays");
        }
    }
}

fn unwritten(path: &Path, source: std::io::Error) -> BlobError {
    BlobError::Local { action: "write", path: path.to_owned(), source }
}
