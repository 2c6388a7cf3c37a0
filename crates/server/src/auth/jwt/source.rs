//! Where an issuer's keys come from.

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{body::Body, http::Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use leasehold_types::Timer;

use super::key::{Key, KeyError};
use crate::problem::chain_of;

/// The longest set that is read.
const BYTES_MAX: usize = 1024 * 1024;
/// How long a fetch may take, its connection included.
const FETCH_MAX: Duration = Duration::from_secs(10);

/// A client that speaks `https` by the machine's roots, and `http`.
pub(super) type Http = Client<hyper_rustls::HttpsConnector<HttpConnector>, Body>;

/// Where keys come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A file with a key set.
    File(PathBuf),
    /// An address that answers with one.
    Url(Uri, Box<Http>),
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("{0}")]
    Io(String),
    #[error("it answered {0}")]
    Status(u16),
    #[error("no answer within {FETCH_MAX:?}")]
    Late,
    #[error(transparent)]
    Keys(#[from] KeyError),
}

impl Source {
    /// Of an address; the connections are made in a tokio runtime.
    pub(super) fn of_url(url: Uri, tls: Arc<rustls::ClientConfig>) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(FETCH_MAX));
        let connector = hyper_rustls::HttpsConnector::from((http, tls));
        let http = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Self::Url(url, Box::new(http))
    }

    /// The keys as they are there now. A file's or an answer's length and time are bounded, and no other address is gone to.
    pub(super) async fn read(&self, timer: &dyn Timer) -> Result<Vec<Key>, SourceError> {
        let bytes = match self {
            Self::File(path) => {
                use tokio::io::AsyncReadExt as _;
                let failed = |error: std::io::Error| SourceError::Io(error.to_string());
                let mut bytes = Vec::new();
                let file = tokio::fs::File::open(path).await.map_err(failed)?;
                file.take(BYTES_MAX as u64).read_to_end(&mut bytes).await.map_err(failed)?;
                bytes
            }
            Self::Url(url, http) => {
                let fetched = async {
                    let answered = http.get(url.clone()).await;
                    let answered = answered.map_err(|error| SourceError::Io(chain_of(&error)))?;
                    if answered.status() != 200 {
                        return Err(SourceError::Status(answered.status().as_u16()));
                    }
                    let read = Limited::new(answered.into_body(), BYTES_MAX).collect().await;
                    Ok(read.map_err(|error| SourceError::Io(error.to_string()))?.to_bytes().to_vec())
                };
                tokio::select! {
                    biased;
                    fetched = fetched => fetched?,
                    () = timer.sleep(FETCH_MAX) => return Err(SourceError::Late),
                }
            }
        };
        Ok(Key::of_set(&bytes)?)
    }
}

/// Whether keys may be fetched there: nobody in between may change them, so in clear only from this machine.
pub(crate) fn check_url(text: &str) -> Result<Uri, &'static str> {
    let url: Uri = text.parse().map_err(|_| "it is no URL")?;
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match url.scheme_str() {
        Some("https") if !host.is_empty() => Ok(url),
        Some("http") if is_here => Ok(url),
        _ => Err("keys are fetched by https; by http only from a loopback address"),
    }
}
