//! The embedded pair: leases in a SQLite file, objects in a directory.

use std::{sync::Arc, time::Duration};

use leasehold_blob::{BlobStore, DirectoryStore};
use leasehold_lease::{LeaseStore, SqliteLeaseStore, TokenStore};
use leasehold_types::{Clock, LeaseKey, SystemClock};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{ManualClock, Pair, kept_states::Tables};

/// The lease store's file.
const LEASES: &str = "leases.db";

/// [`SqliteLeaseStore`] and [`DirectoryStore`] in a directory of their own.
#[derive(Debug)]
pub struct EmbeddedPair {
    leases: Arc<SqliteLeaseStore>,
    blobs: Arc<DirectoryStore>,
    /// The lease store's clock; `None` where that is the machine's.
    time: Option<ManualClock>,
    /// Declared last: removed after the stores in it are closed.
    dir: TempDir,
}

impl EmbeddedPair {
    fn new(time: Option<ManualClock>) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the stores");
        let clock: Arc<dyn Clock> = match &time {
            Some(manual) => Arc::new(manual.clone()),
            None => Arc::new(SystemClock),
        };
        let leases = SqliteLeaseStore::open(&dir.path().join(LEASES), clock).expect("a lease store");
        // What these suites check is order and fencing; that an object outlives a power cut is the store's own suite's.
        let blobs = DirectoryStore::open_without_sync(&dir.path().join("store")).expect("a blob store");
        Self { leases: Arc::new(leases), blobs: Arc::new(blobs), time, dir }
    }
}

impl EmbeddedPair {
    /// Somebody else's connection to the lease store's file.
    fn beside(&self) -> Connection {
        let connection = Connection::open(self.dir.path().join(LEASES)).expect("the lease store's file");
        connection.busy_timeout(Duration::from_secs(30)).expect("a time to wait for the store's turn");
        connection
    }
}

impl Pair for EmbeddedPair {
    async fn manual() -> Self {
        Self::new(Some(ManualClock::new()))
    }

    async fn real_time() -> Self {
        Self::new(None)
    }

    fn leases(&self) -> Arc<dyn LeaseStore> {
        self.leases.clone()
    }

    fn tokens(&self) -> Arc<dyn TokenStore> {
        self.leases.clone()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }

    async fn advance(&self, by: Duration) {
        self.time.as_ref().expect("a pair whose time is moved by hand").advance(by);
    }

    async fn keep_states(&self) {
        let keep = "INSERT INTO lease_states SELECT (SELECT count(*) + 1 FROM lease_states), *
                                               FROM lease WHERE lease_key = new.lease_key;";
        let make = format!(
            "BEGIN IMMEDIATE;
             CREATE TABLE lease_states AS SELECT 0 AS n, * FROM lease WHERE false;
             CREATE TRIGGER keep_new AFTER INSERT ON lease BEGIN {keep} END;
             CREATE TRIGGER keep_changed AFTER UPDATE ON lease BEGIN {keep} END;
             COMMIT;"
        );
        self.beside().execute_batch(&make).expect("the triggers that keep a lease's states");
    }

    async fn kept_states(&self) -> u32 {
        let beside = self.beside();
        beside
            .execute_batch("DROP TRIGGER IF EXISTS keep_new; DROP TRIGGER IF EXISTS keep_changed;")
            .expect("the triggers go");
        beside.query_row("SELECT count(*) FROM lease_states", (), |row| row.get(0)).expect("a count")
    }

    async fn set_back(&self, states: u32, only: Option<&LeaseKey>) {
        let beside = self.beside();
        let names = "SELECT group_concat(name) FROM pragma_table_info('lease')";
        let columns: String = beside.query_row(names, (), |row| row.get(0)).expect("the lease's columns");
        let tables = Tables { lease: "lease", states: "lease_states", columns: &columns };
        let back = format!("BEGIN IMMEDIATE; {} COMMIT;", tables.set_back(states, only));
        beside.execute_batch(&back).expect("the rows as they were");
    }
}
