//! How TLS is spoken: by rustls, as strictly as the mode says.

use std::{fmt, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::options::{TlsMode, misconfigured};
use crate::LeaseError;

/// The connector of a mode. Roots are read only where the mode looks at certificates.
pub(super) fn connector(mode: TlsMode, root_file: Option<&Path>) -> Result<MakeRustlsConnect, LeaseError> {
    let failed = |error: Error| misconfigured(&format!("TLS cannot be set up: {error}"));
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(failed)?;
    let config = match mode {
        TlsMode::VerifyFull => builder.with_root_certificates(roots(root_file)?),
        TlsMode::VerifyCa => {
            let verifier = WebPkiServerVerifier::builder_with_provider(
                Arc::new(roots(root_file)?),
                Arc::clone(&provider),
            )
            .build()
            .map_err(|error| misconfigured(&format!("the roots cannot be used: {error}")))?;
            let lenient = Lenient { provider, chain: Some(verifier) };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(lenient))
        }
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => {
            let lenient = Lenient { provider, chain: None };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(lenient))
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, LeaseError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = file {
        let failed = |detail: String| {
            misconfigured(&format!("the roots in {} cannot be used: {detail}", file.display()))
        };
        let read = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
        for certificate in read {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(failed("no certificate is in it".into()));
        }
    } else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err(misconfigured("the system has no roots: name a file of roots"));
        }
    }
    Ok(roots)
}

/// Looks at less than a whole certificate, as the weaker modes of libpq do. The handshake's signature is always checked.
struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Where there is one, the certificate must come from its roots, for whatever name.
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl fmt::Debug for Lenient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lenient").field("chain", &self.chain.is_some()).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: the rest of it holds.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
