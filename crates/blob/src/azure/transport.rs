//! Connections with limits, errors without addresses, and the answer's `Retry-After`.

use std::{error::Error as _, time::Duration};

use async_trait::async_trait;
use azure_core::{
    Body, Error, HttpClient, Method, Request, Response, StatusCode,
    error::ErrorKind,
    headers::{DATE, DELETE_TYPE_PERMANENT, ERROR_CODE, HeaderName, Headers, RETRY_AFTER},
};
use bytes::BytesMut;
use futures::{TryStreamExt as _, future::ready};
use reqwest_012 as reqwest;

use super::{markup::Markup, options::AzureLimits};
use crate::BlobError;

/// The most that is read of an answer that says no.
const REFUSAL_LEN_MAX: usize = 64 * 1024;
const IDLE: Duration = Duration::from_secs(30);
const IDLE_MAX: usize = 32;

/// What became of a request that got no answer of use.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// The service answered, and it is a no.
    #[error("{status} {code}")]
    Refused { status: u16, code: String, retry_after: Option<Duration> },
    /// Nothing was sent.
    #[error("{0}")]
    Unreached(String),
    /// It was sent, and what became of it is not known.
    #[error("{0}")]
    Broken(String),
}

impl TransportError {
    /// The one that `error` is about, if it is about one.
    pub(super) fn within(error: &Error) -> Option<&Self> {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = source {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            source = error.source();
        }
        None
    }

    fn wrapped(self) -> Error {
        let kind = match &self {
            Self::Refused { status, code, .. } => StatusCode::try_from(*status)
                .map_or(ErrorKind::Other, |status| ErrorKind::http_response(status, Some(code.clone()))),
            Self::Unreached(_) | Self::Broken(_) => ErrorKind::Io,
        };
        Error::new(kind, self)
    }
}

/// One pool of connections for the container, its tokens and the machine's metadata.
#[derive(Debug)]
pub(super) struct Transport(reqwest::Client);

impl Transport {
    pub(super) fn new(limits: &AzureLimits) -> Result<Self, BlobError> {
        reqwest::Client::builder()
            .connect_timeout(limits.connect)
            .read_timeout(limits.silence)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .tcp_nodelay(true)
            // Credentials go where they were meant to go and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map(Self)
            .map_err(|error| BlobError::Settings {
                setting: "client",
                detail: format!("no HTTP client: {}", told(error)),
            })
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        let mut building = self.0.request(method_of(*request.method())?, request.url().clone());
        for (name, value) in request.headers().iter() {
            building = building.header(name.as_str(), value.as_str());
        }
        let Body::Bytes(body) = request.body().clone() else {
            return Err(Error::message(ErrorKind::Other, "a body that is no bytes"));
        };
        let answer = building.body(body).send().await.map_err(|error| {
            let is_unsent = error.is_connect() || error.is_builder();
            let detail = told(error);
            if is_unsent { TransportError::Unreached(detail) } else { TransportError::Broken(detail) }
                .wrapped()
        })?;
        let status = answer.status().as_u16();
        let mut headers = headers_of(answer.headers());
        if !answer.status().is_success() {
            return Err(refusal(status, &headers, answer).await.wrapped());
        }
        // The client holds this header to be always there; Azurite leaves it out.
        if *request.method() == Method::Delete && headers.get_optional_str(&DELETE_TYPE_PERMANENT).is_none() {
            headers.insert(DELETE_TYPE_PERMANENT, "true");
        }
        let status = StatusCode::try_from(status)
            .map_err(|_| Error::message(ErrorKind::DataConversion, "an unknown status"))?;
        let body = answer.bytes_stream().map_err(|error| TransportError::Broken(told(error)).wrapped());
        if !is_listing(request) {
            return Ok(Response::new(status, headers, Box::pin(body)));
        }
        let mut markup = Markup::new();
        let body = body.and_then(move |chunk| {
            ready(markup.look(&chunk).map(|()| chunk).map_err(TransportError::wrapped))
        });
        Ok(Response::new(status, headers, Box::pin(body)))
    }
}

/// Whether the answer is one that the client reads as XML. Nothing else that is asked of the service is.
fn is_listing(request: &Request) -> bool {
    request.url().query_pairs().any(|(name, value)| name == "comp" && value == "list")
}

/// What the service said, by its code and never by its text, which may hold what was sent.
async fn refusal(status: u16, headers: &Headers, mut answer: reqwest::Response) -> TransportError {
    let retry_after = retry_after(headers);
    let mut body = BytesMut::new();
    // Read to its end where that is near, so that the connection can be used again.
    while body.len() < REFUSAL_LEN_MAX {
        match answer.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    let code = headers.get_optional_string(&ERROR_CODE).filter(|code| is_code(code));
    let code = code.or_else(|| code_in(&body)).unwrap_or_else(|| "without a code".to_owned());
    TransportError::Refused { status, code, retry_after }
}

/// The code in the JSON of a token service (`{"error":"invalid_client",...}`).
fn code_in(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let code = value.get("error")?.as_str()?;
    is_code(code).then(|| code.to_owned())
}

fn is_code(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// How long the service asks to be left alone: in milliseconds, in seconds, or as a date against its own clock.
fn retry_after(headers: &Headers) -> Option<Duration> {
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        let millis = headers.get_optional_str(&HeaderName::from(name)).and_then(|text| text.parse().ok());
        if let Some(millis) = millis {
            return Some(Duration::from_millis(millis));
        }
    }
    let text = headers.get_optional_str(&RETRY_AFTER)?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = azure_core::date::parse_rfc1123(text).ok()?;
    let now = azure_core::date::parse_rfc1123(headers.get_optional_str(&DATE)?).ok()?;
    Some((then - now).try_into().unwrap_or(Duration::ZERO))
}

fn headers_of(map: &reqwest::header::HeaderMap) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in map {
        if let Ok(value) = value.to_str() {
            headers.insert(name.as_str().to_owned(), value.to_owned());
        }
    }
    headers
}

fn method_of(method: Method) -> azure_core::Result<reqwest::Method> {
    method
        .as_ref()
        .parse()
        .map_err(|_| Error::message(ErrorKind::DataConversion, "a method that HTTP does not know"))
}

/// The whole chain of what went wrong, without the address: a SAS is in it.
fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in pairs {
            headers.insert(*name, *value);
        }
        headers
    }

    #[test]
    fn a_retry_after_is_read_in_each_of_its_forms() {
        let date = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
        for (pairs, expected) in [
            (vec![("retry-after", "3")], Some(3_000)),
            (vec![("retry-after", "3"), ("retry-after-ms", "250")], Some(250)),
            (vec![("x-ms-retry-after-ms", "40")], Some(40)),
            (vec![("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT"), date], Some(7_000)),
            (vec![("retry-after", "Wed, 31 Dec 2025 00:00:07 GMT"), date], Some(0)),
            (vec![("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT")], None),
            (vec![("retry-after", "soon"), date], None),
            (vec![], None),
        ] {
            assert_eq!(retry_after(&headers(&pairs)), expected.map(Duration::from_millis), "{pairs:?}");
        }
    }

    #[test]
    fn a_code_is_a_word_and_nothing_else_of_the_body_is_told() {
        assert_eq!(
            code_in(br#"{"error":"invalid_client","error_description":"eyJ"}"#).unwrap(),
            "invalid_client"
        );
        for body in ["", "{}", r#"{"error":{}}"#, r#"{"error":"sig=abc%3D"}"#, r#"{"error":""}"#] {
            assert_eq!(code_in(body.as_bytes()), None, "{body}");
        }
    }
}
