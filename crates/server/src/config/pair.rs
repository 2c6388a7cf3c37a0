//! Which pair of backends a configuration names, and what serving on it takes.

use super::{AzureSettings, Config, PostgresSettings};
use crate::ConfigError;

/// Where leases and images live.
#[derive(Clone, Copy, Debug)]
pub enum BackendPair<'a> {
    /// A `SQLite` file and a directory, both in the data directory: one machine, any number of processes.
    Embedded,
    /// Postgres and Azure Blob: any number of machines.
    Cloud {
        /// Where leases live.
        postgres: &'a PostgresSettings,
        /// Where images live.
        azure: &'a AzureSettings,
    },
}

impl Config {
    /// The pair that is configured. Half of one is an error: leases that a fleet shares and images that one machine keeps, or the other
    /// way about, would be neither.
    pub fn pair(&self) -> Result<BackendPair<'_>, ConfigError> {
        match (&self.postgres, &self.azure) {
            (None, None) => Ok(BackendPair::Embedded),
            (Some(postgres), Some(azure)) => Ok(BackendPair::Cloud { postgres, azure }),
            (Some(_), None) => Err(ConfigError::HalfAPair { present: "postgres", missing: "azure" }),
            (None, Some(_)) => Err(ConfigError::HalfAPair { present: "azure", missing: "postgres" }),
        }
    }

    /// Refuses what is enough to look at the stores and not enough to serve on them. On the cloud pair a replica's id and the file of
    /// the derivation key have to be named: what one machine would choose or make for itself, another one would too.
    pub fn check_serving(&self) -> Result<(), ConfigError> {
        let refuse = |key, detail: &str| Err(ConfigError::Unusable { key, detail: detail.to_owned() });
        let BackendPair::Cloud { .. } = self.pair()? else { return Ok(()) };
        if self.dev {
            return refuse(
                "postgres",
                "development (--dev) keeps everything in the data directory: leave --dev out, or `postgres` and `azure`",
            );
        }
        if self.replica.is_none() {
            return refuse(
                "replica",
                "it is not set: every replica of a fleet needs an id of its own, such as its pod's name (LEASEHOLD_REPLICA)",
            );
        }
        if self.derivation_key_file.is_none() {
            return refuse(
                "derivation_key_file",
                "it is not set: the replicas of a fleet share one key, so none of them makes it; make it once \
                 (`openssl rand -hex 32`) and give every replica the file",
            );
        }
        if self.endpoint.is_none() && self.listen_addr().ip().is_unspecified() {
            return refuse(
                "endpoint",
                "it is not set, and `listen` is every address of this machine: say under which one the others reach it \
                 (http://10.0.0.7:7400)",
            );
        }
        Ok(())
    }
}
