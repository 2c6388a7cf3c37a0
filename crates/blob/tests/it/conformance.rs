//! The contract's suite.

use std::{path::Path, sync::Arc};

use leasehold_blob::{BlobStore, DirectoryStore};
use leasehold_testkit::{FaultyBlobs, blob_conformance, conformance::blob::BlobFixture};

fn fixture(open: impl Fn(&Path) -> Arc<dyn BlobStore>) -> BlobFixture {
    let root = tempfile::tempdir().unwrap();
    BlobFixture::new(open(root.path()), open(root.path()), root)
}

mod directory {
    use super::*;

    async fn two_stores_on_one_directory() -> BlobFixture {
        fixture(|root| Arc::new(DirectoryStore::open_without_sync(root).unwrap()))
    }

    blob_conformance!(two_stores_on_one_directory);
}

mod faultless_wrapper {
    use super::*;

    async fn wrapped_stores() -> BlobFixture {
        fixture(|root| Arc::new(FaultyBlobs::new(Arc::new(DirectoryStore::open_without_sync(root).unwrap()))))
    }

    blob_conformance!(wrapped_stores);
}
