//! Asking replicas over HTTP.

use std::{fmt, path::Path, str::FromStr, time::Duration};

use leasehold_types::{Epoch, ErrorCode, LeaseKey, OrgSlug};
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{self, HeaderValue},
    redirect,
};
use serde_json::Value;

use crate::{error::CliError, output, problem::Problem};

/// The longest document that is read.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Where a replica answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint(Url);

/// A text that is no endpoint.
#[derive(Debug, thiserror::Error)]
#[error("an endpoint is a URL such as http://127.0.0.1:7400")]
pub(crate) struct EndpointError;

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let url: Url = text.parse().map_err(|_| EndpointError)?;
        let is_plain = url.scheme() == "http" && url.query().is_none() && url.fragment().is_none();
        if is_plain && url.has_host() { Ok(Self(url)) } else { Err(EndpointError) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// What is asked of a replica.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    if_match: Option<Epoch>,
    json: Option<Value>,
    follows_state: bool,
}

impl Call {
    pub(crate) fn of_tenant(method: Method, key: &LeaseKey) -> Self {
        let mut call = Self::of_org(method, key.org());
        call.path.push(key.tenant().to_string());
        call
    }

    pub(crate) fn of_org(method: Method, org: &OrgSlug) -> Self {
        let path = ["v1", "orgs", org.as_str(), "tenants"].map(str::to_owned).to_vec();
        Self::at(method, path)
    }

    fn at(method: Method, path: Vec<String>) -> Self {
        Self { method, path, query: Vec::new(), if_match: None, json: None, follows_state: false }
    }

    pub(crate) fn verb(mut self, verb: &str) -> Self {
        self.path.push(verb.to_owned());
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn if_match(mut self, epoch: Option<Epoch>) -> Self {
        self.if_match = epoch;
        self
    }

    /// With this body.
    pub(crate) fn json(mut self, body: Value) -> Self {
        self.json = Some(body);
        self
    }

    /// Any replica answers this for itself: where it says that another one holds the tenant, that one is to be asked.
    pub(crate) fn follows_state(mut self) -> Self {
        self.follows_state = true;
        self
    }

    fn url(&self, endpoint: &Endpoint) -> Url {
        let mut url = endpoint.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(&self.path);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

/// A replica that is asked, and where it sends one.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    /// What it is shown, and no other replica: an answer does not say to whom a secret may be told.
    token: Option<HeaderValue>,
}

impl Client {
    pub(crate) fn new(endpoint: Endpoint, timeout: Duration) -> Result<Self, CliError> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("leasehold/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_MAX.min(timeout))
            .read_timeout(timeout)
            // A replica is asked itself, and names another one in an answer of its own.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .build();
        match http {
            Ok(http) => Ok(Self { http, endpoint, token: None }),
            Err(source) => Err(CliError::Unreachable { endpoint, source }),
        }
    }

    /// The same, showing the token in this file.
    pub(crate) fn with_token_of(self, file: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = file else { return Ok(self) };
        let failed = |source| CliError::Local { action: "read", path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let token = Some(text.trim()).filter(|token| !token.is_empty());
        let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        let mut value = value.ok_or_else(|| CliError::NoTokenInFile { path: path.to_owned() })?;
        value.set_sensitive(true);
        Ok(Self { token: Some(value), ..self })
    }

    /// Whether the replica that was named stands well by `path`, and the word that it has for how it stands.
    pub(crate) async fn health(&self, path: &str) -> Result<(bool, String), CliError> {
        let call = Call::at(Method::GET, vec![path.to_owned()]);
        let response = self.http.get(call.url(&self.endpoint)).send().await;
        let response = response.map_err(unreachable(&self.endpoint))?;
        let status = response.status();
        let body = body_of(&self.endpoint, response).await?;
        let health: Option<Value> = serde_json::from_slice(&body).ok();
        match health.as_ref().and_then(|health| health["status"].as_str()) {
            Some(word) if status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE => {
                Ok((status.is_success(), word.to_owned()))
            }
            _ => Err(not_a_replica(&self.endpoint, format!("it answered {status}"))),
        }
    }

    /// The answer to `call`, from the replica that was named or, once, from the one that holds the tenant.
    pub(crate) async fn document(&self, call: &Call) -> Result<Value, CliError> {
        let first = self.document_at(&self.endpoint, call).await;
        let Some(elsewhere) = self.elsewhere(call, &first) else { return first };
        Self::note_move(&elsewhere);
        match (self.document_at(&elsewhere, call).await, first) {
            // To know that it is held there is more than to know nothing; but what was to be done there was not done.
            (Err(CliError::Unreachable { .. }), first) if first.is_err() || call.method == Method::GET => {
                self.note_silence(&elsewhere);
                first
            }
            (second, _) => second,
        }
    }

    /// The same for an answer that is no document: its body is the caller's to read, from the replica that is named with it.
    pub(crate) async fn stream(&self, call: &Call) -> Result<(Endpoint, Response), CliError> {
        let error = match self.send(&self.endpoint, call).await {
            Ok(response) => return Ok((self.endpoint.clone(), response)),
            Err(error) => error,
        };
        let CliError::Problem(problem) = &error else { return Err(error) };
        let Some(elsewhere) = self.named_by(problem) else { return Err(error) };
        Self::note_move(&elsewhere);
        match self.send(&elsewhere, call).await {
            Ok(response) => Ok((elsewhere, response)),
            Err(CliError::Unreachable { .. }) => {
                self.note_silence(&elsewhere);
                Err(error)
            }
            Err(other) => Err(other),
        }
    }

    fn note_move(elsewhere: &Endpoint) {
        output::note(&format!("another replica holds it: asking {elsewhere}"));
    }

    fn note_silence(&self, elsewhere: &Endpoint) {
        output::note(&format!("{elsewhere} does not answer; this is what {} knows", self.endpoint));
    }

    fn elsewhere(&self, call: &Call, answer: &Result<Value, CliError>) -> Option<Endpoint> {
        match answer {
            Ok(status) if call.follows_state && status["state"] == "held" => {
                self.another(status["endpoint"].as_str()?)
            }
            Err(CliError::Problem(problem)) => self.named_by(problem),
            _ => None,
        }
    }

    fn named_by(&self, problem: &Problem) -> Option<Endpoint> {
        (problem.code() == ErrorCode::LeaseHeld).then(|| self.another(problem.endpoint()?))?
    }

    fn another(&self, endpoint: &str) -> Option<Endpoint> {
        if self.token.is_some() {
            return None;
        }
        endpoint.parse().ok().filter(|endpoint| *endpoint != self.endpoint)
    }

    async fn document_at(&self, endpoint: &Endpoint, call: &Call) -> Result<Value, CliError> {
        let body = body_of(endpoint, self.send(endpoint, call).await?).await?;
        serde_json::from_slice(&body).map_err(|_| not_a_replica(endpoint, "its answer is not JSON"))
    }

    /// A success, or the replica's problem.
    async fn send(&self, endpoint: &Endpoint, call: &Call) -> Result<Response, CliError> {
        let mut request = self.http.request(call.method.clone(), call.url(endpoint));
        if let Some(epoch) = call.if_match {
            request = request.header(header::IF_MATCH, epoch.to_string());
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token.clone());
        }
        if let Some(body) = &call.json {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(unreachable(endpoint))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = body_of(endpoint, response).await?;
        Err(match Problem::read(&body) {
            Some(problem) => problem.into(),
            None => not_a_replica(endpoint, format!("it answered {status}")),
        })
    }
}

async fn body_of(endpoint: &Endpoint, mut response: Response) -> Result<Vec<u8>, CliError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unreachable(endpoint))? {
        if body.len() + piece.len() > BODY_BYTES_MAX {
            return Err(not_a_replica(endpoint, "its answer does not end"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error of a replica that could not be asked, or stopped answering.
pub(crate) fn unreachable(endpoint: &Endpoint) -> impl FnOnce(reqwest::Error) -> CliError + use<> {
    let endpoint = endpoint.clone();
    // The address is in ours already.
    |source| CliError::Unreachable { endpoint, source: source.without_url() }
}

/// The error of something that answers, and not as a replica does.
pub(crate) fn not_a_replica(endpoint: &Endpoint, detail: impl Into<String>) -> CliError {
    CliError::NotAReplica { endpoint: endpoint.clone(), detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client() -> Client {
        let endpoint = "http://127.0.0.1:1".parse().unwrap();
        Client::new(endpoint, Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn an_endpoint_is_a_plain_http_url() {
        let endpoint: Endpoint = "http://127.0.0.1:7400/".parse().unwrap();
        assert_eq!(endpoint.to_string(), "http://127.0.0.1:7400");
        let call =
            Call::of_tenant(Method::POST, &"acme/u".parse().unwrap()).verb("snapshot").with("x", "a b");
        assert_eq!(
            call.url(&"http://h/base".parse().unwrap()).as_str(),
            "http://h/base/v1/orgs/acme/tenants/u/snapshot?x=a+b"
        );
        for text in ["", "127.0.0.1:7400", "https://h", "ftp://h", "http://h?x", "unix:/x"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn another_replica_is_asked_only_where_it_is_another() {
        let client = client();
        let call = Call::of_tenant(Method::GET, &"acme/u".parse().unwrap()).follows_state();
        let held = |endpoint| Ok(json!({ "state": "held", "endpoint": endpoint }));
        assert!(client.elsewhere(&call, &held("http://127.0.0.1:2")).is_some());
        assert!(client.elsewhere(&call, &held("http://127.0.0.1:1")).is_none());
        assert!(client.elsewhere(&call, &held("file:///x")).is_none());
        assert!(client.elsewhere(&call, &Ok(json!({ "state": "open", "endpoint": "http://b:1" }))).is_none());
        let problem = |code| {
            let body = json!({ "code": code, "endpoint": "http://127.0.0.1:2" });
            Err(Problem::read(body.to_string().as_bytes()).unwrap().into())
        };
        assert!(client.elsewhere(&call, &problem("lease_held")).is_some());
        assert!(client.elsewhere(&call, &problem("draining")).is_none());
    }
}
