//! The listener's own certificate.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use leasehold_server::{Config, Edges, Service, Stores};
use leasehold_testkit::ManualTimer;
use leasehold_types::ErrorCode;
use rustls::{
    ClientConfig,
    pki_types::CertificateDer,
    version::{TLS12, TLS13},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::client::TlsStream;

use super::{
    authority::Authority,
    relay::{connect, trusting, trusting_by},
};
use crate::served::{Served, config_in, eventually, soon};

/// Longer than any test lets pass.
const LONG: Duration = Duration::from_secs(12 * 60 * 60);
/// Longer than what passes between two looks at the files.
const A_LOOK: Duration = Duration::from_secs(6);

/// A replica whose timers end when a test says so.
struct Stage {
    dir: TempDir,
    authority: Authority,
    timer: ManualTimer,
    served: Served,
}

impl Stage {
    async fn new(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::in_dir(&dir.path().join("pki"));
        let mut config = config_in(dir.path());
        authority.vouch_for("a", &mut config);
        for time in [
            &mut config.limits.head_time_max,
            &mut config.limits.keep_alive_time_max,
            &mut config.limits.stall_time_max,
        ] {
            *time = LONG;
        }
        change(&mut config);
        let timer = ManualTimer::new();
        let edges = Edges { timer: Arc::new(timer.clone()), ..Edges::system() };
        let stores = Stores::embedded(&config, &edges).unwrap();
        let listener = TcpListener::bind(config.listen_addr()).await.unwrap();
        let served = Served::start_by(listener, config, edges, stores).await;
        Self { dir, authority, timer, served }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let config = Arc::new(trusting(&self.authority.ca_file()));
        soon("a handshake", connect(self.served.address, config)).await.unwrap()
    }

    async fn reloads(&self, outcome: &str) -> u64 {
        let name = format!("leasehold_tls_reloads_total{{of=\"listener\",outcome=\"{outcome}\"}}");
        self.served.metric(&name).await
    }

    /// Lets time pass until the files were looked at, and were found so, `count` times.
    async fn look_until(&self, outcome: &str, count: u64) {
        eventually("the files were looked at", async || {
            self.timer.elapse(A_LOOK);
            self.reloads(outcome).await >= count
        })
        .await;
    }
}

/// By which certificate the other side is known.
fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

async fn healthy(stream: &mut TlsStream<TcpStream>) -> bool {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
    let mut read = Vec::new();
    let mut piece = [0; 1024];
    while !read.trim_ascii_end().ends_with(b"}") {
        let len = soon("an answer", stream.read(&mut piece)).await.unwrap();
        if len == 0 {
            return false;
        }
        read.extend_from_slice(&piece[..len]);
    }
    read.starts_with(b"HTTP/1.1 200")
}

#[tokio::test]
async fn a_pair_that_changes_is_taken_up_while_connections_go_on() {
    let stage = Stage::new(|_| {}).await;
    let mut before = stage.connect().await;
    assert!(healthy(&mut before).await);
    let old = shown(&before);
    let ends = "leasehold_tls_certificate_expiry_timestamp_seconds";
    let ended = stage.served.metric(ends).await;
    stage.authority.issue_until("a", 4001);
    stage.look_until("done", 1).await;
    let mut after = stage.connect().await;
    assert_ne!(shown(&after), old);
    assert!(stage.served.metric(ends).await > ended);
    for stream in [&mut before, &mut after] {
        assert!(healthy(stream).await, "a connection that was made goes on");
    }
    assert_eq!(stage.reloads("failed").await, 0);
}

#[tokio::test]
async fn a_broken_pair_leaves_the_last_good_one_and_is_told() {
    let stage = Stage::new(|_| {}).await;
    let good = shown(&stage.connect().await);
    let other = stage.authority.issue("b");
    std::fs::copy(other.key_file.unwrap(), stage.dir.path().join("pki/a.key.pem")).unwrap();
    stage.look_until("failed", 2).await;
    assert_eq!(shown(&stage.connect().await), good);
    assert_eq!(stage.reloads("done").await, 0);
    // Mended by whoever was told.
    std::fs::copy(other.cert_file.unwrap(), stage.dir.path().join("pki/a.cert.pem")).unwrap();
    stage.look_until("done", 1).await;
    assert_ne!(shown(&stage.connect().await), good);
}

#[tokio::test]
async fn a_pair_that_is_broken_at_the_start_is_refused_by_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::in_dir(&dir.path().join("pki"));
    let mut config = config_in(dir.path());
    authority.vouch_for("a", &mut config);
    let other = authority.issue("b");
    config.tls.key_file = other.key_file;
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let refused = Service::build_with(config, Edges::system(), stores).await.err().unwrap();
    assert_eq!(refused.code(), ErrorCode::InvalidConfiguration);
    let said = refused.to_string();
    assert!(said.contains("`tls.key_file`") && said.contains("b.key.pem"), "{said}");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_cut() {
    let stage = Stage::new(|config| config.limits.head_time_max = Duration::from_secs(10)).await;
    let cut = async || stage.served.metric("leasehold_connections_cut_total{reason=\"handshake\"}").await;
    assert_eq!(cut().await, 0);
    let asleep = stage.timer.sleepers();
    let mut silent = TcpStream::connect(stage.served.address).await.unwrap();
    let mut halting = TcpStream::connect(stage.served.address).await.unwrap();
    // The head of a record that announces 512 bytes.
    halting.write_all(&[22, 3, 1, 2, 0]).await.unwrap();
    eventually("both are waited for", async || stage.timer.sleepers() >= asleep + 2).await;
    stage.timer.elapse(Duration::from_secs(11));
    for stream in [&mut silent, &mut halting] {
        let mut rest = Vec::new();
        // An end that a reset makes is one too.
        let _ = soon("the cut", stream.read_to_end(&mut rest)).await;
    }
    eventually("both are counted", async || cut().await == 2).await;
}

#[tokio::test]
async fn plain_http_is_told_that_tls_is_spoken() {
    let stage = Stage::new(|_| {}).await;
    let mut stream = TcpStream::connect(stage.served.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    soon("an answer", stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https"), "{answer}");
    assert!(healthy(&mut stage.connect().await).await);
}

async fn spoken(address: SocketAddr, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    soon("a handshake", connect(address, Arc::new(config))).await
}

#[tokio::test]
async fn tls_is_1_2_or_1_3_and_what_is_spoken_by_it_is_http_1_1() {
    let stage = Stage::new(|_| {}).await;
    let address = stage.served.address;
    for version in [&TLS12, &TLS13] {
        let mut config = trusting_by(&[version], &stage.authority.ca_file());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut stream = spoken(address, config).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert!(healthy(&mut stream).await);
    }
    let mut config = trusting(&stage.authority.ca_file());
    config.alpn_protocols = vec![b"h2".to_vec()];
    assert!(spoken(address, config).await.is_err(), "HTTP/2 alone is refused, and not misunderstood");
}
