//! A ledger's files while nobody has them open: put on their path, removed, looked at.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use leasehold_types::{Epoch, Position};
use rusqlite::{Connection, OpenFlags};

use crate::{LedgerError, schema, session::from_sqlite};

/// What `SQLite` keeps beside a file.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What a whole ledger file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The ledger's format number.
    pub format: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// How many pages it has.
    pub pages: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its last event; `None` where there is none.
    pub position: Option<Position>,
}

/// Puts a verified plain file from the same directory tree on a ledger's path, at once: whoever had the old file open
/// keeps that file, which no name leads to any more (contract P3), and the old log goes first so that it is never
/// taken for the new file's.
pub fn install(image_file: &Path, path: &Path) -> Result<(), LedgerError> {
    for companion in COMPANIONS {
        remove(&beside(path, companion))?;
    }
    fs::rename(image_file, path).map_err(|error| LedgerError::io("install", path, error))
}

/// Removes a ledger and what `SQLite` keeps beside it (contract L1). What is not there is no error.
pub fn remove_files(path: &Path) -> Result<(), LedgerError> {
    // The file last: while it is there, what is left of the others is known to be its own.
    for companion in COMPANIONS {
        remove(&beside(path, companion))?;
    }
    remove(path)
}

/// Looks through a plain file that nobody writes to: the format, the internal tables, the length, and SQLite's own
/// check.
pub fn verify_file(path: &Path) -> Result<FileFacts, LedgerError> {
    let bytes = fs::metadata(path).map_err(|error| LedgerError::io("look at", path, error))?.len();
    let failed = |error| from_sqlite(error, path);
    let damaged = |detail: String| LedgerError::Damaged { path: path.to_owned(), detail };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable_uri(path)?, flags).map_err(failed)?;
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, Option<i64>>(0))
            .map(|number| number.and_then(|number| u64::try_from(number).ok()))
            .map_err(failed)
    };
    schema::check(&connection, path)?;
    let page_size = number("PRAGMA page_size")?.unwrap_or(0);
    let pages = number("PRAGMA page_count")?.unwrap_or(0);
    if page_size * pages != bytes {
        return Err(damaged(format!("it has {bytes} bytes and not {pages} pages of {page_size}")));
    }
    quick_check(&connection, path)?;
    let last = number("SELECT max(seq) FROM main.events")?;
    let epoch = number("SELECT max(epoch) FROM main.leasehold_tenures")?;
    let position = match (last, epoch.map(Epoch::new)) {
        (None, None) => None,
        (Some(seq), Some(Ok(epoch))) => Some(Position { epoch, seq }),
        _ => return Err(damaged("its events and its epochs do not belong together".to_owned())),
    };
    let format = number("SELECT value FROM main.leasehold_meta WHERE name = 'format'")?.unwrap_or(0);
    Ok(FileFacts { format, page_size, pages, bytes, position })
}

pub(crate) fn quick_check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| from_sqlite(error, path))?;
    if found == "ok" { Ok(()) } else { Err(LedgerError::Damaged { path: path.to_owned(), detail: found }) }
}

/// The name of a companion: SQLite appends, whatever the extension.
pub(crate) fn beside(path: &Path, companion: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(companion);
    name.into()
}

fn remove(path: &Path) -> Result<(), LedgerError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LedgerError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// A name under which SQLite neither locks the file nor looks for a log beside it.
fn immutable_uri(path: &Path) -> Result<String, LedgerError> {
    let text =
        path.to_str().ok_or(LedgerError::InvalidArgument { what: "the path", rule: "must be UTF-8" })?;
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Ok(format!("file:{text}?immutable=1"))
}
