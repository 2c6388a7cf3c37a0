//! Connections to replicas: HTTP/1.1, plain or by TLS. It is the client that replicas ask one another by.

use std::{error::Error, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use leasehold_lease::TokioTimer;
use leasehold_server::{TlsError, client_config, config_for_whoever_answers};
use leasehold_types::Timer as _;
use rustls::ClientConfig;
use url::Url;

use crate::error::CliError;

pub(crate) use http::Method;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Why there was no answer, or no more of one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// Nothing came for so long.
    #[error("no answer within {}", humantime::format_duration(*.0))]
    Late(Duration),
    /// The connection was not made, or broke.
    #[error("{0}")]
    Broken(String),
}

/// Asks replicas themselves: it knows no proxy and follows no redirect, since a replica names another one in an answer of its own.
#[derive(Debug)]
pub(super) struct Wire {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

/// An answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    response: Response<Incoming>,
    timeout: Duration,
}

impl Wire {
    /// Known by the authorities of `ca_file`, and of this machine where none is named. Each wait is bounded by `timeout`.
    pub(super) fn new(timeout: Duration, ca_file: Option<&Path>) -> Result<Self, CliError> {
        Self::by(timeout, client_config(ca_file))
    }

    /// To whoever answers: nothing is to be shown to them.
    pub(super) fn to_whoever_answers(timeout: Duration) -> Result<Self, CliError> {
        Self::by(timeout, config_for_whoever_answers())
    }

    fn by(timeout: Duration, tls: Result<Arc<ClientConfig>, TlsError>) -> Result<Self, CliError> {
        let tls = tls.map_err(|source| CliError::Authorities { source })?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_MAX.min(timeout)));
        let connector = HttpsConnector::from((tcp, tls));
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, timeout })
    }

    /// Asks, and answers once the answer has begun.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<Answer, WireError> {
        let mut request = Request::new(Full::from(body));
        *request.uri_mut() = url.as_str().parse().map_err(|error| broken(&error))?;
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let agent = HeaderValue::from_static(concat!("leasehold/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(header::USER_AGENT, agent);
        let asked = self.http.request(request);
        let response = within(self.timeout, async { asked.await.map_err(|error| broken(&error)) }).await?;
        Ok(Answer { response, timeout: self.timeout })
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// How long the body says that it is.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The next piece of the body; `None` once it has ended.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, WireError> {
        loop {
            let body = self.response.body_mut();
            let next = within(self.timeout, async { Ok(body.frame().await) }).await?;
            match next {
                None => return Ok(None),
                Some(frame) => {
                    // Trailers say nothing here.
                    if let Ok(piece) = frame.map_err(|error| broken(&error))?.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}

async fn within<T>(
    timeout: Duration,
    waited: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    tokio::select! {
        biased;
        done = waited => done,
        () = TokioTimer.sleep(timeout) => Err(WireError::Late(timeout)),
    }
}

/// What went wrong with all that led to it, since the first of it says nothing.
fn broken(error: &(dyn Error + 'static)) -> WireError {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let more = source.to_string();
        // Some say what their source says.
        if !said.ends_with(&more) {
            said = format!("{said}: {more}");
        }
        cause = source.source();
    }
    WireError::Broken(said)
}
