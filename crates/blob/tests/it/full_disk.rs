//! A disk with no room: a file system of 1 MiB in memory, where the system lets us mount one.

use std::path::Path;

use bytes::Bytes;
use leasehold_blob::{BlobError, BlobStore as _, DirectoryStore, Payload, Put};
use leasehold_testkit::SmallDisk;
use leasehold_types::ErrorCode;

use crate::directory::{files_under, key};

/// `None`, and the reason on the test's output, where mounting is not permitted.
fn small_disk() -> Option<SmallDisk> {
    SmallDisk::mount(1024 * 1024).inspect_err(|reason| println!("skipped: no small disk here: {reason}")).ok()
}

fn assert_is_full(error: &BlobError) {
    assert!(matches!(error, BlobError::Full { .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::DiskFull);
    assert!(error.is_transient());
    assert!(error.to_string().contains("put t/large"), "{error}");
}

#[tokio::test]
async fn a_put_onto_a_full_disk_says_so_and_takes_no_room() {
    let Some(disk) = small_disk() else { return };
    let store = DirectoryStore::open(disk.path()).unwrap();
    let half = Bytes::from(vec![1; 512 * 1024]);
    assert_eq!(store.put_if_absent(&key("t/half"), half.clone().into()).await.unwrap(), Put::Created);

    let large = Bytes::from(vec![2; 2 * 1024 * 1024]);
    assert_is_full(&store.put_if_absent(&key("t/large"), large.clone().into()).await.unwrap_err());
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("large");
    std::fs::write(&file, &large).unwrap();
    assert_is_full(&store.put_if_absent(&key("t/large"), Payload::File(file)).await.unwrap_err());

    // What was there is untouched, and there is as much room as before.
    assert_eq!(files_under(disk.path()), [Path::new("objects/t/half")]);
    assert_eq!(store.get(&key("t/half"), u64::MAX).await.unwrap().unwrap(), half);
    let small = Bytes::from(vec![3; 300 * 1024]);
    assert_eq!(store.put_if_absent(&key("t/small"), small.into()).await.unwrap(), Put::Created);
}

#[tokio::test]
async fn a_download_onto_a_full_disk_is_a_local_error_and_leaves_no_file() {
    let Some(disk) = small_disk() else { return };
    let root = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open_without_sync(root.path()).unwrap();
    let large = Bytes::from(vec![2; 2 * 1024 * 1024]);
    store.put_if_absent(&key("t/large"), large.into()).await.unwrap();
    let error = store.download(&key("t/large"), &disk.path().join("copy")).await.unwrap_err();
    assert!(matches!(&error, BlobError::Local { action: "write", .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::DiskFull);
    assert!(files_under(disk.path()).is_empty());
}
