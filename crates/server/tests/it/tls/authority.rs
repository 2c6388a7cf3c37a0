//! Certificates as a test needs them.

use std::path::{Path, PathBuf};

use leasehold_server::{Config, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

/// An authority whose certificates lie in a directory.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: PathBuf,
}

impl Authority {
    /// A new one; its own certificate is `ca.pem` in `dir`.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, dir: dir.to_owned() }
    }

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// A pair for 127.0.0.1 and localhost, in files that are called by `name`. What is there is written over.
    pub(crate) fn issue(&self, name: &str) -> TlsSettings {
        self.issue_until(name, 4000)
    }

    /// The same, good until the end of a year.
    pub(crate) fn issue_until(&self, name: &str, year: i32) -> TlsSettings {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let [cert_file, key_file] = ["cert", "key"].map(|kind| self.dir.join(format!("{name}.{kind}.pem")));
        std::fs::write(&cert_file, cert.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        TlsSettings { cert_file: Some(cert_file), key_file: Some(key_file) }
    }

    /// A replica of this authority, which knows others by it.
    pub(crate) fn vouch_for(&self, name: &str, config: &mut Config) {
        config.tls = self.issue(name);
        config.peers.ca_file = Some(self.ca_file());
    }
}
