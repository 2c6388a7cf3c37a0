//! A tenant's data over HTTP: what a program would do.

use serde_json::{Value, json};

use crate::process::Replica;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self.status, 200 | 201)
    }

    #[track_caller]
    fn assert_acknowledged(&self) {
        assert!(self.is_acknowledged(), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn assert(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Replica {
    pub(crate) fn url(&self, key: &str, rest: &str) -> String {
        let (org, tenant) = key.split_once('/').unwrap();
        format!("{}/v1/orgs/{org}/tenants/{tenant}{rest}", self.endpoint)
    }

    /// Appends one event of kind `k` with `name` in its payload.
    pub(crate) async fn append(&self, key: &str, name: &str) -> Answer {
        let event = json!({ "kind": "k", "actor": "ada", "payload": { "name": name } });
        answer(client().post(self.url(key, "/events")).json(&event)).await
    }

    /// The same, which has to be acknowledged.
    pub(crate) async fn write(&self, key: &str, name: &str) {
        self.append(key, name).await.assert_acknowledged();
    }

    /// A page of events.
    pub(crate) async fn events(&self, key: &str) -> Answer {
        answer(client().get(self.url(key, "/events?limit=1000"))).await
    }

    /// A stream of a tenant's events that stays open as long as this answer is held.
    pub(crate) async fn follow(&self, key: &str) -> reqwest::Response {
        let request = client().get(self.url(key, "/events")).header("accept", "text/event-stream");
        request.send().await.unwrap().error_for_status().unwrap()
    }

    /// Whether it takes tenants.
    pub(crate) async fn is_ready(&self) -> bool {
        answer(client().get(format!("{}/readyz", self.endpoint))).await.status == 200
    }

    /// The names of a tenant's events.
    pub(crate) async fn names(&self, key: &str) -> Vec<String> {
        names_in(&self.events(key).await.assert(200).body)
    }
}

/// The names of the events of a page.
pub(crate) fn names_in(page: &Value) -> Vec<String> {
    let events = page["events"].as_array().unwrap();
    events.iter().map(|event| event["payload"]["name"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = response.bytes().await.unwrap();
    Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
}
