//! A data directory as the replicas lay it out, read without them.

use std::{
    io,
    path::{Path, PathBuf},
};

use leasehold_server::Config;
use leasehold_types::{LeaseKey, ReplicaId};

use crate::error::CliError;

/// A replicas' data directory that is there.
#[derive(Debug)]
pub(crate) struct DataDir {
    /// Only for its paths.
    config: Config,
}

impl DataDir {
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        if !path.is_dir() {
            return Err(CliError::NoDataDir { path: path.to_owned() });
        }
        Ok(Self { config: Config { data_dir: path.to_owned(), ..Config::default() } })
    }

    /// The blob store's directory, which has to be there: looking must not create one.
    pub(crate) fn store(&self) -> Result<PathBuf, CliError> {
        let path = self.config.store_dir();
        if path.is_dir() { Ok(path) } else { Err(CliError::NoDataDir { path }) }
    }

    /// The replicas that ever ran here, in the order of their ids.
    pub(crate) fn replicas(&self) -> Result<Vec<ReplicaId>, CliError> {
        let path = self.config.data_dir.join("nodes");
        let failed = |source| CliError::Local { action: "list", path: path.clone(), source };
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CliError::NoDataDir { path });
            }
            Err(error) => return Err(failed(error)),
        };
        let mut replicas = Vec::new();
        for entry in entries {
            // What is no replica's is somebody else's.
            replicas.extend(
                entry.map_err(failed)?.file_name().to_str().and_then(|name| name.parse::<ReplicaId>().ok()),
            );
        }
        replicas.sort();
        Ok(replicas)
    }

    /// What a replica has of a tenant.
    pub(crate) fn tenant_root(&self, replica: &ReplicaId, key: &LeaseKey) -> PathBuf {
        leasehold_tenure::tenant_root(&self.config.node_dir(replica), key)
    }
}
