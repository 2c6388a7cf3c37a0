//! `[postgres]`: where leases live in the cloud pair.

use std::{path::PathBuf, time::Duration};

use leasehold_lease::{LeaseError, PostgresOptions, TlsMode};
use serde::{Deserialize, Deserializer, de};

use super::secret::{SecretSetting, SecretText};
use crate::ConfigError;

const SSLROOTCERT: &str = "postgres.sslrootcert";

/// The lease store in Postgres.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresSettings {
    /// The connection string: a libpq URL, or libpq's `key=value` form.
    pub url: Option<SecretText>,
    /// The file that holds the connection string. Read at the start.
    pub url_file: Option<PathBuf>,
    /// The schema that the tables are in.
    pub schema: String,
    /// The most connections of one replica, beside the two by which it renews.
    pub pool_max: usize,
    /// How the connection is protected. `None`: what the connection string says, else `prefer`.
    #[serde(deserialize_with = "tls_mode")]
    pub sslmode: Option<TlsMode>,
    /// A PEM file of the roots that are trusted instead of the system's.
    pub sslrootcert: Option<PathBuf>,
    /// How long a connection may take until it is ready.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// How long a call waits for a connection, and a statement for its answer.
    #[serde(with = "humantime_serde")]
    pub statement_timeout: Duration,
    /// How long a statement waits for a row that another one is changing.
    #[serde(with = "humantime_serde")]
    pub lock_timeout: Duration,
    /// Whether a replica that starts brings the tables to the version that it needs.
    pub migrate: bool,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        let options = PostgresOptions::new("");
        Self {
            url: None,
            url_file: None,
            schema: options.schema,
            pool_max: options.pool_max,
            sslmode: None,
            sslrootcert: None,
            connect_timeout: options.connect_limit,
            statement_timeout: options.statement_limit,
            lock_timeout: options.lock_limit,
            migrate: true,
        }
    }
}

impl PostgresSettings {
    /// The options of these settings, checked. Reads the files that they name; nothing else is reached.
    pub fn options(&self) -> Result<PostgresOptions, ConfigError> {
        let url = SecretSetting {
            key: "postgres.url",
            text: self.url.as_ref(),
            file_key: "postgres.url_file",
            file: self.url_file.as_deref(),
        };
        let Some((url, url_key)) = url.read()? else {
            return Err(ConfigError::Unusable {
                key: url.key,
                detail: format!("neither it nor `{}` is set", url.file_key),
            });
        };
        if self.lock_timeout >= self.statement_timeout {
            return Err(ConfigError::Unusable {
                key: "postgres.lock_timeout",
                detail: format!(
                    "{:?} is not shorter than `postgres.statement_timeout` ({:?}): a statement that waits would be given up before \
                     it gives up itself",
                    self.lock_timeout, self.statement_timeout
                ),
            });
        }
        // One thing at a time in what is right otherwise, so that what is wrong can be named.
        let mut right = PostgresOptions::new("postgres://host/database");
        right.schema.clone_from(&self.schema);
        checked("postgres.schema", &right)?;
        right.pool_max = self.pool_max;
        checked("postgres.pool_max", &right)?;
        let mut options = PostgresOptions::new(url.reveal());
        options.tls_mode = Some(TlsMode::Disable);
        checked(url_key, &options)?;
        options.tls_mode = self.sslmode;
        options.schema.clone_from(&self.schema);
        options.pool_max = self.pool_max;
        options.connect_limit = self.connect_timeout;
        options.statement_limit = self.statement_timeout;
        options.lock_limit = self.lock_timeout;
        options.root_file.clone_from(&self.sslrootcert);
        let mode = options.resolved_tls_mode().map_err(|error| named(url_key, &error))?;
        if self.sslrootcert.is_some() && mode < TlsMode::VerifyCa {
            return Err(ConfigError::Unusable {
                key: SSLROOTCERT,
                detail: format!("with sslmode {mode} no certificate is looked at: use verify-full"),
            });
        }
        checked(SSLROOTCERT, &options)?;
        Ok(options)
    }
}

fn checked(key: &'static str, options: &PostgresOptions) -> Result<(), ConfigError> {
    options.check().map_err(|error| named(key, &error))
}

fn named(key: &'static str, error: &LeaseError) -> ConfigError {
    let detail = match error {
        LeaseError::Misconfigured { detail } => detail.clone(),
        other => other.to_string(),
    };
    ConfigError::Unusable { key, detail }
}

fn tls_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TlsMode>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let expected = "one of disable, prefer, require, verify-ca, verify-full";
    let parse = |text: String| {
        text.parse().map_err(|_| de::Error::invalid_value(de::Unexpected::Str(&text), &expected))
    };
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> PostgresSettings {
        PostgresSettings { url: Some(url.into()), ..PostgresSettings::default() }
    }

    #[test]
    fn what_is_set_is_what_the_store_is_given() {
        let settings = PostgresSettings {
            schema: "other".into(),
            pool_max: 3,
            sslmode: Some(TlsMode::Require),
            connect_timeout: Duration::from_secs(7),
            statement_timeout: Duration::from_secs(6),
            lock_timeout: Duration::from_secs(1),
            ..settings("postgres://app:hunter2@db.internal/main?sslmode=disable")
        };
        let options = settings.options().unwrap();
        assert_eq!((options.schema.as_str(), options.pool_max), ("other", 3));
        assert_eq!(options.resolved_tls_mode().unwrap(), TlsMode::Require);
        assert_eq!(
            [options.connect_limit, options.statement_limit, options.lock_limit].map(|limit| limit.as_secs()),
            [7, 6, 1]
        );
        assert_eq!(options.place(), "db.internal:5432/main");
        assert!(!format!("{settings:?} {options:?}").contains("hunter2"));
    }

    #[test]
    fn the_connection_string_may_stand_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("url");
        std::fs::write(&path, "host=db dbname=main user=app password=hunter2\n").unwrap();
        let settings = PostgresSettings { url_file: Some(path), ..PostgresSettings::default() };
        assert_eq!(settings.options().unwrap().place(), "db:5432/main");
    }

    #[test]
    fn roots_are_read_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root.pem");
        std::fs::write(&path, "none").unwrap();
        let settings = PostgresSettings {
            sslmode: Some(TlsMode::VerifyFull),
            sslrootcert: Some(path.clone()),
            ..settings("postgres://db/main")
        };
        let said = settings.options().unwrap_err().to_string();
        assert!(said.contains("`postgres.sslrootcert`") && said.contains(&*path.to_string_lossy()), "{said}");
    }
}
