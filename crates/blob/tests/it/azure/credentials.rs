//! Who the store says it is, and where it has that from.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use leasehold_blob::{AzureCredential, AzureOptions, AzureStore, BlobError, BlobStore, Payload, Put};
use leasehold_testkit::ManualClock;

use super::{
    account::{self, options, part},
    script::{Say, Scripted},
    shims::key,
};

const MINUTE: Duration = Duration::from_secs(60);

async fn put(store: &AzureStore, name: &str) -> Result<Put, BlobError> {
    store.put_if_absent(&key(name), Payload::Bytes(Bytes::from_static(b"x"))).await
}

/// A store whose tokens `credential` gives, whose service is `service`, and its clock.
fn by_tokens(credential: AzureCredential, service: &Scripted) -> (AzureStore, ManualClock) {
    let clock = ManualClock::new();
    let mut options: AzureOptions = options(credential, "images");
    options.account = Some("abc".into());
    options.endpoint = Some(service.url());
    options.clock = Arc::new(clock.clone());
    (AzureStore::connect(options).unwrap(), clock)
}

fn workload(authority: &Scripted, token_file: &Path) -> AzureCredential {
    AzureCredential::WorkloadIdentity {
        tenant_id: "tenant-1".into(),
        client_id: "client-1".into(),
        token_file: token_file.to_owned(),
        authority: Some(authority.url()),
    }
}

#[tokio::test]
async fn an_account_key_and_a_connection_string_open_the_same_container() {
    let (store, container) = account::fresh().await;
    let mut by_key = options(AzureCredential::AccountKey(part("AccountKey").as_str().into()), &container);
    by_key.account = Some(part("AccountName"));
    by_key.endpoint = Some(part("BlobEndpoint"));
    let by_key = AzureStore::connect(by_key).unwrap();
    assert_eq!(put(&by_key, "t/1").await.unwrap(), Put::Created);
    assert_eq!(put(&store, "t/1").await.unwrap(), Put::Exists);
}

#[tokio::test]
async fn a_sas_signs_the_address_and_no_header() {
    for say in ["?sv=2022-11-02&sig=s3cr3t%3D", "sv=2022-11-02&sig=s3cr3t%3D"] {
        let service = Scripted::start([Say::created()]).await;
        let mut options = options(AzureCredential::Sas(say.into()), "images");
        options.endpoint = Some(service.url());
        put(&AzureStore::connect(options).unwrap(), "t/1").await.unwrap();
        let asked = &service.asked()[0];
        assert_eq!(asked.uri, "/images/t/1?sv=2022-11-02&sig=s3cr3t%3D");
        assert_eq!(asked.header("authorization"), "");
    }
}

#[tokio::test]
async fn a_workload_identitys_file_is_read_at_every_refresh() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let authority = Scripted::start([Say::token("one", 3_600), Say::token("two", 3_600)]).await;
    let service = Scripted::start([Say::created(), Say::created(), Say::created()]).await;
    let (store, clock) = by_tokens(workload(&authority, &file), &service);

    std::fs::write(&file, "assertion-1\n").unwrap();
    put(&store, "t/1").await.unwrap();
    std::fs::write(&file, "assertion-2\n").unwrap();
    // Six minutes before its end the token serves, at five it is fetched again.
    clock.advance(54 * MINUTE);
    put(&store, "t/2").await.unwrap();
    clock.advance(MINUTE);
    put(&store, "t/3").await.unwrap();

    let bearers: Vec<_> =
        service.asked().iter().map(|asked| asked.header("authorization").to_owned()).collect();
    assert_eq!(bearers, ["Bearer one", "Bearer one", "Bearer two"]);
    let asked = authority.asked();
    assert_eq!(asked.len(), 2);
    for (asked, assertion) in asked.iter().zip(["assertion-1", "assertion-2"]) {
        assert_eq!(asked.uri, "/tenant-1/oauth2/v2.0/token");
        assert!(asked.body.contains(&format!("client_assertion={assertion}&")), "{}", asked.body);
        assert!(asked.body.contains("client_id=client-1&"), "{}", asked.body);
        assert!(asked.body.contains("scope=https%3A%2F%2Fstorage.azure.com%2F.default&"), "{}", asked.body);
    }
}

#[tokio::test]
async fn a_token_that_still_lives_serves_while_no_new_one_is_to_be_had() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "assertion").unwrap();
    let authority = Scripted::start([Say::token("one", 3_600)]).await;
    let service = Scripted::start([Say::created(), Say::created()]).await;
    let (store, clock) = by_tokens(workload(&authority, &file), &service);
    put(&store, "t/1").await.unwrap();
    clock.advance(59 * MINUTE);
    put(&store, "t/2").await.unwrap();
    assert_eq!(authority.asked().len(), 2);
    clock.advance(MINUTE);
    let error = put(&store, "t/3").await.unwrap_err();
    assert!(
        error.is_transient()
            && error.to_string().contains("no token for the storage account: it answered 500"),
        "{error}"
    );
    assert_eq!(service.asked().len(), 2);
}

#[tokio::test]
async fn a_refused_assertion_and_a_missing_file_are_told_by_their_codes_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let refusal = Say::status(401).body(r#"{"error":"invalid_client","error_description":"s3cr3t"}"#);
    let authority = Scripted::start([refusal.clone()]).await;
    let service = Scripted::start([]).await;
    let mut options = options(workload(&authority, &file), "images");
    options.account = Some("abc".into());
    options.endpoint = Some(service.url());
    options.limits.attempts = 1;
    let store = AzureStore::connect(options).unwrap();
    let missing = put(&store, "t/1").await.unwrap_err().to_string();
    assert!(missing.contains("No such file"), "{missing}");
    std::fs::write(&file, "s3cr3t").unwrap();
    let refused = put(&store, "t/1").await.unwrap_err().to_string();
    assert!(refused.contains("401 invalid_client") && !refused.contains("s3cr3t"), "{refused}");
}

#[tokio::test]
async fn a_managed_identity_is_the_machines_or_a_named_one() {
    for (client_id, expected) in [(None, ""), (Some("client-2".to_owned()), "&client_id=client-2")] {
        // The metadata service gives the seconds as a text.
        let say = Say::status(200).body(r#"{"access_token":"one","expires_in":"3600","resource":"x"}"#);
        let metadata = Scripted::start([say]).await;
        let service = Scripted::start([Say::created(), Say::created()]).await;
        let credential = AzureCredential::ManagedIdentity { client_id, endpoint: Some(metadata.url()) };
        let (store, _) = by_tokens(credential, &service);
        put(&store, "t/1").await.unwrap();
        put(&store, "t/2").await.unwrap();
        assert_eq!(service.asked()[1].header("authorization"), "Bearer one");
        let asked = metadata.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].header("metadata"), "true");
        assert_eq!(
            asked[0].uri,
            format!(
                "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F{expected}"
            )
        );
    }
}

#[tokio::test]
async fn a_token_is_fetched_once_for_all_who_wait() {
    let metadata = Scripted::start([Say::token("one", 3_600)]).await;
    let service = Scripted::start((0..8).map(|_| Say::created())).await;
    let credential = AzureCredential::ManagedIdentity { client_id: None, endpoint: Some(metadata.url()) };
    let (store, _) = by_tokens(credential, &service);
    let puts: Vec<_> = (0..8)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { put(&store, &format!("t/{n}")).await })
        })
        .collect();
    for put in puts {
        assert_eq!(put.await.unwrap().unwrap(), Put::Created);
    }
    assert_eq!(metadata.asked().len(), 1);
}
