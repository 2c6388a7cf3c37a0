//! What a caller may say, and what is refused before anything is asked of the service.

use leasehold_blob::{AzureCredential, AzureStore, BlobError};
use leasehold_types::ErrorCode;

use super::account::{container, options};

const KEY: &str = "c2VjcmV0LWtleQ==";

fn refusal(credential: AzureCredential, account: Option<&str>, endpoint: Option<&str>) -> String {
    let mut options = options(credential, "images");
    options.account = account.map(str::to_owned);
    options.endpoint = endpoint.map(str::to_owned);
    let error = AzureStore::connect(options).unwrap_err();
    assert!(matches!(error, BlobError::Settings { .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert!(!error.is_transient());
    error.to_string()
}

fn by_string(text: &str) -> AzureCredential {
    AzureCredential::ConnectionString(text.into())
}

#[test]
fn what_cannot_be_used_is_named_and_no_secret_is_shown() {
    let sas = || AzureCredential::Sas("sv=2022-11-02&sig=s3cr3t".into());
    for (said, expected) in [
        (refusal(by_string("s3cr3t"), None, None), "`name=value` pairs"),
        (refusal(by_string("AccountName=abc;AccountKey=s3cr3t!"), None, None), "base64"),
        (refusal(by_string("AccountKey=c2VjcmV0;AccountName=s3cr3t_"), None, None), "AccountName"),
        (refusal(by_string("AccountName=abc"), None, None), "either AccountKey or SharedAccessSignature"),
        (refusal(by_string("BlobEndpoint=https://a.b;SharedAccessSignature=s3cr3t"), None, None), "`sig=`"),
        (refusal(by_string("BlobEndpoint=http://a.b;SharedAccessSignature=sig=s3cr3t"), None, None), "https"),
        (refusal(AzureCredential::AccountKey(KEY.into()), None, None), "the account's name"),
        (refusal(sas(), None, None), "an endpoint is needed"),
        (refusal(sas(), None, Some("https://abc.example/?sig=s3cr3t")), "without user, query"),
        (refusal(sas(), None, Some("https://user:s3cr3t@abc.example/")), "without user, query"),
        (refusal(sas(), None, Some("http://azurite:10000/abc")), "must be https"),
        (refusal(sas(), Some("../s3cr3t"), None), "3 to 24"),
        (
            refusal(
                AzureCredential::ManagedIdentity { client_id: Some("a b".into()), endpoint: None },
                Some("abc"),
                None,
            ),
            "client id",
        ),
        (
            refusal(
                AzureCredential::WorkloadIdentity {
                    tenant_id: "t".into(),
                    client_id: "c".into(),
                    token_file: "/token".into(),
                    authority: Some("http://authority.example".into()),
                },
                Some("abc"),
                None,
            ),
            "authority must be https",
        ),
    ] {
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}

#[test]
fn a_container_has_a_containers_name() {
    for name in
        ["", "ab", "Images", "-images", "images-", "im--ages", "im_ages", "../images", &"x".repeat(64)]
    {
        let credential = AzureCredential::ConnectionString("UseDevelopmentStorage=true".into());
        let error = AzureStore::connect(options(credential, name)).unwrap_err();
        assert!(error.to_string().contains("a container's name"), "{name}: {error}");
    }
}

#[test]
fn every_way_to_name_an_account_finds_its_endpoint() {
    let key = format!("AccountName=abc;AccountKey={KEY}");
    for (text, expected) in [
        (key.clone(), "https://abc.blob.core.windows.net"),
        (format!("{key};EndpointSuffix=core.chinacloudapi.cn"), "https://abc.blob.core.chinacloudapi.cn"),
        (format!("{key};DefaultEndpointsProtocol=http"), "http://abc.blob.core.windows.net"),
        (format!("{key};BlobEndpoint=http://azurite:10000/abc/;"), "http://azurite:10000/abc"),
        (
            "BlobEndpoint=https://abc.z1.example;SharedAccessSignature=sig=x".to_owned(),
            "https://abc.z1.example",
        ),
        ("UseDevelopmentStorage=true".to_owned(), "http://127.0.0.1:10000/devstoreaccount1"),
    ] {
        let store = AzureStore::connect(options(by_string(&text), &container())).unwrap();
        let shown = format!("{store:?}");
        assert!(shown.contains(&format!("{expected:?}")), "{shown}");
        assert!(!shown.contains(KEY), "{shown}");
    }
}
