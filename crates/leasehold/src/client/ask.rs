//! One replica that is asked, and where it sends one.

use std::{path::Path, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use leasehold_types::ErrorCode;
use serde_json::Value;

use super::{
    Call, Endpoint,
    wire::{Answer, Method, Wire, WireError},
};
use crate::{error::CliError, output, problem::Problem};

/// The longest document that is read.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A replica that is asked, and where it sends one.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    endpoint: Endpoint,
    /// What it is shown, and no other replica: an answer does not say to whom a secret may be told.
    token: Option<HeaderValue>,
}

impl Client {
    /// Known by the authorities of `ca_file`, and of this machine where none is named.
    pub(crate) fn new(
        endpoint: Endpoint,
        timeout: Duration,
        ca_file: Option<&Path>,
    ) -> Result<Self, CliError> {
        Ok(Self { wire: Wire::new(timeout, ca_file)?, endpoint, token: None })
    }

    /// Of the process beside this one, whatever certificate it shows. It has no token, and [`with_token_of`](Self::with_token_of) is not for it.
    pub(crate) fn beside(endpoint: Endpoint, timeout: Duration) -> Result<Self, CliError> {
        Ok(Self { wire: Wire::to_whoever_answers(timeout)?, endpoint, token: None })
    }

    /// The same, showing the token in this file. It is shown to nobody who would have to be sent it in clear.
    pub(crate) fn with_token_of(self, file: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = file else { return Ok(self) };
        if !self.endpoint.keeps_secrets() {
            return Err(CliError::TokenInClear { endpoint: self.endpoint });
        }
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
        let url = Call::at(Method::GET, vec![path.to_owned()]).url(&self.endpoint);
        let asked = self.wire.ask(Method::GET, &url, HeaderMap::new(), String::new()).await;
        let answer = asked.map_err(unreachable(&self.endpoint))?;
        let status = answer.status();
        let body = body_of(&self.endpoint, answer).await?;
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
    pub(crate) async fn stream(&self, call: &Call) -> Result<(Endpoint, Answer), CliError> {
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
    async fn send(&self, endpoint: &Endpoint, call: &Call) -> Result<Answer, CliError> {
        let mut headers = HeaderMap::new();
        if let Some(epoch) = call.if_match {
            headers.insert(header::IF_MATCH, HeaderValue::from(epoch.get()));
        }
        if let Some(token) = &self.token {
            headers.insert(header::AUTHORIZATION, token.clone());
        }
        if call.json.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let body = call.json.as_ref().map(ToString::to_string).unwrap_or_default();
        let asked = self.wire.ask(call.method.clone(), &call.url(endpoint), headers, body).await;
        let answer = asked.map_err(unreachable(endpoint))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = body_of(endpoint, answer).await?;
        Err(match Problem::read(&body) {
            Some(problem) => problem.into(),
            None => not_a_replica(endpoint, format!("it answered {status}")),
        })
    }
}

async fn body_of(endpoint: &Endpoint, mut answer: Answer) -> Result<Vec<u8>, CliError> {
    let mut body = Vec::new();
    while let Some(piece) = answer.piece().await.map_err(unreachable(endpoint))? {
        if body.len() + piece.len() > BODY_BYTES_MAX {
            return Err(not_a_replica(endpoint, "its answer does not end"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error of a replica that could not be asked, or stopped answering.
pub(crate) fn unreachable(endpoint: &Endpoint) -> impl FnOnce(WireError) -> CliError + use<> {
    let endpoint = endpoint.clone();
    |source| CliError::Unreachable { endpoint, source }
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
        Client::new(endpoint, Duration::from_secs(1), None).unwrap()
    }

    #[test]
    fn a_token_is_shown_to_nobody_in_clear() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "lh_1_2\n").unwrap();
        let client = |endpoint: &str| {
            let client = Client::new(endpoint.parse().unwrap(), Duration::from_secs(1), None).unwrap();
            client.with_token_of(Some(file.path()))
        };
        for endpoint in ["https://ledgers.example.com", "http://127.0.0.1:1"] {
            assert!(client(endpoint).unwrap().token.unwrap().is_sensitive());
        }
        let refused = client("http://ledgers.example.com").unwrap_err();
        assert!(
            refused.to_string().contains("https://") && refused.to_string().contains("--ca-file"),
            "{refused}"
        );
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
