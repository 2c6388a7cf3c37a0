//! What it takes to reach the database.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::config::{Host, SslMode};

use super::{conninfo, tls};
use crate::LeaseError;

/// The most connections that a store's pool may be given.
const POOL_MAX: usize = 1_000;
/// The longest name of a schema (Postgres' NAMEDATALEN).
const SCHEMA_LEN_MAX: usize = 63;
/// After how long without traffic the network is asked whether the server is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// How much the connection is protected: libpq's `sslmode`, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS where the server offers it; its certificate is not looked at. Keeps out nobody who can change traffic.
    Prefer,
    /// TLS, or no connection; the certificate is not looked at.
    Require,
    /// The certificate must come from a trusted root, for whatever name.
    VerifyCa,
    /// The certificate must come from a trusted root and name the host.
    VerifyFull,
}

impl TlsMode {
    /// The mode as libpq spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl FromStr for TlsMode {
    type Err = LeaseError;

    fn from_str(text: &str) -> Result<Self, LeaseError> {
        [Self::Disable, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| {
                misconfigured("its sslmode is none of disable, prefer, require, verify-ca, verify-full")
            })
    }
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a [`PostgresLeaseStore`](super::PostgresLeaseStore) reaches its database. A replica opens at the most `pool_max` connections and
/// two more, by which it renews.
#[derive(Clone)]
pub struct PostgresOptions {
    /// May carry a password: never shown.
    url: String,
    /// The schema that the tables are in: `[a-z_][a-z0-9_]{0,62}`. Default `leasehold`.
    pub schema: String,
    /// The most connections for everything but renewals. Default 8.
    pub pool_max: usize,
    /// How long a connection may take until it is ready to be used. Default 5 s.
    pub connect_limit: Duration,
    /// How long a call may wait for a connection, and a statement for its answer. Default 5 s.
    pub statement_limit: Duration,
    /// How long a statement may wait for a row that another one is changing. Default 2 s.
    pub lock_limit: Duration,
    /// How the connection is protected. Default: what the URL's `sslmode` says, else [`TlsMode::Prefer`], as with libpq.
    pub tls_mode: Option<TlsMode>,
    /// A PEM file of the roots that are trusted instead of the system's. Default: what the URL's `sslrootcert` says.
    pub root_file: Option<PathBuf>,
    /// What the server shows as the client's name. Default `leasehold`.
    pub application_name: String,
}

impl PostgresOptions {
    /// The defaults with this connection string: a libpq URL (`postgres://user:password@host/database?sslmode=verify-full`) or libpq's
    /// `key=value` form.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: "leasehold".into(),
            pool_max: 8,
            connect_limit: Duration::from_secs(5),
            statement_limit: Duration::from_secs(5),
            lock_limit: Duration::from_secs(2),
            tls_mode: None,
            root_file: None,
            application_name: "leasehold".into(),
        }
    }

    /// What the options say, checked. Reads the roots' file, and nothing else is reached.
    pub fn check(&self) -> Result<(), LeaseError> {
        self.plan().map(|_| ())
    }

    /// How the connection will be protected: what these options say, else the connection string, else [`TlsMode::Prefer`].
    pub fn resolved_tls_mode(&self) -> Result<TlsMode, LeaseError> {
        Ok(self.mode_beside(conninfo::split(&self.url)?.tls_mode))
    }

    fn mode_beside(&self, in_url: Option<TlsMode>) -> TlsMode {
        self.tls_mode.or(in_url).unwrap_or(TlsMode::Prefer)
    }

    /// The way to the database.
    pub(super) fn plan(&self) -> Result<Plan, LeaseError> {
        self.check_bounds()?;
        let found = conninfo::split(&self.url)?;
        // The parser's own words may quote what it did not understand, which may be half a password.
        let mut config: tokio_postgres::Config = found
            .rest
            .parse()
            .map_err(|_| misconfigured("it is neither a libpq URL nor libpq's key=value form"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(misconfigured("it names no host"));
        }
        let mode = self.mode_beside(found.tls_mode);
        config.ssl_mode(match mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name(&self.application_name);
        }
        config.connect_timeout(self.connect_limit);
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES);
        let root_file = self.root_file.as_deref().or(found.root_file.as_deref());
        let tls = tls::connector(mode, root_file)?;
        Ok(Plan { config, tls })
    }

    fn check_bounds(&self) -> Result<(), LeaseError> {
        let first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let name = self.schema.as_bytes();
        let is_name = name.first().copied().is_some_and(first)
            && name.len() <= SCHEMA_LEN_MAX
            && name.iter().all(|byte| first(*byte) || byte.is_ascii_digit());
        if !is_name {
            let detail =
                format!("the schema `{}` is not [a-z_][a-z0-9_]{{0,62}}", self.schema.escape_debug());
            return Err(misconfigured(&detail));
        }
        if !(1..=POOL_MAX).contains(&self.pool_max) {
            let detail = format!("a pool of {} connections cannot be used: 1 to {POOL_MAX}", self.pool_max);
            return Err(misconfigured(&detail));
        }
        if self.connect_limit.is_zero() || self.statement_limit.is_zero() || self.lock_limit.is_zero() {
            return Err(misconfigured("a time limit of zero cannot be kept"));
        }
        Ok(())
    }

    /// Where the database is, without a user or a secret: for messages.
    #[must_use]
    pub fn place(&self) -> String {
        let config = conninfo::split(&self.url).ok().and_then(|found| found.rest.parse().ok());
        let Some(config) = config else { return "unknown".into() };
        let config: tokio_postgres::Config = config;
        let ports = config.get_ports();
        let addresses = config.get_hostaddrs().iter().map(|address| Host::Tcp(address.to_string()));
        let addresses: Vec<Host> = addresses.collect();
        let hosts = if config.get_hosts().is_empty() { &addresses } else { config.get_hosts() };
        let hosts: Vec<String> = hosts
            .iter()
            .enumerate()
            .map(|(at, host)| {
                let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
                match host {
                    Host::Tcp(name) => format!("{name}:{port}"),
                    Host::Unix(path) => format!("{}:{port}", path.display()),
                }
            })
            .collect();
        format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or("(the user's)"))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("place", &self.place())
            .field("schema", &self.schema)
            .field("pool_max", &self.pool_max)
            .field("connect_limit", &self.connect_limit)
            .field("statement_limit", &self.statement_limit)
            .field("lock_limit", &self.lock_limit)
            .field("tls_mode", &self.tls_mode)
            .field("root_file", &self.root_file)
            .field("application_name", &self.application_name)
            .finish_non_exhaustive()
    }
}

/// The way to the database: what the client is told, and how TLS is spoken.
pub(super) struct Plan {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: tokio_postgres_rustls::MakeRustlsConnect,
}

pub(super) fn misconfigured(detail: &str) -> LeaseError {
    LeaseError::Misconfigured { detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail_of(options: &PostgresOptions) -> String {
        let error = options.check().unwrap_err();
        assert_eq!(error.code().as_str(), "invalid_configuration");
        assert!(!error.is_transient());
        error.to_string()
    }

    #[test]
    fn both_forms_of_a_connection_string_are_read() {
        for url in [
            "postgres://app:secret@db.internal:6432/main?sslmode=require",
            "host=db.internal port=6432 dbname=main user=app password='se cret' sslmode = require",
        ] {
            let options = PostgresOptions::new(url);
            options.check().unwrap();
            assert_eq!(options.place(), "db.internal:6432/main");
            let plan = options.plan().unwrap();
            assert_eq!(plan.config.get_ssl_mode(), SslMode::Require);
            assert_eq!(plan.config.get_application_name(), Some("leasehold"));
            assert_eq!(plan.config.get_options(), None, "a pooler takes no start-up options");
        }
    }

    #[test]
    fn what_the_options_say_beats_the_connection_string() {
        let mut options = PostgresOptions::new("postgres://app@db/main?sslmode=disable");
        assert_eq!(options.plan().unwrap().config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(options.resolved_tls_mode().unwrap(), TlsMode::Disable);
        options.tls_mode = Some(TlsMode::Require);
        assert_eq!(options.resolved_tls_mode().unwrap(), TlsMode::Require);
        assert_eq!(options.plan().unwrap().config.get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn no_secret_is_shown() {
        for url in [
            "postgres://app:hunter2@db/main",
            "host=db user=app password=hunter2",
            "host=db password=a hunter2=b",
            "host=db password='hunter2",
            "postgres://app:hunter2@db:port/main",
            "postgres://app:x@db/main?hunter2=1",
            "hunter2",
            "postgres://app:hunter2@db/main?sslmode=hunter2",
        ] {
            let options = PostgresOptions::new(url);
            let shown = format!("{options:?} {} {:?}", options.place(), options.check().err());
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let good = PostgresOptions::new("postgres://app@db/main");
        for schema in ["", "Leases", "a-b", "1a", "a\"b", &"a".repeat(64)] {
            let options = PostgresOptions { schema: schema.into(), ..good.clone() };
            assert!(detail_of(&options).contains("schema"), "{schema}");
        }
        assert!(detail_of(&PostgresOptions { pool_max: 0, ..good.clone() }).contains("pool of 0"));
        let none = Duration::ZERO;
        assert!(detail_of(&PostgresOptions { lock_limit: none, ..good.clone() }).contains("time limit"));
        assert!(detail_of(&PostgresOptions::new("user=app")).contains("no host"));
        let lost = PostgresOptions {
            tls_mode: Some(TlsMode::VerifyFull),
            root_file: Some("/nowhere/root.pem".into()),
            ..good
        };
        assert!(detail_of(&lost).contains("/nowhere/root.pem"));
    }
}
