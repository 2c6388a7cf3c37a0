//! `[tls]`: how the listener is known to who connects.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{
    AuthMode, Config, ConfigError,
    tls::{ListenerTls, TlsError},
};

const CERT_FILE: &str = "tls.cert_file";
const KEY_FILE: &str = "tls.key_file";

/// How the listener is known. Without the two files it speaks plain HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// The certificate in PEM, followed by what leads from it to an authority. It is read again when it changes.
    pub cert_file: Option<PathBuf>,
    /// Its key, in PEM. It is read again when it changes.
    pub key_file: Option<PathBuf>,
}

impl TlsSettings {
    /// The certificate's file and the key's; `None`: plain HTTP.
    pub fn files(&self) -> Result<Option<(&Path, &Path)>, ConfigError> {
        let half = |key, other| {
            let detail = format!("`{other}` is not set: a certificate and its key go together");
            Err(ConfigError::Unusable { key, detail })
        };
        match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) => half(CERT_FILE, KEY_FILE),
            (None, Some(_)) => half(KEY_FILE, CERT_FILE),
        }
    }

    /// Whether the listener speaks TLS.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.cert_file.is_some()
    }

    /// `https` or `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.is_on() { "https" } else { "http" }
    }

    /// The listener's TLS by what the files hold now.
    pub(crate) fn listener(&self) -> Result<Option<ListenerTls>, ConfigError> {
        let Some((cert_file, key_file)) = self.files()? else { return Ok(None) };
        let read = ListenerTls::read(cert_file.to_owned(), key_file.to_owned());
        read.map(Some).map_err(|error: TlsError| {
            let key = if error.path() == Some(key_file) { KEY_FILE } else { CERT_FILE };
            ConfigError::Unusable { key, detail: error.to_string() }
        })
    }
}

impl Config {
    /// What to say where tokens come in clear from other machines. It is no error: a mesh, or what stands before the replica, may encrypt them.
    #[must_use]
    pub fn warning_of_tokens_in_clear(&self) -> Option<String> {
        let listen = self.listen_addr();
        let is_open = self.auth.mode == AuthMode::Required && !self.tls.is_on() && !listen.ip().is_loopback();
        is_open.then(|| {
            format!(
                "{listen} takes tokens in plain HTTP: whoever reads along can use them; set `tls.cert_file` and `tls.key_file`, unless a \
                 mesh or what stands before it encrypts"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_cannot_be_used_names_its_key_and_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
        let settings = TlsSettings { cert_file: Some(cert.clone()), key_file: Some(key.clone()) };
        let refusal = || settings.listener().map(|_| ()).unwrap_err().to_string();
        let said = refusal();
        assert!(said.starts_with("`tls.cert_file` cannot be used") && said.contains("cert.pem"), "{said}");
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, "hunter2").unwrap();
        let said = refusal();
        assert!(said.starts_with("`tls.key_file` cannot be used") && said.contains("key.pem"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        let other = rcgen::KeyPair::generate().unwrap();
        std::fs::write(&key, other.serialize_pem()).unwrap();
        let said = refusal();
        assert!(said.contains("is not the key of") && said.contains("cert.pem"), "{said}");
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        assert!(settings.listener().unwrap().is_some());
        assert!(TlsSettings::default().listener().unwrap().is_none());
    }

    #[test]
    fn one_file_alone_is_refused() {
        for (cert_file, key_file, key) in
            [(Some("a".into()), None, CERT_FILE), (None, Some("a".into()), KEY_FILE)]
        {
            let said = TlsSettings { cert_file, key_file }.files().unwrap_err().to_string();
            assert!(said.starts_with(&format!("`{key}` cannot be used")), "{said}");
        }
    }
    #[test]
    fn tokens_in_clear_from_other_machines_are_worth_a_warning() {
        let mut config = Config { listen: Some("0.0.0.0:7400".parse().unwrap()), ..Config::default() };
        assert_eq!(config.warning_of_tokens_in_clear(), None, "there are none");
        config.auth.mode = AuthMode::Required;
        assert!(config.warning_of_tokens_in_clear().unwrap().contains("0.0.0.0:7400"));
        config.tls.cert_file = Some("a".into());
        assert_eq!(config.warning_of_tokens_in_clear(), None);
        config.tls.cert_file = None;
        config.listen = Some("127.0.0.1:7400".parse().unwrap());
        assert_eq!(config.warning_of_tokens_in_clear(), None);
    }
}
