//! A replica on a loopback port of its own, and the few things that every test asks it.

use std::{net::SocketAddr, path::Path, time::Duration};

use leasehold_server::{Config, Edges, Listeners, ServeError, Service, Shutdown, Stores};
use leasehold_tenure::Router;
use reqwest::{Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use crate::tls::relay::Relay;

/// A replica that serves.
pub(crate) struct Served {
    /// Where this client asks it: a relay, where it speaks TLS.
    pub(crate) url: String,
    /// What it announces where nobody says otherwise.
    pub(crate) endpoint: String,
    pub(crate) address: SocketAddr,
    /// Where replicas reach it: there too, or at an address of their own.
    pub(crate) peers_address: SocketAddr,
    pub(crate) router: Router,
    shutdown: mpsc::Sender<Shutdown>,
    run: JoinHandle<Result<(), ServeError>>,
    client: reqwest::Client,
    /// The data directory, where this replica is the only one on it.
    _dir: Option<TempDir>,
    _relay: Option<Relay>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {} {}", self.status, String::from_utf8_lossy(&self.body))
        })
    }

    /// The answer's JSON, where it is the expected success.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The problem, where it is one with this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["type"], format!("urn:leasehold:problem:{code}"));
        for field in ["title", "detail", "next"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {problem}");
        }
        let executed = problem["executed"].as_str().unwrap();
        assert!(matches!(executed, "no" | "unknown"), "{problem}");
        problem
    }
}

/// Development mode in `dir`, on whichever port is free.
pub(crate) fn config_in(dir: &Path) -> Config {
    Config::dev(dir, Some("127.0.0.1:0".parse().unwrap())).unwrap()
}

impl Served {
    /// Development mode in a directory of its own.
    pub(crate) async fn alone() -> Self {
        Self::alone_with(|_| {}).await
    }

    /// The same, with other settings.
    pub(crate) async fn alone_with(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config_in(dir.path());
        change(&mut config);
        Self { _dir: Some(dir), ..Self::start(config).await }
    }

    /// A replica of this configuration.
    pub(crate) async fn start(config: Config) -> Self {
        let stores = Stores::embedded(&config, &Edges::system()).unwrap();
        Self::start_on(config, stores).await
    }

    /// The same on these stores.
    pub(crate) async fn start_on(config: Config, stores: Stores) -> Self {
        let listener = TcpListener::bind(config.listen_addr()).await.unwrap();
        Self::start_at(listener, config, stores).await
    }

    /// The same on this listener.
    pub(crate) async fn start_at(listener: TcpListener, config: Config, stores: Stores) -> Self {
        Self::start_by(listener, config, Edges::system(), stores).await
    }

    /// The same with these edges.
    pub(crate) async fn start_by(
        listener: TcpListener,
        config: Config,
        edges: Edges,
        stores: Stores,
    ) -> Self {
        let trusts = config.peers.ca_file.clone().unwrap_or_default();
        Self::start_trusting(&trusts, listener, config, edges, stores).await
    }

    /// The same, known by the authorities of a file where it speaks TLS.
    pub(crate) async fn start_trusting(
        trusts: &Path,
        listener: TcpListener,
        config: Config,
        edges: Edges,
        stores: Stores,
    ) -> Self {
        let served = Box::pin(Self::begin(trusts, listener, config, edges, stores)).await;
        served.until_ready().await;
        served
    }

    /// The same without waiting until it is ready.
    pub(crate) async fn begin_at(listener: TcpListener, config: Config, stores: Stores) -> Self {
        let trusts = config.peers.ca_file.clone().unwrap_or_default();
        Box::pin(Self::begin(&trusts, listener, config, Edges::system(), stores)).await
    }

    async fn begin(
        trusts: &Path,
        listener: TcpListener,
        config: Config,
        edges: Edges,
        stores: Stores,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let peers = match config.peers.listen {
            Some(listen) => Some(TcpListener::bind(listen).await.unwrap()),
            None => None,
        };
        let peers_address = peers.as_ref().map_or(address, |peers| peers.local_addr().unwrap());
        let endpoint = format!("{}://{peers_address}", config.tls.scheme());
        let relay = if config.tls.is_on() { Some(Relay::to(address, trusts).await) } else { None };
        let url = relay.as_ref().map_or_else(|| format!("http://{address}"), |relay| relay.url.clone());
        let service = Box::pin(Service::build_with(config, edges, stores)).await.unwrap();
        let router = service.router().clone();
        let (shutdown, told) = mpsc::channel(4);
        let run = tokio::spawn(service.run(Listeners { clients: listener, peers }, told));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            url,
            endpoint,
            address,
            peers_address,
            router,
            shutdown,
            run,
            client,
            _dir: None,
            _relay: relay,
        }
    }

    async fn until_ready(&self) {
        eventually("ready", async || self.get("/readyz").await.status == StatusCode::OK).await;
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answered {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Answered { status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.send(self.request(Method::GET, path)).await
    }

    /// A number of the metrics, by its whole name with labels.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = String::from_utf8(self.get("/metrics").await.body).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    pub(crate) async fn put(&self, path: &str) -> Answered {
        self.send(self.request(Method::PUT, path)).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answered {
        self.send(self.request(Method::POST, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Answered {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Appends an event of a kind to a tenant and answers its position.
    pub(crate) async fn append(&self, tenant: &str, kind: &str) -> String {
        let body = serde_json::json!({ "kind": kind, "actor": "ada" });
        let appended = self.post_json(&format!("{}/events", path_of(tenant)), &body).await.ok(201);
        appended["position"].as_str().unwrap().to_owned()
    }

    /// The kinds of all events of a tenant.
    pub(crate) async fn kinds(&self, tenant: &str) -> Vec<String> {
        let page = self.get(&format!("{}/events?limit=1000", path_of(tenant))).await.ok(200);
        assert_eq!(page["has_more"], false);
        let kinds = page["events"].as_array().unwrap().iter();
        kinds.map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn tell(&self, shutdown: Shutdown) {
        self.shutdown.send(shutdown).await.unwrap();
    }

    /// Goes as on a first SIGTERM.
    pub(crate) async fn stop(self) -> Result<(), ServeError> {
        self.tell(Shutdown::Graceful).await;
        self.ended().await
    }

    /// How the run ends.
    pub(crate) async fn ended(self) -> Result<(), ServeError> {
        self.run.await.unwrap()
    }
}

/// The path of `org/tenant`.
pub(crate) fn path_of(key: &str) -> String {
    let (org, tenant) = key.split_once('/').unwrap();
    format!("/v1/orgs/{org}/tenants/{tenant}")
}

/// Waits until `done` holds, for 10 s at the most.
pub(crate) async fn eventually<F: AsyncFn() -> bool>(what: &str, done: F) {
    for _ in 0..1_000 {
        if done().await {
            return;
        }
        pause(Duration::from_millis(10)).await;
    }
    panic!("not within 10 s: {what}");
}

/// What `future` gives within 10 s.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::select! {
        done = future => done,
        () = pause(Duration::from_secs(10)) => panic!("not within 10 s: {what}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a real server on a real socket is waited for in real time")]
pub(crate) async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}
