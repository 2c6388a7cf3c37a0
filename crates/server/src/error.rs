//! What can go wrong around the service; what goes wrong inside a request is a [`Problem`](crate::problem).

use std::{fmt, io, net::SocketAddr, path::PathBuf, sync::Arc};

use leasehold_blob::BlobError;
use leasehold_lease::LeaseError;
use leasehold_ledger::LedgerError;
use leasehold_tenure::{OptionsError, TenureError};
use leasehold_types::{ErrorCode, LeaseKey, ReplicaId};

/// A configuration that cannot be used. Each names the key or the file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to read the configuration {path}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no TOML.
    #[error("{path} is not TOML: line {line}: {detail}", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there. Never the line itself, which may hold a secret.
        detail: String,
    },
    /// A key that is not one.
    #[error("`{key}` is not a configuration key (in {place})")]
    UnknownKey {
        /// The key.
        key: String,
        /// The file or the variable.
        place: String,
    },
    /// A value of the wrong kind.
    #[error("{detail}")]
    InvalidValue {
        /// Key, value and what was expected.
        detail: String,
    },
    /// A value that cannot be used, or not with the others.
    #[error("`{key}` cannot be used: {detail}")]
    Unusable {
        /// The key.
        key: &'static str,
        /// Why.
        detail: String,
    },
    /// The file of a secret cannot be read.
    #[error("`{key}` cannot be used: failed to read {path}", path = path.display())]
    SecretFile {
        /// The key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// One backend of the cloud pair without the other.
    #[error(
        "`{missing}` is not configured and `{present}` is: leases in Postgres go with images in Azure Blob; configure both, or leave both          out to keep everything in the data directory"
    )]
    HalfAPair {
        /// The section that is there.
        present: &'static str,
        /// The section that is not.
        missing: &'static str,
    },
    /// An address that others can reach, without authentication.
    #[error(
        "`listen`: {listen} is not a loopback address and `auth.mode` is `none`: anybody could read and forget every tenant; \
         listen on 127.0.0.1, or set `auth.mode` to `required`, or to `none-acknowledged` if something in front of it authenticates"
    )]
    NotLoopback {
        /// The address.
        listen: SocketAddr,
    },
}

impl ConfigError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::InvalidConfiguration
    }
}

/// Why a replica did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration cannot be used by the router.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A live process already is this replica.
    #[error(
        "another process already is replica {replica}{at}: every replica needs an id of its own",
        at = endpoint.as_deref().map(|endpoint| format!(" (at {endpoint})")).unwrap_or_default()
    )]
    ReplicaIdTaken {
        /// The id.
        replica: ReplicaId,
        /// Where the other one answers, if it said so.
        endpoint: Option<String>,
    },
    /// Every id that development mode chooses from has a live process.
    #[error("{tried} replicas already run on {data_dir}", data_dir = data_dir.display())]
    NoReplicaIdLeft {
        /// How many ids were tried.
        tried: u32,
        /// The data directory.
        data_dir: PathBuf,
    },
    /// A file or directory that must be written cannot be.
    #[error("failed to {action} {path}", path = path.display())]
    Local {
        /// What was being done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The derivation key is not the one that the lease store knows.
    #[error(
        "the derivation key {found} is not the one that this store's tenants were derived with ({kept}): with another key every \
         one of them would be orphaned; restore the old key file ({path})",
        path = path.display()
    )]
    OtherDerivationKey {
        /// The fingerprint of the key that was found.
        found: String,
        /// The fingerprint that the store keeps.
        kept: String,
        /// The key's file.
        path: PathBuf,
    },
    /// The key file does not hold a key.
    #[error("{path} does not hold a derivation key (64 hexadecimal digits)", path = path.display())]
    InvalidDerivationKey {
        /// The key's file.
        path: PathBuf,
    },
    /// The key file is not there, and what a fleet shares is not made by one of its replicas.
    #[error(
        "`derivation_key_file`: {path} is not there: give every replica the one key of the fleet; a new fleet's is made once, by \
         `openssl rand -hex 32`",
        path = path.display()
    )]
    NoDerivationKey {
        /// Where it is looked for.
        path: PathBuf,
    },
    /// The lease tables are to be made or brought up to date, and this role may not.
    #[error(
        "the lease tables in schema {schema} are at version {found}, this build needs {needed}, and this role may not change them: run \
         `leasehold migrate` as the role that owns the schema (sql/README.md)"
    )]
    MayNotMigrate {
        /// The schema.
        schema: String,
        /// The tables' version; 0 when there are none.
        found: u32,
        /// What this build needs.
        needed: u32,
        /// What the database said.
        source: LeaseError,
    },
    /// The container is not there.
    #[error(
        "there is no container at {place}: make it with `leasehold migrate` or `az storage container create --name {container} \
         --account-name {account} --auth-mode login`, or set `azure.create_container`"
    )]
    NoContainer {
        /// Its address.
        place: String,
        /// Its name.
        container: String,
        /// The account's name, as far as it is configured.
        account: String,
    },
    /// The container is there, and not for us.
    #[error(
        "the container at {place} answered {status} {code}: give this identity the role Storage Blob Data Contributor on the container, or \
         mend the key or signature that it comes with"
    )]
    ContainerRefused {
        /// Its address.
        place: String,
        /// The status.
        status: u16,
        /// The service's code.
        code: String,
    },
    /// The address cannot be listened on.
    #[error("failed to listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The memory that SQL may take cannot be bounded.
    #[error("failed to bound the memory for SQL")]
    Memory(#[source] LedgerError),
    /// The lease store.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The blob store.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The ledgers of the last run.
    #[error(transparent)]
    Tenure(#[from] TenureError),
}

impl StartError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Config(error) => error.code(),
            Self::Options(error) => error.code(),
            Self::ReplicaIdTaken { .. } | Self::NoReplicaIdLeft { .. } => ErrorCode::ReplicaIdTaken,
            Self::Local { source, .. } if source.kind() == io::ErrorKind::StorageFull => ErrorCode::DiskFull,
            Self::Local { .. } => ErrorCode::LocalIo,
            Self::OtherDerivationKey { .. }
            | Self::InvalidDerivationKey { .. }
            | Self::NoDerivationKey { .. }
            | Self::MayNotMigrate { .. }
            | Self::NoContainer { .. }
            | Self::ContainerRefused { .. }
            | Self::Listen { .. } => ErrorCode::InvalidConfiguration,
            Self::Memory(error) => error.code(),
            Self::Lease(error) => error.code(),
            Self::Blob(error) => error.code(),
            Self::Tenure(error) => error.code(),
        }
    }

    /// Whether a store failed for now, and the same start may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lease(error) => error.is_transient(),
            Self::Blob(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// How a run ended, when it did not end well.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServeError {
    /// The replica did not come up.
    #[error(transparent)]
    Start(#[from] Arc<StartError>),
    /// The replica went, and not everything that it had acknowledged is in the store.
    #[error(transparent)]
    NotFlushed(#[from] ExitReport),
}

impl From<StartError> for ServeError {
    fn from(error: StartError) -> Self {
        Self::Start(Arc::new(error))
    }
}

impl ServeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Start(error) => error.code(),
            Self::NotFlushed(_) => ErrorCode::DrainTimeout,
        }
    }
}

/// What a replica could not hand off before it went: the tail after their last published snapshots is not in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReport {
    /// The tenants, in the order of their keys.
    pub not_flushed: Vec<LeaseKey>,
    /// Whether the rest was abandoned on demand (a second signal) instead of at the end of the grace period.
    pub abandoned: bool,
}

impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.not_flushed.len();
        write!(f, "{count} {} not flushed", if count == 1 { "tenant was" } else { "tenants were" })?;
        if self.abandoned {
            f.write_str(" (abandoned on demand)")?;
        }
        for (index, key) in self.not_flushed.iter().enumerate() {
            write!(f, "{} {key}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for ExitReport {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_each_tenant() {
        let report = ExitReport {
            not_flushed: vec!["acme/a".parse().unwrap(), "acme/b".parse().unwrap()],
            abandoned: true,
        };
        assert_eq!(report.to_string(), "2 tenants were not flushed (abandoned on demand): acme/a, acme/b");
    }
}
