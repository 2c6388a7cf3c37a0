//! A look at the container for who has to decide whether it can be used.

use azure_storage_blobs::{container::operations::ListBlobsResponse, prelude::PublicAccess};
use futures::StreamExt as _;

use super::{
    calls::{Answer, Refused},
    connection,
    request::Request,
    store::{AzureStore, no_page},
};
use crate::{BlobError, BlobKey, BlobPrefix};

/// What came of asking for a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerReach {
    /// It is there and we are let in.
    Open,
    /// There is no container of this name in the account.
    Missing,
    /// The service said no, with this status and code.
    Refused {
        /// The status.
        status: u16,
        /// The service's code, such as `AuthorizationPermissionMismatch`.
        code: String,
    },
}

/// What a container is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerSettings {
    /// Whether anybody reads its objects without asking whose they are.
    pub is_public: bool,
    /// Whether a policy or a legal hold keeps objects from being deleted.
    pub is_held: bool,
}

/// What a service keeps of an object that was deleted. Any of it makes a forget no erasure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a feature of the service's, and any of them may be on"
)]
pub struct KeptDeleted {
    /// The object itself, by soft delete.
    pub soft_deleted: bool,
    /// Versions of it.
    pub versions: bool,
    /// Snapshots of it.
    pub snapshots: bool,
    /// Something of its name that is none of these.
    pub other: bool,
}

impl KeptDeleted {
    /// Whether nothing is kept.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl AzureStore {
    /// Asks for what lies under `prefix`, and says what came of it as the service said it. An error: it did not answer.
    pub async fn reach(&self, prefix: &BlobPrefix) -> Result<ContainerReach, BlobError> {
        let answer = self.page_under(Request::Reach, prefix.as_str(), "reach the container").await?;
        Ok(match answer.result {
            Ok(_) => ContainerReach::Open,
            Err(Refused { status: 404, code }) if code == "ContainerNotFound" => ContainerReach::Missing,
            Err(Refused { status, code }) => ContainerReach::Refused { status, code },
        })
    }

    /// What the container is set to. `None`: our credential may not ask.
    pub async fn container_settings(&self) -> Result<Option<ContainerSettings>, BlobError> {
        let action = "read the container's settings";
        let answer = self
            .calls()
            .answer(Request::Settings, action, || {
                let request = self.container().get_properties();
                async move { request.await.map(|answer| answer.container) }
            })
            .await?;
        match answer.result {
            Ok(found) => Ok(Some(ContainerSettings {
                is_public: found.public_access != PublicAccess::None,
                is_held: found.has_immutability_policy || found.has_legal_hold,
            })),
            Err(Refused { status: 401 | 403, .. }) => Ok(None),
            Err(refused) => Err(refused.into_error(action)),
        }
    }

    /// What the service still keeps of `key`, which was deleted.
    pub async fn kept_of_deleted(&self, key: &BlobKey) -> Result<KeptDeleted, BlobError> {
        let action = format!("look for what is kept of {key}");
        let name = self.name(key.as_str());
        // In order: what is named like the object itself comes before what is named longer.
        let page = self.page_under(Request::ListKept, key.as_str(), &action).await?.required(&action)?;
        let mut kept = KeptDeleted::default();
        for blob in page.blobs.blobs().filter(|blob| blob.name == name) {
            let (is_version, is_snapshot) = (blob.version_id.is_some(), blob.snapshot.is_some());
            let is_deleted = blob.deleted == Some(true);
            kept.soft_deleted |= is_deleted;
            kept.versions |= is_version;
            kept.snapshots |= is_snapshot;
            kept.other |= !is_deleted && !is_version && !is_snapshot;
        }
        Ok(kept)
    }

    /// Whether the service still keeps anything of `key`, which was deleted: a soft-deleted object, a version, a snapshot. Then a delete is
    /// not a delete, and a forget no erasure.
    pub async fn keeps_deleted(&self, key: &BlobKey) -> Result<bool, BlobError> {
        Ok(!self.kept_of_deleted(key).await?.is_nothing())
    }

    /// Whether whoever stands between us and the service reads nothing of what passes: it goes by TLS, or never leaves the machine.
    #[must_use]
    pub fn is_private_way(&self) -> bool {
        connection::is_private(self.endpoint())
    }

    /// The first page of what lies under `prefix`, with what is kept of the deleted or without.
    async fn page_under(
        &self,
        request: Request,
        prefix: &str,
        action: &str,
    ) -> Result<Answer<ListBlobsResponse>, BlobError> {
        let prefix = self.name(prefix);
        self.calls()
            .answer(request, action, || {
                let mut listing = self.container().list_blobs().prefix(prefix.clone());
                if request == Request::ListKept {
                    listing = listing.include_deleted(true).include_versions(true).include_snapshots(true);
                }
                let mut pages = listing.into_stream();
                async move { pages.next().await.ok_or_else(no_page)? }
            })
            .await
    }
}
