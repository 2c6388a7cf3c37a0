//! A fleet's stores, which outlive every replica of it.

use std::{env, fmt, path::Path, sync::Arc, time::Duration};

use leasehold_blob::{AzureCredential, AzureOptions, AzureStore, BlobStore, DirectoryStore, Secret};
use leasehold_lease::{LeaseStore, PostgresLeaseStore, PostgresOptions, SqliteLeaseStore, TokenStore};
use leasehold_server::{Config, Edges};
use leasehold_types::{Entropy, SystemClock};

/// The URL of a Postgres superuser, as `cargo xtask test` tells it.
const POSTGRES: &str = "LEASEHOLD_TEST_POSTGRES";
/// An Azurite's connection string, as `cargo xtask test` tells it.
const AZURITE: &str = "LEASEHOLD_TEST_AZURITE";
/// Many processes at a time share a server's connections.
const POOL_MAX: usize = 2;

/// Whatever kept a proof from being made.
pub type ProofError = Box<dyn std::error::Error + Send + Sync>;

/// The times of a fleet's leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a lease runs.
    pub ttl: Duration,
    /// How much of it is never counted on.
    pub margin: Duration,
}

/// Where a fleet keeps its leases and images. Its processes share a directory too: for the key by which tenant ids are derived, and
/// for each one's own state.
#[derive(Clone, Debug)]
pub enum World {
    /// A SQLite file and a directory in the shared directory.
    Embedded,
    /// A Postgres schema and an Azure Blob container.
    Cloud(Cloud),
}

/// A schema and a container of one name.
#[derive(Clone)]
pub struct Cloud {
    name: String,
    postgres: String,
    azurite: String,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses hold passwords.
        f.debug_tuple("Cloud").field(&self.name).finish()
    }
}

impl World {
    /// From how it is told to a process: `embedded`, or the name of a schema and container on the servers that the environment names.
    pub fn named(text: &str) -> Result<Self, ProofError> {
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        let name = text.to_owned();
        Ok(Self::Cloud(Cloud { name, postgres: address(POSTGRES)?, azurite: address(AZURITE)? }))
    }

    /// How it is told to a process, beside its [environment](Self::environment).
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Embedded => "embedded",
            Self::Cloud(cloud) => &cloud.name,
        }
    }

    /// What a process of this world finds in its environment.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Embedded => Vec::new(),
            Self::Cloud(cloud) => {
                vec![(POSTGRES, cloud.postgres.as_str()), (AZURITE, cloud.azurite.as_str())]
            }
        }
    }

    /// A new world, in the Postgres that the environment names and in the Azurite of this connection string.
    pub async fn new_cloud(azurite: &str) -> Result<Self, ProofError> {
        let name = format!("proof-{}", Entropy::system().uuid());
        let cloud = Cloud { name, postgres: address(POSTGRES)?, azurite: azurite.to_owned() };
        PostgresLeaseStore::migrate(&cloud.leases()).await?;
        cloud.blobs()?.create_container().await?;
        Ok(Self::Cloud(cloud))
    }

    /// The configuration of a replica of this world that lives in `dir`.
    pub fn config(&self, dir: &Path, replica: &str, times: Times) -> Result<Config, ProofError> {
        let mut config = Config::dev(dir, Some("127.0.0.1:0".parse()?))?;
        config.replica = Some(replica.parse()?);
        config.ttl = times.ttl;
        config.margin = times.margin;
        // What is published is said by the proof.
        config.snapshot.every = Duration::ZERO;
        Ok(config)
    }

    /// The lease store, opened for one process.
    pub async fn leases(&self, config: &Config) -> Result<Arc<dyn LeaseStore>, ProofError> {
        Ok(match self {
            Self::Embedded => {
                std::fs::create_dir_all(&config.data_dir)?;
                Arc::new(SqliteLeaseStore::open(&config.leases_path(), Arc::new(SystemClock))?)
            }
            Self::Cloud(cloud) => Arc::new(PostgresLeaseStore::connect(cloud.leases()).await?),
        })
    }

    /// The API tokens, which a replica of this world asks nobody for: opened because a replica has some.
    pub async fn tokens(&self, config: &Config) -> Result<Arc<dyn TokenStore>, ProofError> {
        Ok(match self {
            Self::Embedded => Arc::new(SqliteLeaseStore::open(&config.leases_path(), Arc::new(SystemClock))?),
            Self::Cloud(cloud) => Arc::new(PostgresLeaseStore::connect(cloud.leases()).await?),
        })
    }

    /// The blob store, opened for one process. A process that is killed loses nothing that it has written to a file, so the directory
    /// is not forced to the disk.
    pub fn blobs(&self, config: &Config) -> Result<Arc<dyn BlobStore>, ProofError> {
        Ok(match self {
            Self::Embedded => Arc::new(DirectoryStore::open_without_sync(&config.store_dir())?),
            Self::Cloud(cloud) => Arc::new(cloud.blobs()?),
        })
    }
}

impl Cloud {
    fn leases(&self) -> PostgresOptions {
        let mut options = PostgresOptions::new(self.postgres.as_str());
        options.schema = self.name.replace('-', "_");
        options.pool_max = POOL_MAX;
        options
    }

    fn blobs(&self) -> Result<AzureStore, ProofError> {
        let credential = AzureCredential::ConnectionString(Secret::from(self.azurite.as_str()));
        let edges = Edges::system();
        let options =
            AzureOptions::new(credential, self.name.clone(), edges.timer, edges.clock, edges.entropy);
        Ok(AzureStore::connect(options)?)
    }
}

fn address(variable: &str) -> Result<String, ProofError> {
    env::var(variable).ok().filter(|address| !address.is_empty()).ok_or_else(|| {
        format!("{variable} is not set: run `cargo xtask test`, or `cargo xtask services -- COMMAND`").into()
    })
}
