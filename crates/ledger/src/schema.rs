//! The tables of a ledger that are ours.
//!
//! The text is a persisted format, pinned by a test. `events` is for callers to read; everything else of ours carries
//! the prefix `leasehold_`, in no case of letters free for callers.

use std::path::Path;

use rusqlite::Connection;

use crate::LedgerError;

/// The newest format that this build reads and the one that it writes.
pub(crate) const FORMAT: u64 = 1;

/// What `file(1)` and the like may know a ledger by: "LSHD".
const APPLICATION_ID: i32 = 0x4c53_4844;

/// The prefix of every internal name.
const PREFIX: &str = "leasehold_";

/// Every object of ours as (type, name, table, text), in the order in which they are created.
///
/// - `events.seq` is a plain rowid: events are never deleted, so AUTOINCREMENT would buy nothing for its
///   31 % (measured).
/// - The index on the caller's key is what a write costs beyond its row: in random order every append dirties a page
///   of its own, in rising order all share the last one (4.8 MB against 0.55 MB of changed pages per 1,000 appends).
///   It therefore keeps the keys as they are, so that whoever sends rising keys pays little; a hash of the key would
///   be a smaller entry and make every key a random one. It is partial, so events without a key cost nothing, and
///   unique, so that the file itself cannot hold a key twice.
/// - `leasehold_tenures` has a row per epoch that appended, written with its first event: an epoch that only read
///   leaves no mark.
/// - `leasehold_answers` has rising ids, so that the oldest can be dropped without looking at their keys.
const OBJECTS: [(&str, &str, &str, Option<&str>); 7] = [
    (
        "table",
        "events",
        "events",
        Some(
            "CREATE TABLE events (seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, actor TEXT NOT NULL, kind TEXT NOT NULL, \
             subject_id TEXT, payload TEXT NOT NULL, idem_key TEXT, idem_digest BLOB, run_id TEXT) STRICT",
        ),
    ),
    (
        "index",
        "leasehold_events_idem_key",
        "events",
        Some("CREATE UNIQUE INDEX leasehold_events_idem_key ON events (idem_key) WHERE idem_key IS NOT NULL"),
    ),
    (
        "table",
        "leasehold_tenures",
        "leasehold_tenures",
        Some(
            "CREATE TABLE leasehold_tenures (epoch INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL UNIQUE, \
             tenure_id TEXT NOT NULL) STRICT",
        ),
    ),
    ("index", "sqlite_autoindex_leasehold_tenures_1", "leasehold_tenures", None),
    (
        "table",
        "leasehold_answers",
        "leasehold_answers",
        Some(
            "CREATE TABLE leasehold_answers (id INTEGER PRIMARY KEY, idem_key TEXT NOT NULL UNIQUE, \
             digest BLOB NOT NULL, answer TEXT NOT NULL) STRICT",
        ),
    ),
    ("index", "sqlite_autoindex_leasehold_answers_1", "leasehold_answers", None),
    (
        "table",
        "leasehold_meta",
        "leasehold_meta",
        Some(
            "CREATE TABLE leasehold_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        ),
    ),
];

/// Whether a table, index or other object is one of ours, or would be taken for one.
pub(crate) fn is_ours(name: &str) -> bool {
    name.eq_ignore_ascii_case("events") || is_internal(name)
}

/// Whether it is ours and not for callers to read either.
pub(crate) fn is_internal(name: &str) -> bool {
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Creates our tables in a file that has none. One transaction: a crash leaves none or all.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    let texts: Vec<&str> = OBJECTS.iter().filter_map(|object| object.3).collect();
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; {}; \
         INSERT INTO main.leasehold_meta (name, value) VALUES ('format', {FORMAT}); COMMIT",
        texts.join("; "),
    ))
}

/// Whether the file has no object at all, ours or a caller's.
pub(crate) fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM main.sqlite_schema)", [], |row| row.get(0))
}

/// Refuses a file whose format is newer than this build knows, or whose internal tables are not exactly ours.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let damaged = |detail: String| LedgerError::Damaged { path: path.to_owned(), detail };
    let found: i64 = connection
        .query_row("SELECT value FROM main.leasehold_meta WHERE name = 'format'", [], |row| row.get(0))
        .map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                damaged(error.to_string())
            }
            _ => damaged("it is a SQLite file and not a ledger".to_owned()),
        })?;
    let found = u64::try_from(found).unwrap_or(0);
    if found > FORMAT {
        return Err(LedgerError::FormatTooNew { path: path.to_owned(), found, supported: FORMAT });
    }
    match strangers(connection).map_err(|error| damaged(error.to_string()))? {
        None => Ok(()),
        Some(what) => Err(damaged(format!("its internal tables are not as they should be: {what}"))),
    }
}

/// The first difference between our objects and what the file has under our names and on our tables.
///
/// Asked at open (a restored or imported file is not trusted) and in each transaction in which a caller changed the
/// schema: the authorizer is not told every name (the new one of ALTER TABLE RENAME, the shadow tables of a virtual
/// one), the file is.
pub(crate) fn strangers(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT type, name, tbl_name, sql FROM main.sqlite_schema \
         WHERE lower(tbl_name) = 'events' OR lower(name) = 'events' \
         OR lower(substr(tbl_name, 1, 10)) = 'leasehold_' OR lower(substr(name, 1, 10)) = 'leasehold_'",
    )?;
    let mut rows = statement.query([])?;
    let mut known = 0;
    while let Some(row) = rows.next()? {
        let (kind, name, table): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let text: Option<String> = row.get(3)?;
        let found = (kind.as_str(), name.as_str(), table.as_str(), text.as_deref());
        if !OBJECTS.contains(&found) {
            return Ok(Some(format!("{kind} {name} on {table}")));
        }
        known += 1;
    }
    // Names are unique in a schema, so as many as there are means all of them.
    Ok((known < OBJECTS.len()).then(|| format!("{known} of {} objects are there", OBJECTS.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_pinned() {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection).unwrap();
        let mut statement = connection
            .prepare("SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY name")
            .unwrap();
        let found: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(
            found,
            [
                "events: CREATE TABLE events (seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, actor TEXT NOT NULL, kind TEXT NOT NULL, subject_id TEXT, payload TEXT NOT NULL, idem_key TEXT, idem_digest BLOB, run_id TEXT) STRICT",
                "leasehold_answers: CREATE TABLE leasehold_answers (id INTEGER PRIMARY KEY, idem_key TEXT NOT NULL UNIQUE, digest BLOB NOT NULL, answer TEXT NOT NULL) STRICT",
                "leasehold_events_idem_key: CREATE UNIQUE INDEX leasehold_events_idem_key ON events (idem_key) WHERE idem_key IS NOT NULL",
                "leasehold_meta: CREATE TABLE leasehold_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
                "leasehold_tenures: CREATE TABLE leasehold_tenures (epoch INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL UNIQUE, tenure_id TEXT NOT NULL) STRICT",
                "sqlite_autoindex_leasehold_answers_1: ",
                "sqlite_autoindex_leasehold_tenures_1: ",
            ]
        );
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("PRAGMA application_id"), 1_280_526_404);
        assert_eq!(number("SELECT value FROM leasehold_meta WHERE name = 'format'"), 1);
        assert_eq!(strangers(&connection).unwrap(), None);
    }

    #[test]
    fn anything_more_or_less_under_our_names_is_found() {
        for change in [
            "CREATE TRIGGER x AFTER INSERT ON events BEGIN SELECT 1; END",
            "CREATE INDEX x ON Events (kind)",
            "CREATE TABLE LEASEHOLD_x (a)",
            "DROP TABLE leasehold_answers",
            "ALTER TABLE events ADD COLUMN more TEXT",
        ] {
            let connection = Connection::open_in_memory().unwrap();
            create(&connection).unwrap();
            connection.execute_batch(change).unwrap();
            assert!(strangers(&connection).unwrap().is_some(), "{change}");
        }
    }

    #[test]
    fn names_are_ours_in_every_case_of_letters() {
        assert!(is_ours("EVENTS") && is_ours("Leasehold_Meta") && is_internal("leasehold_"));
        assert!(!is_ours("event") && !is_internal("events") && !is_internal("leasehol\u{e9}_x"));
    }
}
