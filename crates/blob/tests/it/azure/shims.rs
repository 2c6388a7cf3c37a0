//! What the client lacks and the store makes good, each over Azurite or over what the service is known to say.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use leasehold_blob::{
    AzureCredential, AzureOptions, AzureStore, BlobEntry, BlobError, BlobKey, BlobStore, Payload, Put,
};
use leasehold_testkit::ManualTimer;
use leasehold_types::ErrorCode;

use super::{
    account::{self, fresh, options},
    script::{Say, Scripted},
};

pub(crate) const KEY: &str = "c2VjcmV0LWtleQ==";

pub(crate) fn key(name: &str) -> BlobKey {
    name.parse().unwrap()
}

/// A store whose service is `server`.
pub(crate) fn scripted(server: &Scripted) -> AzureOptions {
    let mut options = options(AzureCredential::AccountKey(KEY.into()), "images");
    options.account = Some("abc".into());
    options.endpoint = Some(server.url());
    options
}

async fn put(store: &AzureStore, name: &str, body: &'static str) -> Result<Put, BlobError> {
    store.put_if_absent(&key(name), Payload::Bytes(Bytes::from_static(body.as_bytes()))).await
}

/// `len` bytes no part of which is like another.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[tokio::test]
async fn a_short_range_is_asked_for_without_the_header_that_a_strict_server_refuses() {
    // Azurite answers a 500 to the header where the range is under 4 MiB, as the last range of this object is.
    let (store, _) = fresh().await;
    let image = noise(8 * 1024 * 1024 + 17);
    assert_eq!(
        store.put_if_absent(&key("t/1"), Payload::Bytes(image.clone().into())).await.unwrap(),
        Put::Created
    );
    assert!(store.get(&key("t/1"), u64::MAX).await.unwrap().unwrap() == image);
    let error = store.get(&key("t/1"), 8 * 1024 * 1024 + 16).await.unwrap_err();
    assert!(matches!(error, BlobError::TooLarge { len, .. } if len == image.len() as u64), "{error:?}");
}

#[tokio::test]
async fn a_file_goes_in_by_blocks_and_comes_out_by_ranges() {
    let (store, container) = fresh().await;
    let dir = tempfile::tempdir().unwrap();
    // Not a whole number of blocks, a whole number, and exactly one.
    for (n, len) in [(1, 3 * 8 * 1024 * 1024 + 4_321), (2, 2 * 8 * 1024 * 1024), (3, 8 * 1024 * 1024)] {
        let (from, to) = (dir.path().join(format!("in-{n}")), dir.path().join(format!("out-{n}")));
        let image = noise(len);
        std::fs::write(&from, &image).unwrap();
        let name = key(&format!("t/{n}"));
        assert_eq!(store.put_if_absent(&name, Payload::File(from.clone())).await.unwrap(), Put::Created);
        let another = AzureStore::connect(account::shared(&container)).unwrap();
        assert_eq!(another.put_if_absent(&name, Payload::File(from)).await.unwrap(), Put::Exists);
        assert_eq!(store.download(&name, &to).await.unwrap(), Some(len as u64));
        assert!(std::fs::read(to).unwrap() == image, "the download differs");
    }
}

#[tokio::test]
async fn writers_of_blocks_to_one_name_never_mix() {
    let (store, container) = fresh().await;
    let another = AzureStore::connect(account::shared(&container)).unwrap();
    let bodies = [vec![b'a'; 17 * 1024 * 1024], vec![b'b'; 17 * 1024 * 1024]];
    let name = key("t/1");
    let puts = both(&bodies, &name, [&store, &another]).await;
    let winner = match puts {
        [Put::Created, Put::Exists] => 0,
        [Put::Exists, Put::Created] => 1,
        other => panic!("{other:?}"),
    };
    assert!(store.get(&name, u64::MAX).await.unwrap().unwrap() == bodies[winner]);
}

async fn both(bodies: &[Vec<u8>; 2], name: &BlobKey, stores: [&AzureStore; 2]) -> [Put; 2] {
    let put = |n: usize| stores[n].put_if_absent(name, Payload::Bytes(bodies[n].clone().into()));
    let (one, other) = tokio::join!(put(0), put(1));
    [one.unwrap(), other.unwrap()]
}

#[tokio::test]
async fn an_empty_object_is_a_byte_and_a_mark() {
    let (store, _) = fresh().await;
    put(&store, "t/empty", "").await.unwrap();
    put(&store, "t/one", "\0").await.unwrap();
    let entries = store.list(&"t/".parse().unwrap()).await.unwrap();
    let expected = [("t/empty", 0), ("t/one", 1)].map(|(name, len)| BlobEntry { key: key(name), len });
    assert_eq!(entries, expected);
    assert_eq!(store.get(&key("t/one"), 1).await.unwrap().unwrap(), "\0");
}

#[tokio::test]
async fn a_prefix_stands_before_every_name_and_is_not_seen() {
    let (whole, container) = fresh().await;
    let mut options = account::shared(&container);
    options.prefix = Some("shared/ours/".parse().unwrap());
    let store = AzureStore::connect(options).unwrap();
    put(&whole, "shared/others/t/1", "theirs").await.unwrap();
    put(&store, "t/1", "ours").await.unwrap();
    assert_eq!(whole.get(&key("shared/ours/t/1"), 10).await.unwrap().unwrap(), "ours");
    assert_eq!(store.get(&key("t/1"), 10).await.unwrap().unwrap(), "ours");
    assert_eq!(store.list(&"t/".parse().unwrap()).await.unwrap()[0].key, key("t/1"));
    assert_eq!(store.delete_prefix(&"t/".parse().unwrap()).await.unwrap(), 1);
    assert!(whole.get(&key("shared/others/t/1"), 10).await.unwrap().is_some());
}

#[tokio::test]
async fn a_container_that_is_not_there_is_an_error_and_no_absence() {
    let store = AzureStore::connect(account::shared(&account::container())).unwrap();
    let to = tempfile::tempdir().unwrap();
    let errors = [
        put(&store, "t/1", "x").await.unwrap_err(),
        store.get(&key("t/1"), 1).await.unwrap_err(),
        store.download(&key("t/1"), &to.path().join("out")).await.unwrap_err(),
        store.list(&"t/".parse().unwrap()).await.unwrap_err(),
        store.delete(&key("t/1")).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("404 ContainerNotFound"), "{error}");
    }
}

#[tokio::test]
async fn not_every_conflict_says_that_an_object_is_there() {
    let server = Scripted::start([Say::refusal(409, "ContainerBeingDeleted")]).await;
    let store = AzureStore::connect(scripted(&server)).unwrap();
    let error = put(&store, "t/1", "x").await.unwrap_err();
    assert!(error.to_string().contains("409 ContainerBeingDeleted"), "{error}");

    for (status, code) in
        [(409, "BlobAlreadyExists"), (412, "ConditionNotMet"), (403, "UnauthorizedBlobOverwrite")]
    {
        // What stands there is looked at, and is gone; then the name is free.
        let gone = Say::refusal(404, "BlobNotFound");
        let server = Scripted::start([Say::refusal(status, code), gone, Say::created()]).await;
        let store = AzureStore::connect(scripted(&server)).unwrap();
        assert_eq!(put(&store, "t/1", "x").await.unwrap(), Put::Created, "{code}");
        let asked: Vec<_> = server.asked().into_iter().map(|asked| asked.method).collect();
        assert_eq!(asked, ["PUT", "HEAD", "PUT"], "{code}");
        assert_eq!(server.asked()[0].header("if-none-match"), "*");
    }
}

#[tokio::test]
async fn a_throttled_request_waits_as_long_as_it_is_told() {
    let busy = Say::refusal(503, "ServerBusy").with("retry-after", "4");
    let server =
        Scripted::start([busy, Say::refusal(429, "TooManyRequests").with("retry-after-ms", "4000")]).await;
    server.then(Say::created());
    let timer = ManualTimer::new();
    let mut options = scripted(&server);
    options.timer = Arc::new(timer.clone());
    let store = AzureStore::connect(options).unwrap();
    let putting = tokio::spawn(async move { put(&store, "t/1", "x").await });
    for n in 1..=2 {
        // Its patience and the wait; while a request is on its way its own limit is the second.
        while server.asked().len() < n || timer.sleepers() < 2 {
            tokio::task::yield_now().await;
        }
        settle(&timer).await;
        timer.elapse(Duration::from_millis(3_900));
        settle(&timer).await;
        assert_eq!(server.asked().len(), n, "it was asked again too early");
        timer.elapse(Duration::from_millis(200));
    }
    assert_eq!(putting.await.unwrap().unwrap(), Put::Created);
    assert_eq!(server.asked().len(), 3);
}

/// Until an answer that is on its way has come: a round trip over loopback, with room.
async fn settle(timer: &ManualTimer) {
    for _ in 0..20 {
        #[expect(clippy::disallowed_methods, reason = "a real server is at the other end")]
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(timer.sleepers() > 0);
}

#[tokio::test]
async fn a_longer_wait_than_ours_is_the_callers_to_make() {
    let server = Scripted::start([Say::refusal(503, "ServerBusy").with("retry-after", "600")]).await;
    let store = AzureStore::connect(scripted(&server)).unwrap();
    let error = put(&store, "t/1", "x").await.unwrap_err();
    assert!(
        matches!(error, BlobError::Throttled { retry_after: Some(wait), .. } if wait == Duration::from_secs(600)),
        "{error:?}"
    );
    assert_eq!(error.code(), ErrorCode::BlobStoreUnavailable);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let server = Scripted::start([]).await;
    let mut options = scripted(&server);
    options.limits.attempts = 3;
    let store = AzureStore::connect(options).unwrap();
    let error = store.get(&key("t/1"), 1).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("500"), "{error}");
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_delete_with_snapshots_takes_them_along() {
    let server = Scripted::start([Say::refusal(404, "BlobNotFound")]).await;
    let store = AzureStore::connect(scripted(&server)).unwrap();
    assert!(!store.delete(&key("t/1")).await.unwrap());
    assert_eq!(server.asked()[0].header("x-ms-delete-snapshots"), "include");
}

#[tokio::test]
async fn what_the_service_keeps_of_a_deleted_object_is_seen() {
    let (store, _) = fresh().await;
    put(&store, "t/1", "x").await.unwrap();
    put(&store, "t/1-longer", "x").await.unwrap();
    assert!(store.delete(&key("t/1")).await.unwrap());
    assert!(!store.keeps_deleted(&key("t/1")).await.unwrap());

    // Azurite has no soft delete: an answer as the service gives it.
    let page = r#"<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://abc.example/"
        ContainerName="images"><Prefix>t/1</Prefix><Blobs><Blob><Name>t/1</Name><Deleted>true</Deleted><Properties>
        <Creation-Time>Thu, 01 Jan 2026 00:00:00 GMT</Creation-Time>
        <Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>0x1</Etag><Content-Length>1</Content-Length>
        <Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType>
        <DeletedTime>Thu, 01 Jan 2026 00:00:01 GMT</DeletedTime><RemainingRetentionDays>7</RemainingRetentionDays>
        </Properties></Blob></Blobs><NextMarker /></EnumerationResults>"#;
    let say = Say::status(200)
        .with("date", "Thu, 01 Jan 2026 00:00:00 GMT")
        .with("x-ms-request-id", "00000000-0000-0000-0000-000000000000")
        .body(page);
    let server = Scripted::start([say]).await;
    let store = AzureStore::connect(scripted(&server)).unwrap();
    assert!(store.keeps_deleted(&key("t/1")).await.unwrap());
    assert!(server.asked()[0].uri.contains("include=snapshots%2Cdeleted%2Cversions"), "{:?}", server.asked());
}
