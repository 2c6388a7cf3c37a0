//! A certificate and its key, and what can be known of them without asking anybody.

use std::{path::Path, sync::Arc};

use leasehold_types::Timestamp;
use rustls::{
    client::verify_server_name,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use x509_cert::{Certificate, der::Decode as _};

use super::pem::{TlsError, certificates, private_key, read};

/// The certificate by which a replica is known, its key beside it.
#[derive(Debug)]
pub struct ServedCertificate {
    chain: Vec<CertificateDer<'static>>,
    not_before: Timestamp,
    not_after: Timestamp,
    key: Arc<CertifiedKey>,
}

impl ServedCertificate {
    /// Of two files: the certificate with what leads from it to an authority, and its key. They have to go together.
    pub fn read(cert_file: &Path, key_file: &Path) -> Result<Self, TlsError> {
        Self::of(cert_file, &read(cert_file)?, key_file, &read(key_file)?)
    }

    pub(super) fn of(cert_file: &Path, cert: &[u8], key_file: &Path, key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(cert_file, cert)?;
        let key: PrivateKeyDer<'static> = private_key(key_file, key)?;
        let own =
            chain.first().ok_or(TlsError::Nothing { path: cert_file.to_owned(), what: "certificate" })?;
        let (not_before, not_after) =
            validity_of(own).map_err(|detail| TlsError::unusable(cert_file, &detail))?;
        let certified = CertifiedKey::from_der(chain.clone(), key, &ring::default_provider());
        let key = certified.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let detail = format!("it is not the key of {}", cert_file.display());
                TlsError::unusable(key_file, &detail)
            }
            rustls::Error::InvalidCertificate(error) => TlsError::unusable(cert_file, &error),
            error => TlsError::unusable(key_file, &error),
        })?;
        Ok(Self { chain, not_before, not_after, key: Arc::new(key) })
    }

    /// The first moment at which it is valid.
    #[must_use]
    pub const fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// The last one.
    #[must_use]
    pub const fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Whether it is one for this host: a DNS name or an IP address, as it stands in a URL.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let parsed = self.chain.first().and_then(|own| ParsedCertificate::try_from(own).ok());
        match (parsed, ServerName::try_from(host)) {
            (Some(parsed), Ok(name)) => verify_server_name(&parsed, &name).is_ok(),
            _ => false,
        }
    }

    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

/// From when until when a certificate is valid. The error says what is wrong with it.
fn validity_of(certificate: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), String> {
    let parsed =
        Certificate::from_der(certificate).map_err(|error| format!("it is no certificate: {error}"))?;
    let validity = parsed.tbs_certificate.validity;
    let [from, until] = [validity.not_before, validity.not_after].map(|time| {
        Timestamp::from_millis(i64::try_from(time.to_unix_duration().as_millis()).unwrap_or(i64::MAX))
    });
    Ok((from, until))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn a_pair_says_for_whom_and_for_how_long_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let [cert, key, other] = ["cert", "key", "other"].map(|name| dir.path().join(name));
        let names =
            ["a.example".to_owned(), "*.b.example".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2026, 1, 2);
        params.not_after = date_time_ymd(2026, 4, 2);
        fs::write(&cert, params.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(&key, pair.serialize_pem()).unwrap();
        fs::write(&other, KeyPair::generate().unwrap().serialize_pem()).unwrap();

        let read = ServedCertificate::read(&cert, &key).unwrap();
        assert_eq!(read.not_before(), Timestamp::from_millis(1_767_312_000_000));
        assert_eq!(read.not_after(), Timestamp::from_millis(1_775_088_000_000));
        for (host, is_covered) in [
            ("a.example", true),
            ("x.b.example", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("b.example", false),
            ("127.0.0.2", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(read.covers(host), is_covered, "{host}");
        }

        for (cert_file, key_file, part) in [
            (&cert, &other, "is not the key of"),
            (&key, &key, "no certificate in PEM"),
            (&cert, &cert, "no private key in PEM"),
            (&dir.path().join("none"), &key, "failed to read"),
        ] {
            let error = ServedCertificate::read(cert_file, key_file).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(part) && said.contains(&*dir.path().to_string_lossy()), "{said}");
            assert!(error.path().is_some());
            assert!(!said.contains("BEGIN"), "{said}");
        }
    }
}
