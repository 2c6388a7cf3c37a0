//! Opening the file: its format, the boot that its times belong to, and how the connection is set.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior};

use crate::LeaseError;

/// The newest format that this build reads and the one that it writes.
pub(super) const FORMAT: u32 = 3;
/// What a new file is made by.
const SCHEMA: &str = include_str!("schema.sql");
/// What makes of a file of each format, from the first on, one of the next. Processes of the older one that have it open go on with it.
const STEPS: &[&str] = &["ALTER TABLE lease ADD COLUMN paused_wall_ms INTEGER", TOKEN];
/// The tokens' table as format 3 has it.
const TOKEN: &str = "CREATE TABLE token (
    name            TEXT    NOT NULL,
    slot            INTEGER NOT NULL CHECK (slot IN (1, 2)),
    token_id        TEXT    NOT NULL UNIQUE,
    hash            BLOB    NOT NULL CHECK (length(hash) = 32),
    organizations   TEXT    NOT NULL,
    scopes          TEXT    NOT NULL,
    created_wall_ms INTEGER NOT NULL,
    expires_wall_ms INTEGER NOT NULL,
    PRIMARY KEY (name, slot)
) STRICT, WITHOUT ROWID";
/// How long a statement waits for another process's: below half of the default ttl - margin, so that a renewal is answered within its
/// own limit.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
const STATEMENTS_CACHED: usize = 32;
/// How often the switch to a write-ahead log is tried while others open the new file too.
const WAL_TRIES_MAX: u32 = 50;
/// The id of the machine's boot, since whose start its clock counts.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn boot_id() -> Result<String, LeaseError> {
    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
    let failed = |detail: String| LeaseError::Open { path: BOOT_ID.into(), detail };
    let text = std::fs::read_to_string(BOOT_ID).map_err(|error| failed(error.to_string()))?;
    let id = text.trim();
    if id.is_empty() { Err(failed("it is empty".into())) } else { Ok(id.into()) }
}

/// The same name for every boot, where the system has none: safe, since no lease is cut short by it, but a lease of an earlier boot is
/// waited out. For development (decision 0004).
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn boot_id() -> Result<String, LeaseError> {
    Ok("unknown".into())
}

/// Opens the file or makes it. If its times belong to another boot than `boot`, every lease has run out and no replica is alive.
pub(super) fn open(path: &Path, boot: &str) -> Result<Connection, LeaseError> {
    let sql = |error: rusqlite::Error| open_failed(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut connection = Connection::open_with_flags(path, flags).map_err(sql)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // A commit must outlive a crash of the machine: a lease that its holder counts on may not be shortened.
    connection.pragma_update(None, "synchronous", "FULL").map_err(sql)?;
    prepare_contents(&mut connection, path, boot)?;
    // After the look at the contents: a file that is not ours, or of a newer format, is left as it was.
    let mode = switch_to_wal(&connection).map_err(sql)?;
    if mode != "wal" {
        let detail = format!("its journal mode stays {mode}: it must lie on a local file system");
        return Err(LeaseError::Open { path: path.into(), detail });
    }
    Ok(connection)
}

/// SQLite does not wait for others when it switches the journal, so this does: by asking for the file alone, which waits.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<String> {
    let mut tries = 0;
    loop {
        let switched = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
        match switched {
            Err(error) if tries < WAL_TRIES_MAX && is_busy(&error) => {
                tries += 1;
                connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK")?;
            }
            other => return other,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

fn prepare_contents(connection: &mut Connection, path: &Path, boot: &str) -> Result<(), LeaseError> {
    let sql = |error: rusqlite::Error| open_failed(path, &error);
    let unusable = |detail: &str| LeaseError::Unusable { path: path.into(), detail: detail.into() };
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    let tables: i64 =
        change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    let meta = |name: &str| -> rusqlite::Result<Option<String>> {
        change.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()
    };
    let insert = "INSERT INTO meta (name, value) VALUES (?1, ?2)";
    if tables == 0 {
        change.execute_batch(SCHEMA).map_err(sql)?;
        change.execute(insert, ("format", FORMAT.to_string())).map_err(sql)?;
        change.execute(insert, ("boot", boot)).map_err(sql)?;
        return change.commit().map_err(sql);
    }
    let format: u32 = meta("format")
        .map_err(|_| unusable("it has other tables"))?
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| unusable("it does not say its format"))?;
    if format > FORMAT {
        return Err(LeaseError::FormatTooNew { found: format, known: FORMAT });
    }
    let done = format.checked_sub(1).ok_or_else(|| unusable("it does not say its format"))? as usize;
    for step in STEPS.iter().skip(done) {
        change.execute_batch(step).map_err(sql)?;
    }
    if format < FORMAT {
        change
            .execute("UPDATE meta SET value = ?1 WHERE name = 'format'", [FORMAT.to_string()])
            .map_err(sql)?;
    }
    if meta("boot").map_err(sql)?.as_deref() != Some(boot) {
        change.execute("UPDATE lease SET expires_boot_ms = 0 WHERE expires_boot_ms <> 0", []).map_err(sql)?;
        change.execute("DELETE FROM replica", []).map_err(sql)?;
        let upsert = "INSERT INTO meta (name, value) VALUES ('boot', ?1)
                      ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        change.execute(upsert, [boot]).map_err(sql)?;
    }
    change.commit().map_err(sql)
}

pub(super) fn open_failed(path: &Path, error: &rusqlite::Error) -> LeaseError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
    match error.sqlite_error_code() {
        Some(DiskFull) => LeaseError::Full { action: format!("open {}", path.display()) },
        Some(NotADatabase | DatabaseCorrupt) => {
            LeaseError::Unusable { path: path.into(), detail: error.to_string() }
        }
        _ => LeaseError::Open { path: path.into(), detail: error.to_string() },
    }
}
