//! The listener's own certificate.

use std::{path::PathBuf, sync::Arc};

use leasehold_types::Timestamp;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_rustls::TlsAcceptor;

use super::{
    certificate::ServedCertificate,
    from_files::{FromFiles, Looked},
    pem::TlsError,
};

/// What the listener speaks.
const ALPN: &[u8] = b"http/1.1";

/// The listener's TLS: 1.2 or 1.3, by the pair that its files hold. A connection that was made goes on whatever becomes of them.
#[derive(Debug)]
pub(crate) struct ListenerTls {
    pair: Arc<FromFiles<ServedCertificate>>,
    config: Arc<ServerConfig>,
}

/// The newest pair, for each connection that is made.
#[derive(Debug)]
struct Newest(Arc<FromFiles<ServedCertificate>>);

impl ResolvesServerCert for Newest {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.now().key())
    }
}

impl ListenerTls {
    /// By these files, read for the first time.
    pub(crate) fn read(cert_file: PathBuf, key_file: PathBuf) -> Result<Self, TlsError> {
        let files = vec![cert_file.clone(), key_file.clone()];
        let pair = Arc::new(FromFiles::read(files, move |contents| match contents {
            [cert, key] => ServedCertificate::of(&cert_file, cert, &key_file, key),
            _ => Err(TlsError::unusable(&cert_file, &"it was not read")),
        })?);
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let newest = Arc::new(Newest(Arc::clone(&pair)));
        let mut config = config.with_no_client_auth().with_cert_resolver(newest);
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { pair, config: Arc::new(config) })
    }

    /// What makes a connection of a stream.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Reads the files again.
    pub(crate) fn look(&self) -> Looked {
        self.pair.look()
    }

    /// The last moment at which the certificate in use is valid.
    pub(crate) fn not_after(&self) -> Timestamp {
        self.pair.now().not_after()
    }
}
