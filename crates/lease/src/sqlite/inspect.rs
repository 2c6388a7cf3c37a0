//! A look at a lease file for who has to decide whether it can be used: nothing in it is changed.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::connection::{BUSY_TIMEOUT, FORMAT, boot_id, open_failed};
use crate::{LeaseError, SqliteLeaseStore};

/// A lease file as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteFile {
    /// Its format.
    pub format: u32,
    /// The newest format that this build reads.
    pub format_known: u32,
    /// Whether its times belong to this boot of the machine. In another one every lease has run out.
    pub is_of_this_boot: bool,
    /// The fingerprint of the derivation key that it was bound to, if it was bound to one.
    pub derivation_fingerprint: Option<String>,
}

impl SqliteLeaseStore {
    /// The boot of this machine to which the times of a file belong that is opened now.
    pub fn boot() -> Result<String, LeaseError> {
        boot_id()
    }

    /// What the file at `path` is; `None` where there is none, or nothing in it yet. Blocks for a few milliseconds, with other processes at work for two
    /// seconds at the most.
    pub fn inspect(path: &Path) -> Result<Option<SqliteFile>, LeaseError> {
        let failed =
            |error: &dyn std::fmt::Display| LeaseError::Open { path: path.into(), detail: error.to_string() };
        if !path.try_exists().map_err(|error| failed(&error))? {
            return Ok(None);
        }
        let boot = boot_id()?;
        let sql = |error: rusqlite::Error| open_failed(path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = Connection::open_with_flags(path, flags).map_err(sql)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
        let unusable = |detail: &str| LeaseError::Unusable { path: path.into(), detail: detail.into() };
        let (tables, has_meta): (i64, bool) = connection
            .query_row("SELECT count(*), coalesce(max(name = 'meta'), false) FROM sqlite_schema", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(sql)?;
        if tables == 0 {
            return Ok(None);
        }
        if !has_meta {
            return Err(unusable("it has other tables"));
        }
        let meta = |name: &str| -> Result<Option<String>, LeaseError> {
            let select = "SELECT value FROM meta WHERE name = ?1";
            connection.query_row(select, [name], |row| row.get(0)).optional().map_err(sql)
        };
        let format = meta("format")?.and_then(|text| text.parse().ok());
        Ok(Some(SqliteFile {
            format: format.ok_or_else(|| unusable("it does not say its format"))?,
            format_known: FORMAT,
            is_of_this_boot: meta("boot")?.is_some_and(|kept| kept == boot),
            derivation_fingerprint: meta("derivation_key")?,
        }))
    }
}
