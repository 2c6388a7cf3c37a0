//! What an inspection finds of a container, over Azurite or over what the service is known to say.

use leasehold_blob::{
    AzureCredential, AzureStore, BlobPrefix, BlobStore as _, ContainerReach, ContainerSettings, KeptDeleted,
    Payload,
};

use super::{
    account::{container, fresh, options, part, shared},
    script::{Say, Scripted},
    shims::{KEY, key, scripted},
};

fn probes() -> BlobPrefix {
    "_doctor/1/".parse().unwrap()
}

#[tokio::test]
async fn a_container_is_open_or_missing_or_closed_to_us() {
    let (store, name) = fresh().await;
    assert_eq!(store.reach(&probes()).await.unwrap(), ContainerReach::Open);
    let nowhere = AzureStore::connect(shared(&container())).unwrap();
    assert_eq!(nowhere.reach(&probes()).await.unwrap(), ContainerReach::Missing);
    let mut other_key = options(AzureCredential::AccountKey(KEY.into()), &name);
    other_key.account = Some(part("AccountName"));
    other_key.endpoint = Some(part("BlobEndpoint"));
    let refused = AzureStore::connect(other_key).unwrap().reach(&probes()).await.unwrap();
    let expected = ContainerReach::Refused { status: 403, code: "AuthorizationFailure".into() };
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn a_service_that_fails_has_said_nothing_about_its_container() {
    let server = Scripted::start([]).await;
    let mut options = scripted(&server);
    options.limits.attempts = 2;
    let error = AzureStore::connect(options).unwrap().reach(&probes()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

fn properties() -> Say {
    Say::status(200)
        .with("etag", "\"0x1\"")
        .with("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        .with("date", "Thu, 01 Jan 2026 00:00:00 GMT")
        .with("x-ms-request-id", "00000000-0000-0000-0000-000000000000")
        .with("x-ms-lease-status", "unlocked")
        .with("x-ms-lease-state", "available")
}

#[tokio::test]
async fn what_a_container_is_set_to_is_seen() {
    let none = ContainerSettings { is_public: false, is_held: false };
    assert_eq!(fresh().await.0.container_settings().await.unwrap(), Some(none));
    for (say, expected) in [
        (
            properties()
                .with("x-ms-has-immutability-policy", "false")
                .with("x-ms-has-legal-hold", "false")
                .with("x-ms-blob-public-access", "blob"),
            Some(ContainerSettings { is_public: true, ..none }),
        ),
        (
            properties().with("x-ms-has-immutability-policy", "true").with("x-ms-has-legal-hold", "false"),
            Some(ContainerSettings { is_held: true, ..none }),
        ),
        (
            properties().with("x-ms-has-immutability-policy", "false").with("x-ms-has-legal-hold", "true"),
            Some(ContainerSettings { is_held: true, ..none }),
        ),
        (Say::refusal(403, "AuthorizationPermissionMismatch"), None),
    ] {
        let server = Scripted::start([say]).await;
        let found = AzureStore::connect(scripted(&server)).unwrap().container_settings().await.unwrap();
        assert_eq!(found, expected);
        assert!(server.asked()[0].uri.contains("restype=container"), "{:?}", server.asked());
    }
}

/// A listing of one object of this name, `more` being what its entry says beside that.
fn listing(name: &str, more: &str) -> Say {
    Say::status(200)
        .with("date", "Thu, 01 Jan 2026 00:00:00 GMT")
        .with("x-ms-request-id", "00000000-0000-0000-0000-000000000000")
        .body(format!(
            r#"<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://abc.example/"
            ContainerName="images"><Prefix>t/1</Prefix><Blobs><Blob><Name>{name}</Name>{more}<Properties>
            <Creation-Time>Thu, 01 Jan 2026 00:00:00 GMT</Creation-Time>
            <Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>0x1</Etag>
            <Content-Length>1</Content-Length><Content-Type>application/octet-stream</Content-Type>
            <BlobType>BlockBlob</BlobType></Properties></Blob></Blobs><NextMarker /></EnumerationResults>"#
        ))
}

#[tokio::test]
async fn each_way_to_keep_what_was_deleted_is_told_apart() {
    let (store, _) = fresh().await;
    store.put_if_absent(&key("t/1"), Payload::Bytes("x".into())).await.unwrap();
    assert!(store.kept_of_deleted(&key("t/1")).await.unwrap().other, "it was not deleted yet");
    store.delete(&key("t/1")).await.unwrap();
    assert!(store.kept_of_deleted(&key("t/1")).await.unwrap().is_nothing());

    let nothing = KeptDeleted::default();
    for (name, more, expected) in [
        ("t/1", "<Deleted>true</Deleted>", KeptDeleted { soft_deleted: true, ..nothing }),
        (
            "t/1",
            "<VersionId>2026-01-01T00:00:00.0000000Z</VersionId>",
            KeptDeleted { versions: true, ..nothing },
        ),
        (
            "t/1",
            "<Snapshot>2026-01-01T00:00:00.0000000Z</Snapshot>",
            KeptDeleted { snapshots: true, ..nothing },
        ),
        ("t/1", "", KeptDeleted { other: true, ..nothing }),
        ("t/1-longer", "<Deleted>true</Deleted>", nothing),
    ] {
        let server = Scripted::start([listing(name, more)]).await;
        let store = AzureStore::connect(scripted(&server)).unwrap();
        assert_eq!(store.kept_of_deleted(&key("t/1")).await.unwrap(), expected, "{more}");
    }
}

#[test]
fn a_way_is_private_by_tls_or_within_the_machine() {
    for (endpoint, expected) in [
        ("https://abc.blob.core.windows.net", true),
        ("http://127.0.0.1:10000/abc", true),
        ("http://azurite:10000/abc", false),
    ] {
        let mut options = options(AzureCredential::AccountKey(KEY.into()), "images");
        options.account = Some("abc".into());
        options.endpoint = Some(endpoint.into());
        assert_eq!(AzureStore::connect(options).unwrap().is_private_way(), expected, "{endpoint}");
    }
}
