//! `[peers]`: how the replicas of a fleet know one another.

use std::{path::PathBuf, time::Duration};

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
    /// How long a connection to another replica may take.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self { secret_file: None, connect_timeout: Duration::from_secs(1) }
    }
}

impl PeerSettings {
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
    fn an_endpoint_that_is_not_plain_http_cannot_be_forwarded_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peers");
        std::fs::write(&path, "hunter2-hunter2-hunter2").unwrap();
        let mut config =
            crate::Config { endpoint: Some("https://a.example".to_owned()), ..crate::Config::default() };
        config.check().unwrap();
        config.peers.secret_file = Some(path);
        assert!(config.check().unwrap_err().to_string().starts_with("`endpoint` cannot be used"));
    }
}
