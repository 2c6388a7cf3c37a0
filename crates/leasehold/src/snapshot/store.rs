//! The store, opened for reading.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use leasehold_blob::{AzureStore, BlobKey, BlobStore, DirectoryStore};
use leasehold_lease::SqliteLeaseStore;
use leasehold_ledger::{FileFacts, LedgerError, verify_file};
use leasehold_server::{BackendPair, Config, Edges, StartError};
use leasehold_snapshot::{At, Restored, SnapshotContext, SnapshotInfo, SnapshotOptions, restore_to};
use leasehold_types::{ErrorCode, LeaseKey};
use tempfile::TempDir;

use crate::{data_dir::DataDir, environment, error::CliError, output::path_text};

/// How many snapshots of a tenant are looked through: far more than sweeps leave.
pub(super) const SNAPSHOTS_MAX: usize = 100_000;

/// A blob store that is read.
#[derive(Debug)]
pub(super) struct Store {
    context: SnapshotContext,
    /// Where it is, for people.
    place: String,
    /// Files that go with this.
    scratch: TempDir,
}

/// A snapshot that was brought here and is sound.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) restored: Restored,
    pub(super) facts: FileFacts,
}

impl Store {
    /// The store in `data_dir`, or else the one that the configuration names.
    pub(super) fn open(config: Option<&Path>, data_dir: Option<&Path>) -> Result<Self, CliError> {
        let edges = Edges::system();
        let (blobs, place) = match data_dir {
            Some(data_dir) => directory(data_dir)?,
            None => configured(config, &edges)?,
        };
        let failed = |source| CliError::Local { action: "write in", path: std::env::temp_dir(), source };
        let scratch = tempfile::tempdir().map_err(failed)?;
        // Reading asks nobody who holds a tenant. The replicas' own lease store is neither made nor locked from here.
        let leases = SqliteLeaseStore::open(&scratch.path().join("leases.db"), Arc::clone(&edges.clock))?;
        let context = SnapshotContext {
            blobs,
            leases: Arc::new(leases),
            clock: edges.clock,
            timer: edges.timer,
            entropy: edges.entropy,
            points: edges.points,
            options: SnapshotOptions::default(),
        };
        Ok(Self { context, place, scratch })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Where a snapshot may lie while it is checked.
    pub(super) fn scratch(&self) -> PathBuf {
        self.scratch.path().join("ledger.db")
    }

    /// Up to `limit` snapshots, newest first.
    pub(super) async fn list(&self, key: &LeaseKey, limit: usize) -> Result<Vec<SnapshotInfo>, CliError> {
        Ok(leasehold_snapshot::list(&self.context, key, limit).await?)
    }

    /// Brings a snapshot to `to` and checks it: every digest and size on the way, the database inside at the end.
    pub(super) async fn fetch(&self, key: &LeaseKey, at: At, to: &Path) -> Result<Fetched, CliError> {
        let restored = restore_to(&self.context, key, at, to).await?;
        let path = to.to_owned();
        let checked = tokio::task::spawn_blocking(move || verify_file(&path)).await;
        let facts = checked.map_err(|error| CliError::Process {
            action: "check a database",
            source: std::io::Error::other(error),
        })?;
        let object = || leasehold_snapshot::Layout::new(key).manifest(restored.snapshot);
        let facts = facts.map_err(|source| unsound(object(), source))?;
        let seq = facts.position.map_or(0, |position| position.seq);
        if seq != restored.position.seq {
            let detail = format!("its last event is {seq}, its manifest says {}", restored.position);
            return Err(CliError::DamagedImage {
                object: object(),
                source: LedgerError::Damaged { path: to.to_owned(), detail },
            });
        }
        Ok(Fetched { restored, facts })
    }
}

/// A store, and where it is.
type Placed = (Arc<dyn BlobStore>, String);

fn directory(data_dir: &Path) -> Result<Placed, CliError> {
    let path = DataDir::open(data_dir)?.store()?;
    Ok((Arc::new(DirectoryStore::open(&path)?), path_text(&path)))
}

fn configured(config: Option<&Path>, edges: &Edges) -> Result<Placed, CliError> {
    let config = Config::load(config, environment::variables()).map_err(StartError::from)?;
    match config.pair().map_err(StartError::from)? {
        BackendPair::Embedded => directory(&config.data_dir),
        BackendPair::Cloud { azure, .. } => {
            let store = AzureStore::connect(azure.options(edges).map_err(StartError::from)?)?;
            let place = store.place();
            Ok((Arc::new(store), place))
        }
    }
}

/// What is wrong inside a database is its snapshot's; what is wrong with this disk is not.
fn unsound(object: BlobKey, source: LedgerError) -> CliError {
    match source.code() {
        ErrorCode::Damaged | ErrorCode::FormatTooNew => CliError::DamagedImage { object, source },
        _ => source.into(),
    }
}
