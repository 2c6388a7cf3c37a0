//! The contract's suite.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_blob::{AzureStore, BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};
use leasehold_testkit::{blob_conformance, conformance::blob::BlobFixture};
use tokio::sync::Mutex;

use super::account;

/// Azurite, unlike the service, lets two deletes of one blob at the same time both find it, and tells both so. So that counts can be
/// judged, the deletes of a test's stores take turns; everything else is as it is.
#[derive(Debug)]
struct DeletesInTurn {
    store: AzureStore,
    turn: Arc<Mutex<()>>,
}

#[async_trait]
impl BlobStore for DeletesInTurn {
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        self.store.put_if_absent(key, payload).await
    }

    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        self.store.get(key, len_max).await
    }

    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        self.store.download(key, to).await
    }

    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError> {
        self.store.list(prefix).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError> {
        let _turn = self.turn.lock().await;
        self.store.delete(key).await
    }

    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError> {
        let _turn = self.turn.lock().await;
        self.store.delete_prefix(prefix).await
    }
}

async fn two_stores_on_one_container() -> BlobFixture {
    let (store, container) = account::fresh().await;
    let another = AzureStore::connect(account::shared(&container)).unwrap();
    let turn = Arc::new(Mutex::new(()));
    let in_turn = |store| Arc::new(DeletesInTurn { store, turn: Arc::clone(&turn) });
    BlobFixture::new(in_turn(store), in_turn(another), ())
}

blob_conformance!(two_stores_on_one_container);
