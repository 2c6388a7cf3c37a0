//! SQL on one connection, a caller's and ours, with its bounds and its errors.

use std::{path::Path, sync::Arc};

use rusqlite::{CachedStatement, Connection, ErrorCode as Sqlite, ffi, limits::Limit};

use crate::{
    Executed, Held, LedgerError, Limits, Rows, Value,
    connection::{BUSY_WAIT, memory_limit},
    control::{Control, Stop},
    memory::{of_blob, of_text},
    schema, temporary,
};

/// What stands before every text that came from a caller when it is compiled. None of our own texts begins with it, so
/// the statement cache, which goes by the text, can never hand a caller a statement that was compiled for us.
const CALLERS: &str = "/*c*/";

/// Bytes of a caller's text up to which its compiled statement is kept: what is kept per connection is bounded by it.
const CACHED_BYTES_MAX: usize = 4 * 1024;

/// A connection in use by one call.
#[derive(Clone, Copy)]
pub(crate) struct Session<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) control: &'c Arc<Control>,
    pub(crate) limits: &'c Limits,
    pub(crate) path: &'c Path,
}

/// What one call's results may still take.
#[derive(Debug)]
pub(crate) struct Budget {
    rows_max: usize,
    bytes_max: usize,
    rows: usize,
    bytes: usize,
    /// What the process's memory is asked for beside it.
    held: Held,
}

/// Bytes that a row, and a value, hold beside what is in them.
const ROW_BYTES: u64 = 64;
const VALUE_BYTES: u64 = 40;

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let held = limits.memory.hold();
        Self { rows_max: limits.rows_max, bytes_max: limits.result_bytes_max, rows: 0, bytes: 0, held }
    }

    pub(crate) fn into_held(self) -> Held {
        self.held
    }

    fn row(&mut self) -> Result<(), LedgerError> {
        self.rows += 1;
        if self.rows > self.rows_max {
            return Err(LedgerError::TooLarge { what: "rows", limit: self.rows_max as u64 });
        }
        self.held.grow(ROW_BYTES)
    }

    fn bytes(&mut self, bytes: usize) -> Result<(), LedgerError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            return Err(LedgerError::TooLarge { what: "result bytes", limit: self.bytes_max as u64 });
        }
        Ok(())
    }

    fn holds(&mut self, bytes: u64) -> Result<(), LedgerError> {
        self.held.grow(VALUE_BYTES + bytes)
    }
}

/// A caller's statement, compiled under the authorizer.
pub(crate) struct Compiled<'c> {
    form: Form<'c>,
    /// Whether it changes the schema. Such a statement is not cached: this was said while it was compiled.
    changes_schema: bool,
    inserts: bool,
    /// How many columns and functions it names.
    terms: usize,
}

enum Form<'c> {
    Cached(CachedStatement<'c>),
    Once(rusqlite::Statement<'c>),
}

impl<'c> Compiled<'c> {
    pub(crate) fn statement(&self) -> &rusqlite::Statement<'c> {
        match &self.form {
            Form::Cached(statement) => statement,
            Form::Once(statement) => statement,
        }
    }

    fn statement_mut(&mut self) -> &mut rusqlite::Statement<'c> {
        match &mut self.form {
            Form::Cached(statement) => statement,
            Form::Once(statement) => statement,
        }
    }

    pub(crate) fn columns(&self) -> Vec<String> {
        self.statement().column_names().map(str::to_owned).collect()
    }
}

impl<'c> Session<'c> {
    /// Compiles a caller's text: exactly one statement that callers may run.
    pub(crate) fn compile(&self, sql: &str) -> Result<Compiled<'c>, LedgerError> {
        if sql.len() > self.limits.sql_bytes_max {
            return Err(LedgerError::TooLarge { what: "SQL bytes", limit: self.limits.sql_bytes_max as u64 });
        }
        if sql.contains('\0') {
            return Err(LedgerError::Sql { message: "the text has a NUL".to_owned() });
        }
        let verb = first_word(sql).to_ascii_uppercase();
        // Inside a transaction SQLite says only that VACUUM cannot run, and asks the authorizer nothing.
        if verb == "VACUUM" {
            return Err(LedgerError::SqlForbidden { what: "VACUUM, which writes a file".to_owned() });
        }
        let text = format!("{CALLERS}{sql}");
        self.control.take_schema_change();
        let cacheable = matches!(
            verb.as_str(),
            "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH" | "VALUES"
        ) && sql.len() <= CACHED_BYTES_MAX;
        let once = || self.connection.prepare(&text).map(Form::Once);
        self.control.begin_terms();
        let form = if cacheable { self.connection.prepare_cached(&text).map(Form::Cached) } else { once() };
        let mut form = form.map_err(|error| self.explain(error))?;
        if self.width(&form) > self.terms_free()
            && let Form::Cached(kept) = form
        {
            // What is found in the cache is not judged again, so only what may hold values of any length is kept there.
            kept.discard();
            self.control.begin_terms();
            form = once().map_err(|error| self.explain(error))?;
        }
        let terms = self.width(&form);
        if terms > self.limits.terms_max {
            return Err(LedgerError::TooLarge { what: TERMS, limit: self.limits.terms_max as u64 });
        }
        Ok(Compiled {
            form,
            changes_schema: self.control.take_schema_change(),
            inserts: matches!(verb.as_str(), "INSERT" | "REPLACE" | "WITH"),
            terms,
        })
    }

    /// How many values that are large may be alive at a time in a statement that was just compiled, to the best of what its compiler told:
    /// whatever is computed is computed from columns and by functions.
    fn width(&self, form: &Form<'_>) -> usize {
        let columns = match form {
            Form::Cached(statement) => statement.column_count(),
            Form::Once(statement) => statement.column_count(),
        };
        self.control.terms().max(columns)
    }

    /// Bytes that the values of one statement may have together.
    fn statement_bytes_max(&self) -> usize {
        let share =
            memory_limit().map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
        self.limits.statement_bytes_max.min(share)
    }

    /// How many values of full length that are.
    fn terms_free(&self) -> usize {
        self.statement_bytes_max() / self.limits.value_bytes_max.max(1)
    }

    /// Has each value of a statement with so many of them be no longer than its share, until the answer is dropped.
    fn narrow(&self, terms: usize) -> Result<Option<Narrowed<'c>>, LedgerError> {
        let full = self.limits.value_bytes_max;
        let share = (self.statement_bytes_max() / terms.max(1)).max(VALUE_BYTES_LEAST).min(full);
        // Compiled again by itself after a change of the schema, a statement is counted anew.
        self.control.allow_terms(
            terms.saturating_mul(2).max(self.terms_free()).min(self.limits.terms_max.max(terms) * 2),
        );
        if share == full {
            return Ok(None);
        }
        let int = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        self.connection
            .set_limit(Limit::SQLITE_LIMIT_LENGTH, int(share))
            .map_err(|error| self.explain(error))?;
        Ok(Some(Narrowed { connection: self.connection, full: int(full) }))
    }

    /// Runs a reading statement of a caller's.
    pub(crate) fn query(
        &self,
        compiled: &mut Compiled<'c>,
        params: &[Value],
        budget: &mut Budget,
    ) -> Result<Rows, LedgerError> {
        if !compiled.statement().readonly() {
            return Err(LedgerError::ReadOnly);
        }
        let rows = self.step(compiled, params, budget)?;
        Ok(Rows { columns: compiled.columns(), rows, held: budget.held.take() })
    }

    /// Runs any statement of a caller's; only on the writer, inside a transaction.
    pub(crate) fn execute(
        &self,
        compiled: &mut Compiled<'c>,
        params: &[Value],
        budget: &mut Budget,
    ) -> Result<Executed, LedgerError> {
        let before = self.connection.total_changes();
        let reads = compiled.statement().readonly();
        let rows = self.step(compiled, params, budget).inspect_err(|error| {
            // SQLite takes back what fails for it; that an answer is too long is our own finding.
            if !reads && matches!(error, LedgerError::TooLarge { .. } | LedgerError::MemoryShort) {
                self.control.spoil("the answer of a writing statement was past its bound");
            }
        })?;
        let changed = self.connection.total_changes() != before;
        let rows_affected = if changed { self.connection.changes() } else { 0 };
        if compiled.changes_schema {
            self.check_schema()?;
        }
        let last_insert_rowid =
            (compiled.inserts && rows_affected > 0).then(|| self.connection.last_insert_rowid());
        Ok(Executed { rows_affected, last_insert_rowid, columns: compiled.columns(), rows })
    }

    /// Refuses what a caller's schema change did to our names by a way that the authorizer is not told of.
    fn check_schema(&self) -> Result<(), LedgerError> {
        let _ours = self.control.ours();
        match schema::strangers(self.connection).map_err(|error| self.explain(error))? {
            None => Ok(()),
            Some(what) => {
                self.control.spoil("a statement took a name that is the ledger's");
                Err(LedgerError::SqlForbidden { what: format!("make {what}") })
            }
        }
    }

    /// Refuses to go on in a transaction that has ended, or that must not be committed. SQL can end one by itself (`ON
    /// CONFLICT ROLLBACK`, an interrupted write, a full disk), and what came after that would be committed statement
    /// by statement.
    pub(crate) fn check_transaction(&self) -> Result<(), LedgerError> {
        let detail = self.control.spoiled();
        if detail.is_some() || self.connection.is_autocommit() {
            return Err(LedgerError::RolledBack { detail: detail.map(str::to_owned) });
        }
        Ok(())
    }

    fn step(
        &self,
        compiled: &mut Compiled<'c>,
        params: &[Value],
        budget: &mut Budget,
    ) -> Result<Vec<Vec<Value>>, LedgerError> {
        if params.len() > self.limits.params_max {
            return Err(LedgerError::TooLarge { what: "parameters", limit: self.limits.params_max as u64 });
        }
        let _narrowed = self.narrow(compiled.terms)?;
        let statement = compiled.statement_mut();
        if statement.parameter_count() != params.len() {
            let message = format!(
                "the text has {} parameters, {} were given",
                statement.parameter_count(),
                params.len()
            );
            return Err(LedgerError::Sql { message });
        }
        for (at, param) in params.iter().enumerate() {
            statement.raw_bind_parameter(at + 1, param).map_err(|error| self.explain(error))?;
        }
        let width = statement.column_count();
        let mut answered = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.explain(error))? {
            budget.row()?;
            let mut values = Vec::with_capacity(width);
            for at in 0..width {
                let value = value(row.get_ref(at).map_err(|error| self.explain(error))?, budget)?;
                values.push(value);
            }
            answered.push(values);
        }
        Ok(answered)
    }

    /// What a failure of SQLite's was: the hooks know of some of them more than their message says.
    pub(crate) fn explain(&self, error: rusqlite::Error) -> LedgerError {
        if let Some(what) = self.control.take_denied() {
            return LedgerError::SqlForbidden { what };
        }
        if error.sqlite_error_code() == Some(Sqlite::OperationInterrupted) {
            match self.control.take_stop() {
                Some(Stop::Refused(refusal)) => return refusal.into(),
                Some(Stop::Timeout) => {
                    return LedgerError::StatementTimeout { limit: self.limits.statement_time };
                }
                Some(Stop::Written) => {
                    return LedgerError::TooLarge {
                        what: "bytes of temporary files",
                        limit: self.limits.temp_bytes_max,
                    };
                }
                Some(Stop::DiskShort) => {
                    return LedgerError::DiskFull { path: temporary::directory().to_owned() };
                }
                Some(Stop::Widened) => {
                    return LedgerError::TooLarge { what: TERMS, limit: self.limits.terms_max as u64 };
                }
                None => {}
            }
        }
        match (from_sqlite(error, self.path), self.limits.file_bytes_max) {
            // SQLite has one code for the disk's end and the file's own; the disk can be asked.
            (LedgerError::DiskFull { .. }, Some(limit)) if has_room(self.path) => LedgerError::Full { limit },
            (LedgerError::TooLarge { what: VALUE, .. }, _) => {
                LedgerError::TooLarge { what: VALUE, limit: self.limits.value_bytes_max as u64 }
            }
            (error, _) => error,
        }
    }
}

fn has_room(path: &Path) -> bool {
    const ROOM: u64 = 1024 * 1024;
    rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) > ROOM)
}

fn value(value: rusqlite::types::ValueRef<'_>, budget: &mut Budget) -> Result<Value, LedgerError> {
    use rusqlite::types::ValueRef;
    // Counted before it is copied.
    match value {
        ValueRef::Text(bytes) => {
            budget.bytes(bytes.len())?;
            budget.holds(of_text(bytes))?;
        }
        ValueRef::Blob(bytes) => {
            budget.bytes(bytes.len())?;
            budget.holds(of_blob(bytes.len()))?;
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {
            budget.bytes(8)?;
            budget.holds(24)?;
        }
    }
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

/// What SQLite's own bound on values is called.
const VALUE: &str = "bytes of a value";
/// What columns and functions are called.
const TERMS: &str = "columns and functions of a statement";
/// What a value may have in any statement: the longest event.
const VALUE_BYTES_LEAST: usize = 256 * 1024;

/// While it lives, the connection's values are shorter than they may be.
struct Narrowed<'c> {
    connection: &'c Connection,
    full: i32,
}

impl Drop for Narrowed<'_> {
    fn drop(&mut self) {
        // What was set once can be set again.
        let _ = self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, self.full);
    }
}

/// What a failure of SQLite's was, by its code alone.
pub(crate) fn from_sqlite(error: rusqlite::Error, path: &Path) -> LedgerError {
    let damaged = |detail: String| LedgerError::Damaged { path: path.to_owned(), detail };
    match error.sqlite_error_code() {
        Some(Sqlite::DiskFull) => return LedgerError::DiskFull { path: path.to_owned() },
        // The index of the log lies in a file too, and that could not grow.
        _ if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
            return LedgerError::DiskFull { path: path.to_owned() };
        }
        Some(Sqlite::DatabaseCorrupt | Sqlite::NotADatabase) => return damaged(error.to_string()),
        Some(Sqlite::ReadOnly) => return LedgerError::ReadOnly,
        Some(Sqlite::TooBig) => return LedgerError::TooLarge { what: VALUE, limit: 0 },
        // No statement alone has so much: all of them together, and whatever else is open here.
        Some(Sqlite::OutOfMemory) => return LedgerError::MemoryShort,
        // Only for a moment, by SQLite's own recovery: there is one writer.
        Some(Sqlite::DatabaseBusy | Sqlite::DatabaseLocked) => {
            return LedgerError::Busy { waited: BUSY_WAIT };
        }
        Some(Sqlite::SystemIoFailure | Sqlite::CannotOpen | Sqlite::PermissionDenied) => {
            return LedgerError::io("use", path, std::io::Error::other(error.to_string()));
        }
        _ => {}
    }
    let message = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::MultipleStatement => "the text has more than one statement".to_owned(),
        rusqlite::Error::Empty => "the text has no statement".to_owned(),
        other => other.to_string(),
    };
    LedgerError::Sql { message }
}

/// The first word of a statement, past white space and comments; empty where there is none.
fn first_word(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        } else {
            let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
            return &rest[..end];
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ErrorCode;

    use super::*;

    #[test]
    fn the_first_word_is_behind_comments() {
        for (sql, word) in [
            ("select 1", "select"),
            (" \n-- x\n/* y */ VACUUM INTO 'z'", "VACUUM"),
            ("/* open", ""),
            ("-- only", ""),
            ("", ""),
            (";", ""),
        ] {
            assert_eq!(first_word(sql), word, "{sql}");
        }
    }

    #[test]
    fn a_full_disk_and_damage_are_told_by_their_codes() {
        let failure =
            |code| from_sqlite(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None), Path::new("/x"));
        assert!(matches!(failure(ffi::SQLITE_FULL), LedgerError::DiskFull { .. }));
        assert!(matches!(failure(ffi::SQLITE_IOERR_SHMSIZE), LedgerError::DiskFull { .. }));
        assert!(matches!(failure(ffi::SQLITE_IOERR_WRITE), LedgerError::Io { .. }));
        assert!(matches!(failure(ffi::SQLITE_CORRUPT), LedgerError::Damaged { .. }));
        assert!(matches!(failure(ffi::SQLITE_CONSTRAINT), LedgerError::Sql { .. }));
        assert_eq!(failure(ffi::SQLITE_NOMEM).code(), ErrorCode::Overloaded);
    }
}
