//! What the store itself says afterwards.

use std::collections::BTreeMap;

use leasehold_blob::{BlobPrefix, BlobStore};
use leasehold_snapshot::{
    Layout, Name,
    format::{Base, DOCUMENT_BYTES_MAX, Entry},
};
use leasehold_types::{Epoch, LeaseKey, TenureId};

use crate::world::ProofError;

/// Who owns each epoch of a tenant, by its pin and its manifests. Two in one epoch are an error: an epoch is never shared.
pub async fn owners(blobs: &dyn BlobStore, key: &LeaseKey) -> Result<BTreeMap<Epoch, TenureId>, ProofError> {
    let layout = Layout::new(key);
    let mut owners: BTreeMap<Epoch, TenureId> = BTreeMap::new();
    for entry in blobs.list(layout.tenant()).await? {
        let Some(name @ (Name::Base(_) | Name::Manifest(_))) = layout.name(&entry.key) else { continue };
        // Gone meanwhile: a sweep's.
        let Some(body) = blobs.get(&entry.key, DOCUMENT_BYTES_MAX).await? else { continue };
        let owner = match name {
            Name::Base(epoch) => match Base::decode(&entry.key, &body)? {
                Base::Pinned(pin) => (epoch, pin.tenure_id),
                Base::Sealed(_) => continue,
            },
            Name::Manifest(snapshot) => match Entry::decode(&layout, snapshot, &body)? {
                Entry::Published(manifest) => (manifest.epoch, manifest.tenure_id),
                Entry::Sealed(_) => continue,
            },
            Name::Image(..) | Name::ForeignIn(_) | Name::Foreign => continue,
        };
        let (epoch, tenure) = owner;
        let known = *owners.entry(epoch).or_insert(tenure);
        if known != tenure {
            return Err(
                format!("{} is of tenure {tenure}, and epoch {epoch} is of {known}", entry.key).into()
            );
        }
    }
    Ok(owners)
}

/// The names of what the store still has of a tenant. After a forget: nothing.
pub async fn left_of(blobs: &dyn BlobStore, key: &LeaseKey) -> Result<Vec<String>, ProofError> {
    let entries = blobs.list(&BlobPrefix::of_tenant(key)).await?;
    Ok(entries.into_iter().map(|entry| entry.key.to_string()).collect())
}
