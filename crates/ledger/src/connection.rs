//! How each of a ledger's connections is opened.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use leasehold_types::Clock;
use rusqlite::{Connection, OpenFlags, config::DbConfig, limits::Limit};

use crate::{LedgerError, Limits, control::Control, counters::Counters, functions, session::from_sqlite};

/// Virtual machine steps between two looks at the gate while a statement runs: some 10 to 20 microseconds.
const STEPS_PER_LOOK: i32 = 1_000;

/// Statements that a connection keeps compiled, ours (about a dozen) and callers'.
const STATEMENTS_KEPT: usize = 64;

/// How long `SQLite` itself waits for a lock of its own.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(5);

/// What [`limit_memory`] set last; 0 while there is no bound.
static MEMORY_MAX: AtomicU64 = AtomicU64::new(0);

/// The bound that [`limit_memory`] set, in bytes; `None` while there is none.
#[must_use]
pub fn memory_limit() -> Option<u64> {
    Some(MEMORY_MAX.load(Relaxed)).filter(|&bytes_max| bytes_max > 0)
}

/// Bounds what `SQLite` may allocate in this process, in bytes, for all ledgers together and whatever else uses it
/// here. Past it a statement fails with [`LedgerError::MemoryShort`]. None takes more than a part of it by itself, by
/// [`Limits::statement_bytes_max`] and the temporary files that what it sorts goes to. From three quarters of it on, page caches grow no more, so that
/// many open ledgers leave room for work.
///
/// For the program that serves, once, at its start: the bound is the process's, and can only be lowered afterwards.
pub fn limit_memory(bytes_max: u64) -> Result<(), LedgerError> {
    let failed = |error| from_sqlite(error, Path::new(":memory:"));
    let connection = Connection::open_in_memory().map_err(failed)?;
    let set = |pragma: &str, bytes: i64| -> Result<i64, LedgerError> {
        connection.query_row(&format!("PRAGMA {pragma} = {bytes}"), [], |row| row.get(0)).map_err(failed)
    };
    let bytes = set("hard_heap_limit", i64::try_from(bytes_max).unwrap_or(i64::MAX))?;
    set("soft_heap_limit", bytes / 4 * 3)?;
    MEMORY_MAX.store(u64::try_from(bytes).unwrap_or(0), Relaxed);
    Ok(())
}

/// A connection that runs callers' SQL, with its hooks.
#[derive(Debug)]
pub(crate) struct Guarded {
    // Fields are dropped in order, and the hooks of the connection hold the control block too.
    pub(crate) connection: Connection,
    pub(crate) control: Arc<Control>,
}

/// The connection that writes.
pub(crate) fn writer(
    path: &Path,
    clock: &Arc<dyn Clock>,
    limits: &Limits,
    counters: &Arc<Counters>,
) -> Result<Guarded, LedgerError> {
    let failed = |error| from_sqlite(error, path);
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    configure_writer(&connection, limits).map_err(failed)?;
    let page_size: u64 = connection
        .query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))
        .map_err(failed)
        .map(|size| u64::try_from(size).unwrap_or(0))?;
    counters.page_size.store(page_size, Relaxed);
    let counted = Arc::clone(counters);
    connection
        .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, frames| {
            counted.committed(u64::try_from(frames).unwrap_or(0));
            Ok(())
        }))
        .map_err(failed)?;
    guard(connection, clock, limits).map_err(failed)
}

/// A connection that reads.
pub(crate) fn reader(path: &Path, clock: &Arc<dyn Clock>, limits: &Limits) -> Result<Guarded, LedgerError> {
    let failed = |error| from_sqlite(error, path);
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    guard(connection, clock, limits).map_err(failed)
}

/// A connection that only moves pages: no hooks, no SQL of callers'.
pub(crate) fn maintenance(path: &Path) -> Result<Connection, LedgerError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    synchronous_off(&connection).map_err(|error| from_sqlite(error, path))?;
    Ok(connection)
}

/// What every connection has in common.
pub(crate) fn open(path: &Path, mode: OpenFlags) -> Result<Connection, LedgerError> {
    let failed = |error| from_sqlite(error, path);
    // Without SQLITE_OPEN_CREATE (the file is made before) and SQLITE_OPEN_URI (a path is a path).
    let connection =
        Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    configure(&connection).map_err(failed)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    use DbConfig as D;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    for (config, on) in [
        // At its last close SQLite would delete the log by its name, and that may be another tenure's by then
        // (contract P3).
        (D::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        (D::SQLITE_DBCONFIG_DEFENSIVE, true),
        (D::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (D::SQLITE_DBCONFIG_DQS_DML, false),
        (D::SQLITE_DBCONFIG_DQS_DDL, false),
        (D::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        (D::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    connection.execute_batch("PRAGMA temp_store = FILE; PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON")
}

/// The file is a cache whose authority is elsewhere (contract L2): after a crash of the machine it is not read again,
/// so no commit waits for the disk.
fn synchronous_off(connection: &Connection) -> rusqlite::Result<()> {
    // Checkpoints are ours, off the commit path: left to SQLite, one commit in a thousand was measured to pay 4 to 6 ms.
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0")
}

fn configure_writer(connection: &Connection, limits: &Limits) -> rusqlite::Result<()> {
    synchronous_off(connection)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)).map(drop)?;
    // What the log keeps on the disk after a checkpoint took all of it, in bytes.
    connection.execute_batch("PRAGMA journal_size_limit = 67108864")?;
    if let Some(bytes_max) = limits.file_bytes_max {
        let page_size: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let pages_max = i64::try_from(bytes_max).unwrap_or(i64::MAX) / page_size.max(1);
        connection.query_row(&format!("PRAGMA max_page_count = {}", pages_max.max(1)), [], |_| Ok(()))?;
    }
    Ok(())
}

fn guard(mut connection: Connection, clock: &Arc<dyn Clock>, limits: &Limits) -> rusqlite::Result<Guarded> {
    let int = |bound: usize| i32::try_from(bound).unwrap_or(i32::MAX);
    for (limit, bound) in [
        (Limit::SQLITE_LIMIT_LENGTH, int(limits.value_bytes_max)),
        // The text that callers' own is prefixed with is not theirs to count.
        (Limit::SQLITE_LIMIT_SQL_LENGTH, int(limits.sql_bytes_max.saturating_add(16))),
        (Limit::SQLITE_LIMIT_COLUMN, 500),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        // Each of its characters against each of the text, within one step of the machine: 1 s for the longest of both.
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, int(limits.params_max).max(16)),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 16),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, bound)?;
    }
    functions::bound(&connection, int(limits.value_bytes_max))?;
    let control = Arc::new(Control::new(Arc::clone(clock), limits.temp_bytes_max));
    let asked = Arc::clone(&control);
    connection
        .authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| asked.authorize(&context)))?;
    let asked = Arc::clone(&control);
    connection.progress_handler(STEPS_PER_LOOK, Some(move || asked.must_stop()))?;
    Ok(Guarded { connection, control })
}
