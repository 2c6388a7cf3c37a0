//! How strictly each TLS mode looks at the server, which stands behind a front of ours that ends TLS.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use leasehold_lease::{LeaseError, PostgresInspector, PostgresLeaseStore, PostgresOptions, TlsMode};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::server::{Schema, Way, url};

/// What a client sends to ask for TLS: eight bytes, whose last four are 80877103.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A front that speaks TLS with a certificate of its own root for one name, and plain Postgres behind.
struct Front {
    address: SocketAddr,
    root_file: PathBuf,
    /// A root that has nothing to do with it.
    other_root_file: PathBuf,
    _dir: TempDir,
}

fn root() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Front {
    async fn of(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (root, other) = (root(), root());
        let (root_file, other_root_file) = (dir.path().join("root.pem"), dir.path().join("other.pem"));
        std::fs::write(&root_file, root.pem()).unwrap();
        std::fs::write(&other_root_file, other.pem()).unwrap();

        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.into()]).unwrap().signed_by(&key, &root).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone()));
            }
        });
        Self { address, root_file, other_root_file, _dir: dir }
    }
}

/// A client that gives up in the middle ends it.
async fn serve(mut client: TcpStream, acceptor: TlsAcceptor) -> std::io::Result<()> {
    let mut request = [0; SSL_REQUEST.len()];
    client.read_exact(&mut request).await?;
    assert_eq!(request, SSL_REQUEST, "a client that does not ask for TLS first is not let in");
    client.write_all(b"S").await?;
    let mut client = acceptor.accept(client).await?;
    let config: tokio_postgres::Config = url(Way::Direct).parse().unwrap();
    let tokio_postgres::config::Host::Tcp(host) = &config.get_hosts()[0] else { panic!("no TCP address") };
    let mut server = TcpStream::connect((host.as_str(), config.get_ports()[0])).await?;
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

/// Connects to the front as `localhost`.
async fn connect(
    schema: &Schema,
    front: &Front,
    mode: TlsMode,
    root_file: Option<&PathBuf>,
) -> Result<PostgresLeaseStore, LeaseError> {
    let direct = url(Way::Direct);
    let (user, rest) = direct.split_once('@').unwrap();
    let (_, database) = rest.split_once('/').unwrap();
    let root = root_file.map_or(String::new(), |file| format!("&sslrootcert={}", file.display()));
    let port = front.address.port();
    let database = database.split('?').next().unwrap();
    let url = format!("{user}@localhost:{port}/{database}?hostaddr=127.0.0.1&sslmode={mode}{root}");
    let mut options = PostgresOptions::new(url);
    options.schema = schema.name().into();
    PostgresLeaseStore::connect(options).await
}

#[tokio::test]
async fn each_mode_looks_at_as_much_as_it_says() {
    let schema = Schema::made(Way::Direct).await;
    let (ours, elsewhere) = (Front::of("localhost").await, Front::of("db.elsewhere").await);
    for (front, mode, trusts_its_root, is_let_in) in [
        (&ours, TlsMode::VerifyFull, true, true),
        (&ours, TlsMode::VerifyFull, false, false),
        (&elsewhere, TlsMode::VerifyFull, true, false),
        (&ours, TlsMode::VerifyCa, true, true),
        (&elsewhere, TlsMode::VerifyCa, true, true),
        (&elsewhere, TlsMode::VerifyCa, false, false),
        (&elsewhere, TlsMode::Require, false, true),
        (&elsewhere, TlsMode::Prefer, false, true),
    ] {
        let root_file = if trusts_its_root { &front.root_file } else { &front.other_root_file };
        let connected = connect(&schema, front, mode, Some(root_file)).await;
        assert_eq!(connected.is_ok(), is_let_in, "{mode}, its root {trusts_its_root}: {connected:?}");
        if let Err(error) = connected {
            assert!(matches!(error, LeaseError::Unavailable { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_used_only_by_the_modes_that_allow_it() {
    let schema = Schema::made(Way::Direct).await;
    let offers_tls = schema.admin.query_one("SHOW ssl", &[]).await.unwrap().get::<_, String>(0) == "on";
    for (mode, is_let_in) in
        [(TlsMode::Disable, true), (TlsMode::Prefer, true), (TlsMode::Require, offers_tls)]
    {
        let mut options = schema.options.clone();
        options.tls_mode = Some(mode);
        let connected = PostgresLeaseStore::connect(options).await;
        assert_eq!(connected.is_ok(), is_let_in, "{mode}: {connected:?}");
    }
}

#[tokio::test]
async fn an_inspection_tells_whether_tls_is_spoken() {
    let front = Front::of("localhost").await;
    let direct = url(Way::Direct);
    let (user, rest) = direct.split_once('@').unwrap();
    let database = rest.split_once('/').unwrap().1.split('?').next().unwrap();
    let ours = format!("{user}@{}/{database}", front.address);
    for (url, mode, is_used) in [
        (ours.clone(), TlsMode::Prefer, true),
        (ours, TlsMode::Require, true),
        (direct.clone(), TlsMode::Disable, false),
    ] {
        let mut options = PostgresOptions::new(url);
        options.tls_mode = Some(mode);
        let tls = PostgresInspector::connect(&options).await.unwrap().tls().await.unwrap();
        assert_eq!((tls.mode, tls.is_used, tls.is_local), (mode, is_used, true));
    }
}
