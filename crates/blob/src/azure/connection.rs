//! From what a caller says to a client of the container.

use std::sync::Arc;

use azure_core::{
    ClientOptions, HttpClient, RetryOptions, TransportOptions, Url,
    auth::{Secret as ClientSecret, TokenCredential},
    base64,
};
use azure_storage::{CloudLocation, ConnectionString, EndpointProtocol, StorageCredentials};
use azure_storage_blobs::prelude::{ClientBuilder, ContainerClient};

use super::{
    federated::Federated,
    headers::DropChecksumRequest,
    managed::Managed,
    options::{AzureCredential, AzureOptions},
    secret::Secret,
    token::{TokenSource, Tokens},
    transport::Transport,
};
use crate::BlobError;

const AUTHORITY: &str = "https://login.microsoftonline.com";
const METADATA_SERVICE: &str = "http://169.254.169.254";
const EMULATOR_ENDPOINT: &str = "http://127.0.0.1:10000/devstoreaccount1";
const PUBLIC_SUFFIX: &str = "core.windows.net";

/// Where the container is and who asks.
struct Way {
    account: String,
    endpoint: Url,
    credentials: StorageCredentials,
}

/// A client of the container, and its endpoint for people.
pub(super) fn open(options: &AzureOptions) -> Result<(ContainerClient, String), BlobError> {
    if !is_container(&options.container) {
        return Err(settings(
            "container",
            "a container's name is 3 to 63 of a-z, 0-9 and single `-`, none at its beginning or end",
        ));
    }
    let http: Arc<dyn HttpClient> = Arc::new(Transport::new(&options.limits)?);
    let Way { account, endpoint, credentials } = way(options, &http)?;
    let shown = endpoint.as_str().trim_end_matches('/').to_owned();
    let mut client = ClientOptions::new(TransportOptions::new(http)).retry(RetryOptions::none());
    client.per_call_policies_mut().push(Arc::new(DropChecksumRequest));
    let location = CloudLocation::Custom { account, uri: shown.clone() };
    let container = ClientBuilder::with_location(location, credentials)
        .client_options(client)
        .container_client(&options.container);
    Ok((container, shown))
}

fn way(options: &AzureOptions, http: &Arc<dyn HttpClient>) -> Result<Way, BlobError> {
    let account = options.account.as_deref();
    let given = options.endpoint.as_deref().map(|text| endpoint("endpoint", text)).transpose()?;
    let (account, endpoint, credentials) = match &options.credential {
        AzureCredential::ConnectionString(text) => return by_connection_string(text, given),
        AzureCredential::AccountKey(text) => {
            let name =
                account.ok_or_else(|| settings("account", "an account key needs the account's name"))?;
            (name.to_owned(), or_public(given, account)?, key(name, text.reveal())?)
        }
        AzureCredential::Sas(text) => {
            let endpoint = or_public(given, account)?;
            (account.unwrap_or_default().to_owned(), endpoint, sas(text.reveal())?)
        }
        AzureCredential::WorkloadIdentity { tenant_id, client_id, token_file, authority } => {
            let authority = endpoint("authority", authority.as_deref().unwrap_or(AUTHORITY))?;
            hidden(&authority, "authority")?;
            let source = Federated {
                http: Arc::clone(http),
                authority,
                tenant_id: plain("tenant id", tenant_id)?,
                client_id: plain("client id", client_id)?,
                token_file: token_file.clone(),
            };
            let endpoint = or_public(given, account)?;
            (account.unwrap_or_default().to_owned(), endpoint, by_tokens(source, options))
        }
        AzureCredential::ManagedIdentity { client_id, endpoint: service } => {
            let source = Managed {
                http: Arc::clone(http),
                endpoint: endpoint("metadata service", service.as_deref().unwrap_or(METADATA_SERVICE))?,
                client_id: client_id.as_deref().map(|id| plain("client id", id)).transpose()?,
            };
            let endpoint = or_public(given, account)?;
            (account.unwrap_or_default().to_owned(), endpoint, by_tokens(source, options))
        }
    };
    // A signature of a shared key says nothing to who reads it; a token and a SAS are all there is to say.
    if !matches!(options.credential, AzureCredential::AccountKey(_)) {
        hidden(&endpoint, "endpoint")?;
    }
    Ok(Way { account, endpoint, credentials })
}

fn by_connection_string(text: &Secret, given: Option<Url>) -> Result<Way, BlobError> {
    // The parser's errors quote the whole string.
    let parsed = ConnectionString::new(text.reveal()).map_err(|_| {
        settings("credential", "a connection string is `name=value` pairs with `;` between them")
    })?;
    if parsed.use_development_storage == Some(true) {
        let account = azure_storage::clients::EMULATOR_ACCOUNT.to_owned();
        let endpoint = given.map_or_else(|| endpoint("endpoint", EMULATOR_ENDPOINT), Ok)?;
        return Ok(Way { account, endpoint, credentials: StorageCredentials::emulator() });
    }
    let named = given.map_or_else(
        || parsed.blob_endpoint.map(|text| endpoint("BlobEndpoint", text)).transpose(),
        |given| Ok(Some(given)),
    )?;
    let endpoint = named.map_or_else(
        || {
            let account = parsed.account_name.filter(|name| is_account(name)).ok_or_else(|| {
                settings("credential", "a connection string needs AccountName or BlobEndpoint")
            })?;
            let protocol = match parsed.default_endpoints_protocol {
                Some(EndpointProtocol::Http) => "http",
                _ => "https",
            };
            let suffix = parsed.endpoint_suffix.unwrap_or(PUBLIC_SUFFIX);
            endpoint("EndpointSuffix", &format!("{protocol}://{account}.blob.{suffix}"))
        },
        Ok,
    )?;
    let account = parsed.account_name.unwrap_or_default().to_owned();
    let credentials = match (parsed.account_key, parsed.sas) {
        (Some(text), None) if !account.is_empty() => key(&account, text)?,
        (None, Some(text)) => {
            hidden(&endpoint, "endpoint")?;
            sas(text)?
        }
        (Some(_), None) => {
            return Err(settings("credential", "a connection string with AccountKey needs AccountName"));
        }
        _ => {
            return Err(settings(
                "credential",
                "a connection string has either AccountKey or SharedAccessSignature, and one of them",
            ));
        }
    };
    Ok(Way { account, endpoint, credentials })
}

fn by_tokens(source: impl TokenSource + 'static, options: &AzureOptions) -> StorageCredentials {
    let tokens: Arc<dyn TokenCredential> = Arc::new(Tokens::new(source, Arc::clone(&options.clock)));
    StorageCredentials::token_credential(tokens)
}

fn key(account: &str, text: &str) -> Result<StorageCredentials, BlobError> {
    match base64::decode(text) {
        Ok(bytes) if !bytes.is_empty() => {
            Ok(StorageCredentials::access_key(account, ClientSecret::new(text.to_owned())))
        }
        _ => Err(settings("credential", "an account key is base64")),
    }
}

fn sas(text: &str) -> Result<StorageCredentials, BlobError> {
    // The parser's error quotes the whole signature.
    let rule = || settings("credential", "a SAS is a query string with `sig=` in it");
    if !text.trim_start_matches('?').split('&').any(|pair| pair.starts_with("sig=") && pair.len() > 4) {
        return Err(rule());
    }
    StorageCredentials::sas_token(text).map_err(|_| rule())
}

fn or_public(given: Option<Url>, account: Option<&str>) -> Result<Url, BlobError> {
    given.map_or_else(
        || {
            let account = account.filter(|name| is_account(name)).ok_or_else(|| {
                settings("account", "an account's name, 3 to 24 of a-z and 0-9, or an endpoint is needed")
            })?;
            endpoint("account", &format!("https://{account}.blob.{PUBLIC_SUFFIX}"))
        },
        Ok,
    )
}

/// An address that holds nothing but an address. What was given is not shown: people paste a SAS with it.
fn endpoint(name: &'static str, text: &str) -> Result<Url, BlobError> {
    let rule =
        || settings(name, format!("{name} must be an http or https address without user, query or fragment"));
    let url: Url = text.trim().parse().map_err(|_| rule())?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if is_plain { Ok(url) } else { Err(rule()) }
}

/// Refuses to send in clear what whoever reads it can use.
fn hidden(url: &Url, name: &'static str) -> Result<(), BlobError> {
    if is_hidden(url) {
        Ok(())
    } else {
        Err(settings(name, format!("{name} must be https: a token or a SAS is sent to it")))
    }
}

/// By TLS, or within the machine.
fn is_hidden(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme() == "https" || is_local
}

/// The same of an endpoint as [`open`] shows it.
pub(super) fn is_private(endpoint: &str) -> bool {
    endpoint.parse().is_ok_and(|url| is_hidden(&url))
}

fn plain(name: &'static str, text: &str) -> Result<String, BlobError> {
    let is_plain = (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    if is_plain {
        Ok(text.to_owned())
    } else {
        Err(settings(name, format!("{name} must be letters, digits, `-`, `.` and `_`")))
    }
}

fn is_account(name: &str) -> bool {
    (3..=24).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'))
}

fn is_container(name: &str) -> bool {
    (3..=63).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn settings(setting: &'static str, detail: impl Into<String>) -> BlobError {
    BlobError::Settings { setting, detail: detail.into() }
}
