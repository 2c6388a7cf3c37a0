//! No secret in any log, at any level, whatever happens; nor in an error or a `Debug`.

use std::{
    io,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use leasehold_blob::{AzureCredential, AzureStore, BlobStore, Payload, Secret};
use tracing::{instrument::WithSubscriber as _, level_filters::LevelFilter};

use super::{
    account::options,
    script::{Say, Scripted},
    shims::key,
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a store by `credential` logs and tells while it puts, reads, lists and deletes, well and not well.
async fn told(credential: AzureCredential, service: &Scripted) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let mut said = async {
        tracing::trace!("the log is on");
        let mut options = options(credential, "images");
        options.account = Some("abc".into());
        options.endpoint = Some(service.url());
        options.limits.attempts = 2;
        let mut said = vec![format!("{options:?}")];
        let store = AzureStore::connect(options).unwrap();
        said.push(format!("{store:?}"));
        let payload = || Payload::Bytes(Bytes::from_static(b"b0dy-s3cr3t"));
        for _ in 0..3 {
            said.push(format!("{:?}", store.put_if_absent(&key("t/1"), payload()).await));
        }
        said.push(format!("{:?}", store.get(&key("t/1"), 10).await));
        said.push(format!("{:?}", store.list(&"t/".parse().unwrap()).await));
        said.push(format!("{:?}", store.delete(&key("t/1")).await));
        said
    }
    .with_subscriber(subscriber)
    .await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the log is on"), "nothing was logged");
    assert!(logged.contains("a request to the blob store failed"), "our own are missing: {logged}");
    said.push(logged);
    said.join("\n")
}

async fn service() -> Scripted {
    let echo = || Say::refusal(403, "AuthenticationFailed").body("the signature s3cr3t was not right");
    Scripted::start([Say::created(), Say::status(503).body("s3cr3t"), echo(), echo()]).await
}

#[tokio::test]
async fn no_secret_of_any_credential_is_told_or_logged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "assertion-s3cr3t").unwrap();
    let key = "czNjcjN0LWtleS1zM2NyM3Q=";

    let mut all = Vec::new();
    all.push(told(AzureCredential::AccountKey(key.into()), &service().await).await);
    all.push(told(AzureCredential::Sas("sv=2022-11-02&sig=s3cr3t".into()), &service().await).await);
    let text = format!("AccountName=abc;AccountKey={key}");
    all.push(told(AzureCredential::ConnectionString(Secret::from(text)), &service().await).await);
    let tokens = || Scripted::start([Say::token("bearer-s3cr3t", 3_600)]);
    let metadata = tokens().await;
    let credential = AzureCredential::ManagedIdentity { client_id: None, endpoint: Some(metadata.url()) };
    all.push(told(credential, &service().await).await);
    // The last one's tokens fail at first, which the client logs at the level of errors with the whole answer.
    let authority = Scripted::start([Say::status(400).body("assertion-s3cr3t was refused")]).await;
    authority.then(Say::token("bearer-s3cr3t", 3_600));
    let credential = AzureCredential::WorkloadIdentity {
        tenant_id: "tenant".into(),
        client_id: "client".into(),
        token_file: file,
        authority: Some(authority.url()),
    };
    all.push(told(credential, &service().await).await);

    for said in all {
        for secret in ["s3cr3t", key, "SharedKey", "Bearer"] {
            assert!(!said.contains(secret), "{secret} in {said}");
        }
    }
}
