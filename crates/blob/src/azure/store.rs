//! [`AzureStore`].

use std::{fmt, num::NonZeroU32, path::Path, sync::Arc};

use async_trait::async_trait;
use azure_core::prelude::{MaxResults, NextMarker};
use azure_storage_blobs::prelude::{BlobClient, ContainerClient};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use leasehold_types::Entropy;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    calls::{Calls, unavailable},
    connection, mark,
    options::AzureOptions,
    request::Request,
};
use crate::{BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};

/// The length of a block on the way in and of a range on the way out, in bytes.
pub(super) const PART_LEN: usize = 8 * 1024 * 1024;
/// Parts of one transfer in flight.
pub(super) const PARTS_MAX: usize = 4;
/// Parts of all transfers in flight: what bounds the memory of a store.
const PARTS_OF_ALL_MAX: usize = 16;
const PAGE: NonZeroU32 = NonZeroU32::new(5_000).expect("not zero");
const DELETES_MAX: usize = 16;

/// Objects as block blobs of one container, shared by whoever has credentials for it.
///
/// - An object's name is the key, behind the prefix if there is one. An object that is empty is stored as one byte and a mark, since the
///   client cannot read a blob without bytes.
/// - Each object's metadata holds the id of the put that created it; that is how a create whose answer was lost is known again.
/// - A delete whose answer was lost and that finds nothing when it is repeated answers that there was one.
/// - Names beside and below an object are free: `a` and `a/b` may both be there.
/// - Nothing that a client underneath logs is heard, at any level: it would show keys, tokens and bodies.
///
/// Handles are cheap to clone.
#[derive(Clone)]
pub struct AzureStore(Arc<Shared>);

struct Shared {
    container: ContainerClient,
    /// For people.
    endpoint: String,
    prefix: Option<BlobPrefix>,
    calls: Calls,
    entropy: Arc<Entropy>,
    parts: Semaphore,
}

impl AzureStore {
    /// A store by `options`. Nothing is asked of the service yet; what cannot be used is [`BlobError::Settings`].
    pub fn connect(options: AzureOptions) -> Result<Self, BlobError> {
        let (container, endpoint) = connection::open(&options)?;
        let AzureOptions { prefix, limits, timer, entropy, .. } = options;
        let calls = Calls::new(timer, Arc::clone(&entropy), limits);
        let parts = Semaphore::new(PARTS_OF_ALL_MAX);
        Ok(Self(Arc::new(Shared { container, endpoint, prefix, calls, entropy, parts })))
    }

    /// The container's address, for people.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}/{}", self.0.endpoint, self.0.container.container_name())
    }

    /// Creates the container unless it is there. `false`: it was. For first steps and test suites; the roles that a deployment needs do
    /// not cover it.
    pub async fn create_container(&self) -> Result<bool, BlobError> {
        let action = format!("create the container {}", self.0.container.container_name());
        let created = self
            .calls()
            .answer(Request::CreateContainer, &action, || {
                let request = self.0.container.create();
                async move { request.await.map(drop) }
            })
            .await?;
        match created.result {
            Ok(()) => Ok(true),
            Err(refused) if refused.status == 409 && refused.code == "ContainerAlreadyExists" => {
                Ok(created.is_repeat)
            }
            Err(refused) => Err(refused.into_error(&action)),
        }
    }

    pub(super) fn container(&self) -> &ContainerClient {
        &self.0.container
    }

    /// For people, and never with a secret in it.
    pub(super) fn endpoint(&self) -> &str {
        &self.0.endpoint
    }

    /// The name of every request that a store may make of the service: for whoever looks for them in its own log.
    #[must_use]
    pub fn requests() -> &'static [&'static str] {
        Request::NAMES
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.0.calls
    }

    pub(super) fn entropy(&self) -> &Entropy {
        &self.0.entropy
    }

    pub(super) fn blob(&self, key: &BlobKey) -> BlobClient {
        self.0.container.blob_client(self.name(key.as_str()))
    }

    /// Held by whoever has a part in memory.
    pub(super) async fn part_permit(&self, action: &str) -> Result<SemaphorePermit<'_>, BlobError> {
        self.0.parts.acquire().await.map_err(|_| unavailable(action, "the store is closed"))
    }

    /// What the service calls it.
    pub(super) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.before())
    }

    fn before(&self) -> &str {
        self.0.prefix.as_ref().map_or("", BlobPrefix::as_str)
    }

    async fn entries(&self, prefix: &BlobPrefix, action: &str) -> Result<Vec<BlobEntry>, BlobError> {
        let prefix = self.name(prefix.as_str());
        let mut entries = Vec::new();
        let mut marker: Option<NextMarker> = None;
        loop {
            let page = self
                .calls()
                .answer(Request::List, action, || {
                    let mut request = self.0.container.list_blobs();
                    request = request.prefix(prefix.clone()).max_results(MaxResults::new(PAGE));
                    request = request.include_metadata(true);
                    if let Some(marker) = &marker {
                        request = request.marker(marker.clone());
                    }
                    let mut pages = request.into_stream();
                    async move { pages.next().await.ok_or_else(no_page)? }
                })
                .await?
                .required(action)?;
            for blob in page.blobs.blobs() {
                let metadata = blob.metadata.as_ref();
                // What has no key of ours is not ours.
                let key = blob.name.strip_prefix(self.before()).and_then(|name| name.parse().ok());
                if let Some(key) = key.filter(|_| !mark::is_directory(metadata)) {
                    let len = if mark::is_empty(metadata) { 0 } else { blob.properties.content_length };
                    entries.push(BlobEntry { key, len });
                }
            }
            if page.next_marker.is_none() {
                break;
            }
            if page.next_marker == marker {
                return Err(unavailable(action, "a listing that does not go on"));
            }
            marker = page.next_marker;
        }
        entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(entries)
    }

    async fn remove(&self, key: &BlobKey, action: &str) -> Result<bool, BlobError> {
        let blob = self.blob(key);
        let deleted = self
            .calls()
            .answer(Request::Delete, action, || {
                let request = blob.delete();
                async move { request.await.map(drop) }
            })
            .await?;
        match deleted.result {
            Ok(()) => Ok(true),
            Err(refused) if refused.is_absent() => Ok(deleted.is_repeat),
            Err(refused) => Err(refused.into_error(action)),
        }
    }
}

pub(super) fn no_page() -> azure_core::Error {
    azure_core::Error::message(azure_core::error::ErrorKind::Other, "no page was answered")
}

#[async_trait]
impl BlobStore for AzureStore {
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        self.put(key, payload).await
    }

    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        self.read(key, len_max).await
    }

    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        self.read_to(key, to).await
    }

    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError> {
        self.entries(prefix, &format!("list {prefix}")).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError> {
        self.remove(key, &format!("delete {key}")).await
    }

    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError> {
        let action = format!("delete {prefix}");
        let entries = self.entries(prefix, &action).await?;
        stream::iter(entries)
            .map(|entry| {
                let action = &action;
                async move { self.remove(&entry.key, action).await }
            })
            .buffer_unordered(DELETES_MAX)
            .try_fold(0, |count, was_there| async move { Ok(count + u64::from(was_there)) })
            .await
    }
}

impl fmt::Debug for AzureStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureStore")
            .field("endpoint", &self.0.endpoint)
            .field("container", &self.0.container.container_name())
            .field("prefix", &self.0.prefix)
            .finish_non_exhaustive()
    }
}
