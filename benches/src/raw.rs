//! What a guarded ledger is compared with: its own file, schema and settings on a connection without a guard.

use std::path::Path;

use leasehold_ledger::NewEvent;
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::{BenchError, Replica, replica::PAYLOAD};

/// A ledger's file, closed by its tenure, on a connection of our own with the settings of the guarded one.
#[derive(Debug)]
pub struct RawLedger {
    connection: Connection,
    /// The file goes with it, where it is one of our own.
    _replica: Option<Replica>,
}

impl RawLedger {
    /// Makes one.
    pub fn make(runtime: &Runtime) -> Result<Self, BenchError> {
        runtime.block_on(Self::make_here())
    }

    /// The same, in the current runtime.
    pub async fn make_here() -> Result<Self, BenchError> {
        let replica = Replica::start()?;
        let handle = replica.open("raw").await?;
        handle.append(vec![crate::event()]).await?;
        let path = leasehold_ledger::ledger_path(&leasehold_tenure::tenant_root(
            &replica.router.options().state_root,
            handle.key(),
        ));
        // It keeps the file.
        handle.abandon().await?;
        Ok(Self { _replica: Some(replica), ..Self::over(&path)? })
    }

    /// The ledger's file at `path`, on a connection with the settings of a guarded one.
    pub fn over(path: &Path) -> Result<Self, BenchError> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON",
        )?;
        Ok(Self { connection, _replica: None })
    }

    /// How many events are in it.
    pub fn count(&self) -> Result<usize, BenchError> {
        let count: i64 = self.connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?;
        Ok(usize::try_from(count)?)
    }

    /// The rows that an append of [`event`](crate::event) writes, by the same statement in a transaction of its own.
    pub fn insert(&self) -> Result<i64, BenchError> {
        self.insert_event(&crate::event(), PAYLOAD)
    }

    /// The same for `event`, whose payload is given as the text that it is.
    pub fn insert_event(&self, event: &NewEvent, payload: &str) -> Result<i64, BenchError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        self.connection
            .prepare_cached("INSERT INTO events (ts, actor, kind, payload) VALUES (?1, ?2, ?3, ?4)")?
            .execute((1_790_000_000_000_i64, &event.actor, &event.kind, payload))?;
        let seq = self.connection.last_insert_rowid();
        self.connection.execute_batch("COMMIT")?;
        Ok(seq)
    }
}
