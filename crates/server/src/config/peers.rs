//! `[peers]`: how the replicas of a fleet know one another.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::Deserialize;

use super::secret::read_file;
use crate::{ConfigError, forward::PeerSecrets};

const SECRET_FILE: &str = "peers.secret_file";

/// How the replicas of a fleet know one another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeerSettings {
    /// The file of the fleet's secret: one or two lines, both accepted, the first one sent. Read at the start. `None`: nothing is forwarded.
    pub secret_file: Option<PathBuf>,
    /// An address that replicas have to themselves: no request of theirs is taken anywhere else, and nobody else's is taken there. It is what
    /// the others are told (`endpoint`, where that is set, names it). `None`: they share the clients'.
    pub listen: Option<SocketAddr>,
    /// The authorities in PEM by which other replicas are known where their endpoint is https. It is read again when it changes. `None`:
    /// those of this machine.
    pub ca_file: Option<PathBuf>,
    /// How long a connection to another replica may take, TLS included.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self { secret_file: None, listen: None, ca_file: None, connect_timeout: Duration::from_secs(1) }
    }
}

impl PeerSettings {
    /// Refuses an address of their own that nobody could ask at, or that is the clients'.
    pub(super) fn check(&self, clients: SocketAddr) -> Result<(), ConfigError> {
        let refuse = |detail: String| Err(ConfigError::Unusable { key: "peers.listen", detail });
        match self.listen {
            Some(listen) if self.secret_file.is_none() => {
                refuse(format!("{listen}: without `peers.secret_file` no replica asks another one"))
            }
            Some(listen) if listen == clients && listen.port() != 0 => refuse(format!(
                "{listen} is `listen` too: replicas have an address of their own, or share that one"
            )),
            _ => Ok(()),
        }
    }

    /// The secrets of the file; `None` where none is configured.
    pub(crate) fn secrets(&self) -> Result<Option<PeerSecrets>, ConfigError> {
        let Some(path) = &self.secret_file else { return Ok(None) };
        let text = read_file(SECRET_FILE, path)?;
        PeerSecrets::parse(&text).map(Some).map_err(|detail| ConfigError::Unusable {
            key: SECRET_FILE,
            detail: format!("{} {detail}", path.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_no_secret_is_named_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peers");
        let settings = PeerSettings { secret_file: Some(path.clone()), ..PeerSettings::default() };
        for text in [
            "",
            "hunter2",
            "hunter2-hunter2-hunter2\nhunter2",
            "hunter2 hunter2 hunter2",
            "hunter2-é-hunter2-hunter2",
        ] {
            std::fs::write(&path, text).unwrap();
            let said = settings.secrets().map(|_| text).unwrap_err().to_string();
            assert!(said.contains("`peers.secret_file`") && said.contains("peers "), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        let line = "hunter2-hunter2-hunter2\n";
        std::fs::write(&path, line.repeat(3)).unwrap();
        assert!(settings.secrets().unwrap_err().to_string().contains("three"));
        std::fs::write(&path, line.repeat(2)).unwrap();
        assert!(settings.secrets().unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(settings.secrets(), Err(ConfigError::SecretFile { .. })));
        assert!(PeerSettings::default().secrets().unwrap().is_none());
    }

    #[test]
    fn an_address_of_their_own_takes_a_secret_and_is_not_the_clients() {
        let (clients, own) = ("127.0.0.1:7400".parse().unwrap(), "127.0.0.1:7401".parse().unwrap());
        let settings = PeerSettings { listen: Some(own), ..PeerSettings::default() };
        assert!(settings.check(clients).unwrap_err().to_string().contains("`peers.secret_file`"));
        let settings = PeerSettings { secret_file: Some("x".into()), ..settings };
        settings.check(clients).unwrap();
        let said = settings.check(own).unwrap_err().to_string();
        assert!(said.starts_with("`peers.listen` cannot be used") && said.contains("7401"), "{said}");
    }

    #[test]
    fn an_endpoint_is_what_the_listener_speaks_or_what_stands_before_it() {
        let config = |endpoint: &str, cert_file: Option<PathBuf>| {
            let tls = crate::TlsSettings { key_file: cert_file.clone(), cert_file };
            crate::Config { endpoint: Some(endpoint.to_owned()), tls, ..crate::Config::default() }
        };
        config("http://a.example", None).check().unwrap();
        config("https://a.example", None).check().unwrap();
        config("https://a.example", Some("x".into())).check().unwrap();
        let said = config("http://a.example", Some("x".into())).check().unwrap_err().to_string();
        assert!(said.starts_with("`endpoint` cannot be used"), "{said}");
    }
}
