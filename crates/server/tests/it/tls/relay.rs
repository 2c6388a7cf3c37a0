//! A way into a replica that speaks TLS for who speaks plain HTTP, so that a test asks every replica alike.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    time_provider::TimeProvider,
    version::{TLS12, TLS13},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// It takes plain connections and carries each on by TLS.
pub(crate) struct Relay {
    pub(crate) url: String,
    relaying: JoinHandle<()>,
}

impl Relay {
    /// To `address`, known by the authorities of a file.
    pub(crate) async fn to(address: SocketAddr, ca_file: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let config = Arc::new(trusting(ca_file));
        let relaying = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut plain, _)) = listener.accept().await {
                let config = Arc::clone(&config);
                connections.spawn(async move {
                    if let Ok(mut tls) = connect(address, config).await {
                        let _ = copy_bidirectional(&mut plain, &mut tls).await;
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, relaying }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.relaying.abort();
    }
}

/// A calendar that stands in the year in which every certificate of these tests begins: who asks by a relay is not who judges them.
#[derive(Debug)]
struct InTime;

impl TimeProvider for InTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_590_000_000)))
    }
}

/// A client that knows servers by the authorities of a file.
pub(crate) fn trusting(ca_file: &Path) -> ClientConfig {
    trusting_by(&[&TLS12, &TLS13], ca_file)
}

/// The same of these versions.
pub(crate) fn trusting_by(versions: &[&'static SupportedProtocolVersion], ca_file: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    ClientConfig::builder_with_details(Arc::new(ring::default_provider()), Arc::new(InTime))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A connection by TLS.
pub(crate) async fn connect(
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    connect_by(TcpStream::connect(address).await?, config).await
}

/// The same by a connection that is there.
pub(crate) async fn connect_by(
    stream: TcpStream,
    config: Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::from(stream.peer_addr()?.ip());
    TlsConnector::from(config).connect(name, stream).await
}
