//! A server on loopback that answers what a test wrote down, request by request, and remembers what it was asked.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Response},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// An answer to one request.
#[derive(Clone, Debug)]
pub(crate) struct Say {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Say {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    /// A refusal by the blob service.
    pub(crate) fn refusal(status: u16, code: &str) -> Self {
        Self::status(status).with("x-ms-error-code", code)
    }

    /// A put that was executed.
    pub(crate) fn created() -> Self {
        Self::status(201)
            .with("etag", "\"0x1\"")
            .with("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            .with("date", "Thu, 01 Jan 2026 00:00:00 GMT")
            .with("x-ms-request-id", "00000000-0000-0000-0000-000000000000")
            .with("x-ms-request-server-encrypted", "true")
            .with("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")
    }

    /// A token service's answer.
    pub(crate) fn token(token: &str, expires_in: u64) -> Self {
        let mut say = Self::status(200).with("content-type", "application/json");
        say.body = format!(
            r#"{{"token_type":"Bearer","access_token":"{token}","expires_in":{expires_in},"ext_expires_in":{expires_in}}}"#
        );
        say
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }
}

#[derive(Debug, Default)]
struct Script {
    says: Mutex<VecDeque<Say>>,
    asked: Mutex<Vec<Asked>>,
}

/// The server. What it is asked beyond its script is a 500.
#[derive(Debug)]
pub(crate) struct Scripted {
    addr: SocketAddr,
    script: Arc<Script>,
    serving: JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start(says: impl IntoIterator<Item = Say>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let script =
            Arc::new(Script { says: Mutex::new(says.into_iter().collect()), asked: Mutex::default() });
        let app = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { addr, script, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }

    pub(crate) fn then(&self, say: Say) {
        self.script.says.lock().unwrap().push_back(say);
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    script.asked.lock().unwrap().push(Asked {
        method: parts.method.to_string(),
        uri: parts.uri.to_string(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    let say = script.says.lock().unwrap().pop_front().unwrap_or_else(|| Say::status(500));
    let mut response = Response::builder().status(say.status);
    for (name, value) in say.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(say.body)).unwrap()
}
