//! One replica, on the backends that a bench wants.

use std::{env, sync::Arc, time::Duration};

use leasehold_blob::{AzureCredential, AzureOptions, AzureStore, BlobStore, DirectoryStore, Secret};
use leasehold_lease::{LeaseStore, PostgresLeaseStore, PostgresOptions, SqliteLeaseStore, TokioTimer};
use leasehold_ledger::{Json, NewEvent};
use leasehold_tenure::{Backends, Handle, Router, RouterOptions};
use leasehold_types::{Entropy, LeaseKey, NoPoints, SystemClock};
use tempfile::TempDir;

/// Whatever kept a bench from starting.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) const PAYLOAD: &str =
    r#"{"text":"a message of the length that messages have, more or less","n":17}"#;

/// The event that benches append.
#[must_use]
pub fn event() -> NewEvent {
    let payload = Json::parse(PAYLOAD).unwrap_or_default();
    NewEvent::new("message", "agent").with_payload(payload)
}

/// Appends events until the ledger has at least `bytes` bytes. What they say differs from one to the next, as what people say does.
pub async fn fill(handle: &Handle, bytes: u64) -> Result<(), BenchError> {
    let entropy = Entropy::seeded(bytes);
    while handle.status().ledger_bytes + handle.status().wal_bytes < bytes {
        let events = (0..64)
            .map(|number| {
                let words: Vec<String> =
                    (0..24).map(|_| entropy.uuid().simple().to_string()[..12].to_owned()).collect();
                let payload =
                    serde_json::json!({"text": words.join(" the "), "n": number, "role": "assistant"});
                Ok(NewEvent::new("message", "agent").with_payload(Json::parse(payload.to_string())?))
            })
            .collect::<Result<Vec<_>, BenchError>>()?;
        handle.append(events).await?;
    }
    Ok(())
}

/// Where the servers are that `cargo xtask bench` has started.
#[derive(Clone, Debug)]
pub struct CloudAddresses {
    /// The URL of a Postgres superuser.
    pub postgres: String,
    /// An Azurite's connection string.
    pub azurite: String,
}

impl CloudAddresses {
    /// As the environment says.
    pub fn find() -> Result<Self, BenchError> {
        let find = |name: &str| {
            env::var(name)
                .map_err(|_| format!("{name} is not set: run `cargo xtask bench`, which starts the servers"))
        };
        Ok(Self { postgres: find("LEASEHOLD_TEST_POSTGRES")?, azurite: find("LEASEHOLD_TEST_AZURITE")? })
    }

    /// A schema of our own, its tables made.
    pub async fn schema(&self) -> Result<PostgresOptions, BenchError> {
        let mut options = PostgresOptions::new(&self.postgres);
        options.schema = format!("bench_{}", Entropy::system().uuid().simple());
        PostgresLeaseStore::migrate(&options).await?;
        Ok(options)
    }

    /// A container of our own, reached at `azurite`.
    pub async fn container(azurite: &str) -> Result<Arc<AzureStore>, BenchError> {
        Self::container_named(azurite, &format!("bench-{}", Entropy::system().uuid())).await
    }

    /// A container of this name, reached at `azurite`.
    pub async fn container_named(azurite: &str, name: &str) -> Result<Arc<AzureStore>, BenchError> {
        let entropy = Arc::new(Entropy::system());
        let credential = AzureCredential::ConnectionString(Secret::from(azurite.to_owned()));
        let store = AzureStore::connect(AzureOptions::new(
            credential,
            name,
            Arc::new(TokioTimer),
            Arc::new(SystemClock),
            entropy,
        ))?;
        store.create_container().await?;
        Ok(Arc::new(store))
    }
}

/// A replica with its ledgers, and where it is embedded its stores, in a directory of its own.
#[derive(Debug)]
pub struct Replica {
    /// Its tenants.
    pub router: Router,
    /// Goes with everything in it when this is dropped.
    pub directory: TempDir,
}

impl Replica {
    /// Starts one on the embedded backends, in the current runtime. It snapshots only on demand, so that nothing runs beside what is measured.
    pub fn start() -> Result<Self, BenchError> {
        let directory = tempfile::tempdir()?;
        let leases = SqliteLeaseStore::open(&directory.path().join("leases.db"), Arc::new(SystemClock))?;
        let blobs = DirectoryStore::open(&directory.path().join("store"))?;
        Self::on(directory, Arc::new(leases), Arc::new(blobs), Duration::ZERO)
    }

    /// Starts one on these stores, which snapshots as often as is said.
    pub fn on(
        directory: TempDir,
        leases: Arc<dyn LeaseStore>,
        blobs: Arc<dyn BlobStore>,
        snapshot_every: Duration,
    ) -> Result<Self, BenchError> {
        let backends = Backends {
            leases,
            blobs,
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer),
            entropy: Arc::new(Entropy::system()),
            points: Arc::new(NoPoints),
        };
        let mut options = RouterOptions::new(directory.path().join("node"), "bench".parse()?);
        options.snapshot_every = snapshot_every;
        options.unflushed_bytes_max = 0;
        options.open_tenants_max = 100_000;
        Ok(Self { router: Router::new(options, backends)?, directory })
    }

    /// Opens a tenant.
    pub async fn open(&self, tenant: &str) -> Result<Handle, BenchError> {
        let key: LeaseKey = format!("bench/{tenant}").parse()?;
        Ok(self.router.open(&key).await?)
    }
}
