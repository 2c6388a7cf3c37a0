//! A store that is not what it says is found, and the seed that found it finds it again.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_blob::{BlobEntry, BlobError, BlobKey, BlobPrefix, BlobStore, Payload, Put};
use leasehold_proof::soak::{Failure, SoakPlan, soak_embedded};

/// Answers for every so many-th manifest that it has it, and does not.
#[derive(Debug)]
struct Forgetful {
    inner: Arc<dyn BlobStore>,
    manifests: AtomicU64,
}

const EVERY: u64 = 5;

#[async_trait]
impl BlobStore for Forgetful {
    async fn put_if_absent(&self, key: &BlobKey, payload: Payload) -> Result<Put, BlobError> {
        let is_manifest = key.as_str().contains("/snap-") && !key.as_str().contains(".db");
        if is_manifest && self.manifests.fetch_add(1, Ordering::SeqCst) % EVERY == EVERY - 1 {
            return Ok(Put::Created);
        }
        self.inner.put_if_absent(key, payload).await
    }

    async fn get(&self, key: &BlobKey, len_max: u64) -> Result<Option<Bytes>, BlobError> {
        self.inner.get(key, len_max).await
    }

    async fn download(&self, key: &BlobKey, to: &Path) -> Result<Option<u64>, BlobError> {
        self.inner.download(key, to).await
    }

    async fn list(&self, prefix: &BlobPrefix) -> Result<Vec<BlobEntry>, BlobError> {
        self.inner.list(prefix).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, BlobError> {
        self.inner.delete(key).await
    }

    async fn delete_prefix(&self, prefix: &BlobPrefix) -> Result<u64, BlobError> {
        self.inner.delete_prefix(prefix).await
    }
}

fn failure(seed: u64) -> Failure {
    let plan = SoakPlan {
        steps: 500,
        keeps_trace: true,
        behind: Some(Arc::new(|inner| Arc::new(Forgetful { inner, manifests: AtomicU64::new(0) }))),
        ..SoakPlan::new(seed)
    };
    match soak_embedded(plan) {
        Err(failure) => *failure,
        Ok(report) => panic!("the manifests that were lost were not missed: {report}"),
    }
}

#[test]
fn a_manifest_that_the_store_lost_is_found_and_the_seed_finds_it_again() {
    let found = failure(7);
    assert!(found.finding.contains("is not in what epoch"), "{found}");
    assert!(found.step > 0 && !found.trace.is_empty(), "{found}");
    assert!(found.replay().starts_with("cargo xtask soak --pair embedded --seed 7 "), "{found}");
    let again = failure(7);
    assert_eq!((found.step, &found.finding), (again.step, &again.finding));
    assert!(found == again, "the same failure by the same trace");
}
