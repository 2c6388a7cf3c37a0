//! Managed identity: a token by the machine's metadata service, for the system-assigned identity or a user-assigned one.
//!
//! The client's own credential knows the system-assigned one only.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use azure_core::{
    Error, HttpClient, Method, Request, Url,
    auth::Secret,
    error::{ErrorKind, ResultExt as _},
};
use futures::TryStreamExt as _;
use serde::Deserialize;

use super::token::{Grant, TokenSource};

const API_VERSION: &str = "2018-02-01";
const RESOURCE: &str = "https://storage.azure.com/";
const ANSWER_LEN_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Managed {
    pub(super) http: Arc<dyn HttpClient>,
    /// The service's address, without a path.
    pub(super) endpoint: Url,
    pub(super) client_id: Option<String>,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    /// Seconds, as a text or as a number.
    expires_in: serde_json::Value,
}

impl Granted {
    fn lives(&self) -> Option<Duration> {
        let seconds = match &self.expires_in {
            serde_json::Value::String(text) => text.parse().ok()?,
            number => number.as_u64()?,
        };
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
}

#[async_trait]
impl TokenSource for Managed {
    async fn fetch(&self) -> azure_core::Result<Grant> {
        let mut url = self.endpoint.clone();
        url.set_path("/metadata/identity/oauth2/token");
        url.query_pairs_mut().append_pair("api-version", API_VERSION).append_pair("resource", RESOURCE);
        if let Some(client_id) = &self.client_id {
            url.query_pairs_mut().append_pair("client_id", client_id);
        }
        let mut request = Request::new(url, Method::Get);
        // Without it the service answers nobody, so that a request that was forged through a page is told nothing.
        request.insert_header("metadata", "true");
        let mut body = self.http.execute_request(&request).await?.into_body();
        let mut answer = Vec::new();
        while let Some(chunk) = body.try_next().await? {
            answer.extend_from_slice(&chunk);
            if answer.len() > ANSWER_LEN_MAX {
                return Err(Error::message(ErrorKind::Credential, "an answer without an end"));
            }
        }
        let granted: Granted =
            serde_json::from_slice(&answer).context(ErrorKind::Credential, "an answer without a token")?;
        let lives = granted
            .lives()
            .ok_or_else(|| Error::message(ErrorKind::Credential, "a token that has ended already"))?;
        Ok(Grant { token: Secret::new(granted.access_token), lives })
    }
}
