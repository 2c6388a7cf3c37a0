//! One request to one other replica.

use axum::{
    body::Body,
    http::{HeaderMap, Method, Request, Response, Uri, Version},
};
use hyper::body::Incoming;

use super::Forwarding;
use crate::problem::chain_of;

/// Why another replica did not answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// It was not reached: it has nothing of the request.
    NotSent(String),
    /// It may have the request.
    Lost(String),
    /// It may have the request, and lost the tenant before it answered.
    Gone,
    /// It did not answer in time, and may have the request.
    Late,
    /// It did not answer while this replica had time, and may have the request.
    Ended,
}

impl Forwarding {
    /// Sends a request to the replica at `endpoint`, and answers once its answer has begun.
    pub(super) async fn ask(
        &self,
        endpoint: &str,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Response<Incoming>, AskError> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let there: Uri = format!("{}{path}", endpoint.trim_end_matches('/'))
            .parse()
            .map_err(|error| AskError::NotSent(format!("{endpoint} is no address: {error}")))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = there;
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = headers;
        self.way.http().request(request).await.map_err(|error| {
            self.way.note(endpoint, &error);
            let said = chain_of(&error);
            if error.is_connect() { AskError::NotSent(said) } else { AskError::Lost(said) }
        })
    }
}
