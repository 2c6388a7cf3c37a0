//! A fleet's stores, which outlive every replica of it.

use std::{env, path::Path, sync::Arc, time::Duration};

use leasehold_blob::{AzureCredential, AzureOptions, AzureStore, BlobStore, DirectoryStore, Secret};
use leasehold_lease::{LeaseStore, PostgresLeaseStore, PostgresOptions, SqliteLeaseStore, TokioTimer};
use leasehold_server::Config;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum World {
    /// A SQLite file and a directory in the shared directory.
    Embedded,
    /// A Postgres schema and an Azure Blob container of this name, on the servers that the environment names.
    Cloud(String),
}

impl World {
    /// From how it is told to a process: `embedded`, or the name of a schema and container.
    #[must_use]
    pub fn named(text: &str) -> Self {
        if text == "embedded" { Self::Embedded } else { Self::Cloud(text.to_owned()) }
    }

    /// How it is told to a process.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Embedded => "embedded",
            Self::Cloud(name) => name,
        }
    }

    /// A new world on real servers.
    pub async fn new_cloud() -> Result<Self, ProofError> {
        let name = format!("proof-{}", Entropy::system().uuid());
        PostgresLeaseStore::migrate(&postgres(&name)?).await?;
        azure(&name)?.create_container().await?;
        Ok(Self::Cloud(name))
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
            Self::Cloud(name) => Arc::new(PostgresLeaseStore::connect(postgres(name)?).await?),
        })
    }

    /// The blob store, opened for one process. A process that is killed loses nothing that it has written to a file, so the directory
    /// is not forced to the disk.
    pub fn blobs(&self, config: &Config) -> Result<Arc<dyn BlobStore>, ProofError> {
        Ok(match self {
            Self::Embedded => Arc::new(DirectoryStore::open_without_sync(&config.store_dir())?),
            Self::Cloud(name) => Arc::new(azure(name)?),
        })
    }
}

fn postgres(name: &str) -> Result<PostgresOptions, ProofError> {
    let mut options = PostgresOptions::new(address(POSTGRES)?);
    options.schema = name.replace('-', "_");
    options.pool_max = POOL_MAX;
    Ok(options)
}

fn azure(name: &str) -> Result<AzureStore, ProofError> {
    let credential = AzureCredential::ConnectionString(Secret::from(address(AZURITE)?));
    let (timer, clock, entropy) = (Arc::new(TokioTimer), Arc::new(SystemClock), Arc::new(Entropy::system()));
    Ok(AzureStore::connect(AzureOptions::new(credential, name.to_owned(), timer, clock, entropy))?)
}

fn address(variable: &str) -> Result<String, ProofError> {
    env::var(variable).ok().filter(|address| !address.is_empty()).ok_or_else(|| {
        format!("{variable} is not set: run `cargo xtask test`, or `cargo xtask services -- COMMAND`").into()
    })
}
