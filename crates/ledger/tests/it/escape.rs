//! What callers' SQL may not do, by whichever way it comes, and what it may.

use leasehold_ledger::{LedgerError, Rows, Statement, Value};
use leasehold_types::ErrorCode::{ReadOnly, SqlError, SqlForbidden};

use crate::fixture::{World, event, keyed};

/// Refused with the same code by `execute` and inside a `run`.
const FORBIDDEN: &[&str] = &[
    // Writing where only the ledger writes.
    "INSERT INTO events (seq, ts, actor, kind, payload) VALUES (9, 0, 'a', 'k', 'null')",
    "INSERT OR REPLACE INTO events (seq, ts, actor, kind, payload) VALUES (1, 0, 'a', 'k', 'null')",
    "REPLACE INTO main.EVENTS (seq, ts, actor, kind, payload) VALUES (1, 0, 'a', 'k', 'null')",
    "INSERT INTO events SELECT seq + 100, ts, actor, kind, subject_id, payload, NULL, NULL, run_id FROM events",
    "INSERT INTO \"events\" (seq, ts, actor, kind, payload) VALUES (1, 0, 'a', 'k', 'null') ON CONFLICT DO UPDATE SET kind = 'x'",
    "UPDATE events SET kind = 'x'",
    "UPDATE [Events] SET seq = seq + 1",
    "DELETE FROM events",
    "WITH gone AS (SELECT 1) DELETE FROM `events` WHERE seq IN gone",
    "EXPLAIN DELETE FROM events",
    "INSERT INTO leasehold_meta VALUES ('x', 1)",
    "UPDATE leasehold_meta SET value = 2",
    "DELETE FROM leasehold_answers",
    "DELETE FROM Leasehold_Tenures",
    // Reading what is not for callers.
    "SELECT * FROM leasehold_meta",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM LEASEHOLD_TENURES)",
    "SELECT (SELECT count(*) FROM leasehold_answers)",
    "CREATE TABLE mine AS SELECT * FROM leasehold_tenures",
    "SELECT * FROM dbstat",
    // The schema of what is ours.
    "DROP TABLE events",
    "DROP TABLE IF EXISTS leasehold_meta",
    "DROP INDEX leasehold_events_idem_key",
    "ALTER TABLE events ADD COLUMN x",
    "ALTER TABLE events RENAME TO other",
    "ALTER TABLE events RENAME COLUMN kind TO sort",
    "ALTER TABLE events DROP COLUMN run_id",
    "CREATE INDEX mine ON events (kind)",
    "CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END",
    "CREATE TRIGGER mine BEFORE INSERT ON events BEGIN SELECT raise(IGNORE); END",
    "CREATE TEMP TRIGGER mine AFTER INSERT ON main.events BEGIN SELECT 1; END",
    "CREATE TRIGGER mine INSTEAD OF INSERT ON leasehold_meta BEGIN SELECT 1; END",
    "REINDEX leasehold_events_idem_key",
    // Names that are ours, taken by some other way.
    "CREATE TABLE leasehold_mine (x)",
    "CREATE TABLE \"LEASEHOLD_mine\" (x)",
    "CREATE VIEW leasehold_mine AS SELECT 1",
    "CREATE INDEX leasehold_mine ON free (x)",
    "CREATE TRIGGER leasehold_mine AFTER INSERT ON free BEGIN SELECT 1; END",
    "ALTER TABLE free RENAME TO leasehold_mine",
    "CREATE VIRTUAL TABLE leasehold_mine USING fts5 (x)",
    // What lasts in the connection and hides what is in the file.
    "CREATE TEMP TABLE events (x)",
    "CREATE TABLE temp.mine (x)",
    "CREATE TEMP VIEW events AS SELECT 1",
    "CREATE VIRTUAL TABLE temp.mine USING fts5 (x)",
    // Other files, and the library.
    "ATTACH ':memory:' AS other",
    "ATTACH DATABASE '/tmp/other.db' AS other",
    "DETACH main",
    "VACUUM",
    "/* x */ VACUUM INTO '/tmp/other.db'",
    "-- x\nVACUUM main INTO '/tmp/other.db'",
    "SELECT load_extension('/tmp/other.so')",
    "SELECT fts3_tokenizer('simple')",
    "CREATE VIRTUAL TABLE mine USING fts4 (x)",
    "CREATE VIRTUAL TABLE mine USING dbstat",
    "CREATE VIRTUAL TABLE mine USING csv (filename = '/etc/passwd')",
    // The connection's settings.
    "PRAGMA writable_schema = ON",
    "PRAGMA writable_schema",
    "PRAGMA main.journal_mode = DELETE",
    "PRAGMA journal_mode",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA wal_autocheckpoint = 1",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA user_version = 7",
    "PRAGMA schema_version = 7",
    "PRAGMA application_id = 7",
    "PRAGMA page_size = 512",
    "PRAGMA max_page_count = 1",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA temp_store = FILE",
    "PRAGMA query_only = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA mmap_size = 1000000",
    "PRAGMA database_list",
    "PRAGMA optimize",
    "PRAGMA incremental_vacuum",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_journal_mode('delete')",
    // The transaction.
    "BEGIN",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "END TRANSACTION",
    "ROLLBACK",
    "SAVEPOINT mine",
    "RELEASE leasehold_batch",
    "ROLLBACK TO leasehold_batch",
    // A neighbour's shadow: what a virtual table makes beside itself would have a name of ours.
    "CREATE VIRTUAL TABLE leasehold USING fts5 (x)",
    "CREATE VIRTUAL TABLE LeaseHold USING rtree (id, a, b)",
    // Ours by the side doors of a statement on a table that is free.
    "DELETE FROM events RETURNING *",
    "INSERT INTO free SELECT tenure_id FROM leasehold_tenures RETURNING x",
    "UPDATE free SET x = 1 FROM leasehold_meta",
    "DELETE FROM free WHERE x IN (SELECT value FROM leasehold_meta)",
    "CREATE TABLE mine AS WITH m AS MATERIALIZED (SELECT * FROM leasehold_answers) SELECT * FROM m",
    "SELECT * FROM json_each((SELECT answer FROM leasehold_answers))",
    "CREATE TEMP TRIGGER mine AFTER INSERT ON main.free BEGIN DELETE FROM events; END",
    "CREATE TEMPORARY TABLE mine AS SELECT 1",
    // The other settings, ours and the process's, and one that there is not.
    "PRAGMA main.writable_schema = 1",
    "PRAGMA data_store_directory = '/tmp'",
    "PRAGMA ignore_check_constraints = ON",
    "PRAGMA legacy_alter_table = ON",
    "PRAGMA legacy_file_format = ON",
    "PRAGMA recursive_triggers = ON",
    "PRAGMA reverse_unordered_selects = ON",
    "PRAGMA case_sensitive_like = ON",
    "PRAGMA cell_size_check = OFF",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA fullfsync = ON",
    "PRAGMA soft_heap_limit = 1",
    "PRAGMA cache_spill = OFF",
    "PRAGMA cache_size = -1000000000",
    "PRAGMA default_cache_size = 1",
    "PRAGMA threads = 8",
    "PRAGMA busy_timeout = 0",
    "PRAGMA shrink_memory",
    "PRAGMA secure_delete = OFF",
    "PRAGMA auto_vacuum = FULL",
    "PRAGMA encoding = 'UTF-16'",
    "PRAGMA integrity_check",
    "PRAGMA quick_check",
    "PRAGMA function_list",
    "PRAGMA module_list",
    "PRAGMA pragma_list",
    "PRAGMA lock_status",
    "PRAGMA journal_size_limit = 0",
    "PRAGMA defer_foreign_keys = ON",
    "PRAGMA analysis_limit = 1",
    "PRAGMA automatic_index = OFF",
    "PRAGMA read_uncommitted = ON",
    "PRAGMA vdbe_trace = ON",
    "PRAGMA stats",
    "PRAGMA key = 'x'",
    "PRAGMA rekey = 'x'",
    "PRAGMA no_such_pragma = 1",
];

/// What this build of SQLite does not have, or refuses by itself: an error either way, and no effect.
const ABSENT: &[&str] = &[
    "UPDATE sqlite_schema SET sql = '' WHERE name = 'events'",
    "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x (y)')",
    "DELETE FROM sqlite_schema WHERE name = 'leasehold_meta'",
    "DROP TABLE sqlite_schema",
    "CREATE TABLE sqlite_mine (x)",
    "CREATE VIEW sqlite_sequence AS SELECT 1",
    "ALTER TABLE free RENAME TO events",
    "ALTER TABLE sqlite_schema RENAME TO x",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM sqlite_dbptr",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM sqlite_memstat",
    "SELECT * FROM bytecode('SELECT 1')",
    "SELECT * FROM tables_used('SELECT 1')",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM generate_series(1, 10)",
    "SELECT * FROM pragma_writable_schema",
    "SELECT * FROM pragma_function_list",
    "SELECT edit('x', 'vi')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/other', 'x')",
    "SELECT sqlite_log(1, 'x')",
    "SELECT load_extension('/tmp/other.so', 'entry')",
    "CREATE VIRTUAL TABLE mine USING fts3 (x)",
    "CREATE VIRTUAL TABLE mine USING fts3tokenize",
    "CREATE VIRTUAL TABLE mine USING fts4aux (free)",
    "CREATE VIRTUAL TABLE mine USING fts5vocab (free, row)",
    "CREATE VIRTUAL TABLE mine USING sqlite_dbpage",
    "CREATE VIRTUAL TABLE mine USING json_each",
    "CREATE VIRTUAL TABLE mine USING zipfile ('/tmp/other.zip')",
    "CREATE VIRTUAL TABLE mine USING swarmvtab ('x')",
    "CREATE VIRTUAL TABLE mine USING geopoly (x)",
    "CREATE TABLE other.mine (x)",
    "SELECT * FROM other.events",
    "SELECT 1; DELETE FROM events",
    "SELECT 1;; ATTACH ':memory:' AS other",
];

fn schema(world: &World) -> Rows {
    world
        .ledger
        .query(&world.gate, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name", &[])
        .unwrap()
}

#[test]
fn what_is_forbidden_is_refused_by_every_way_and_changes_nothing() {
    let world = World::new();
    world.execute("CREATE TABLE free (x)");
    world.ledger.append(&world.gate, &[keyed("a", "k"), event("b")]).unwrap();
    let before = schema(&world);
    for sql in FORBIDDEN.iter().chain(ABSENT) {
        let by_execute =
            world.ledger.execute(&world.gate, &[Statement::new(*sql, vec![])], None).unwrap_err();
        let by_view = world.ledger.run(&world.gate, |view| view.execute(sql, &[])).unwrap_err().into_ledger();
        let by_preparing =
            world.ledger.run(&world.gate, |view| view.prepare(sql)?.execute(&[])).unwrap_err().into_ledger();
        for error in [&by_execute, &by_view, &by_preparing] {
            // A name that the schema does not know yet, or a pragma's own function, may be an error of SQL first.
            let refused = match error.code() {
                SqlForbidden => true,
                SqlError if ABSENT.contains(sql) => true,
                SqlError => ["csv", "leasehold_batch", "pragma_journal_mode", "INSTEAD OF"]
                    .iter()
                    .any(|word| sql.contains(word)),
                _ => false,
            };
            assert!(refused, "{sql}: {error}");
        }
        let by_query = world.ledger.query(&world.gate, sql, &[]).unwrap_err();
        assert!(matches!(by_query.code(), SqlForbidden | ReadOnly | SqlError), "{sql}: {by_query}");
        // Whatever was not refused by its kind is refused again from the cache.
        assert!(world.ledger.query(&world.gate, sql, &[]).is_err(), "{sql}");
    }
    assert_eq!(schema(&world), before);
    assert_eq!(world.kinds(), ["a", "b"]);
    world.ledger.append(&world.gate, &[event("c")]).unwrap();
    let again = world.ledger.append(&world.gate, &[keyed("a", "k")]).unwrap();
    assert!(again[0].duplicate);
    world.ledger.quick_check().unwrap();
}

/// The texts of our own statements, one of each kind, as they stand in the sources: found by their text, a statement
/// of ours would be in a caller's hands.
#[test]
fn a_text_equal_to_one_of_our_own_statements_is_judged_as_a_callers() {
    let world = World::new();
    let key = leasehold_ledger::IdempotencyKey { key: "k".into(), digest: [0; 32] };
    let ours = [
        "INSERT INTO main.events (seq, ts, actor, kind, subject_id, payload, idem_key, idem_digest, run_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        "INSERT INTO main.leasehold_tenures (epoch, first_seq, tenure_id) VALUES (?1, ?2, ?3)",
        "INSERT INTO main.leasehold_answers (idem_key, digest, answer) VALUES (?1, ?2, ?3)",
        "DELETE FROM main.leasehold_answers WHERE id <= ?1",
        "SELECT digest, answer FROM main.leasehold_answers WHERE idem_key = ?1",
        "SELECT min(first_seq) FROM main.leasehold_tenures WHERE epoch > ?1",
        "SAVEPOINT leasehold_batch",
        "ROLLBACK TO leasehold_batch",
        "RELEASE leasehold_batch",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "ROLLBACK",
    ];
    let sources = concat!(
        include_str!("../../src/append.rs"),
        include_str!("../../src/execute.rs"),
        include_str!("../../src/history.rs"),
        include_str!("../../src/view.rs"),
    );
    // A text in the sources is broken over lines by a backslash.
    let flat: String = sources.replace("\\\n", "").split_whitespace().collect::<Vec<_>>().join(" ");
    for sql in ours {
        assert!(flat.contains(&format!("\"{sql}\"")), "the test no longer follows the sources: {sql}");
        let params = vec![Value::Null; sql.matches('?').count()];
        for round in 0..2 {
            // Ours are in the cache of the writer and of the reader.
            world.execute("CREATE TABLE IF NOT EXISTS t (x)");
            world.ledger.append(&world.gate, &[event("a"), event("b")]).unwrap();
            world.ledger.execute(&world.gate, &[Statement::new("SELECT 1", vec![])], Some(&key)).unwrap();
            world.ledger.check_position(&world.gate, world.ledger.position()).unwrap();
            for text in [sql.to_owned(), format!(" {sql}\n"), format!("{sql};")] {
                let statement = Statement::new(text.clone(), params.clone());
                let error = world.ledger.execute(&world.gate, &[statement], None).unwrap_err();
                assert_eq!(error.code(), SqlForbidden, "round {round}: {text}: {error}");
                let error = world.ledger.query(&world.gate, &text, &params).unwrap_err();
                assert_eq!(error.code(), SqlForbidden, "round {round}: {text}: {error}");
            }
        }
    }
}

#[test]
fn our_statements_go_on_after_callers_changed_the_schema() {
    let world = World::new();
    for x in 0..3 {
        world.ledger.append(&world.gate, &[event("a"), event("b")]).unwrap();
        let answer = world.ledger.run(&world.gate, |view| {
            view.append(&[event("c")])?;
            view.execute(&format!("CREATE TABLE t{x} (x)"), &[])?;
            // Compiled before the change, and compiled again by SQLite itself when it runs.
            view.append(&[event("d"), event("e")])
        });
        assert_eq!(answer.unwrap().len(), 2);
        assert_eq!(world.kinds().len(), 5 * (x + 1));
    }
}

#[test]
fn what_fires_later_is_judged_when_it_fires() {
    let world = World::new();
    world.execute("CREATE TABLE t (x)");
    let triggers = [
        "CREATE TRIGGER w AFTER INSERT ON t BEGIN UPDATE events SET kind = 'x'; END",
        "CREATE TRIGGER w AFTER INSERT ON t BEGIN DELETE FROM events; END",
        "CREATE TRIGGER w AFTER INSERT ON t BEGIN INSERT OR REPLACE INTO events (seq, ts, actor, kind, payload) VALUES (1, 0, '', '', ''); END",
        "CREATE TRIGGER w AFTER INSERT ON t BEGIN SELECT * FROM leasehold_meta; END",
    ];
    world.append(&["a"]);
    for trigger in triggers {
        // Whether it is refused when it is made or when it fires, it never does it.
        let made = world.ledger.execute(&world.gate, &[Statement::new(trigger, vec![])], None);
        let fired =
            world.ledger.execute(&world.gate, &[Statement::new("INSERT INTO t VALUES (1)", vec![])], None);
        let error = made.and(fired).unwrap_err();
        assert_eq!(error.code(), SqlForbidden, "{trigger}: {error}");
        world.execute("DROP TRIGGER IF EXISTS w");
    }
    for view in ["SELECT * FROM leasehold_meta", "SELECT * FROM leasehold_tenures"] {
        world
            .ledger
            .execute(&world.gate, &[Statement::new(format!("CREATE VIEW v AS {view}"), vec![])], None)
            .unwrap();
        let error = world.ledger.query(&world.gate, "SELECT * FROM v", &[]).unwrap_err();
        assert_eq!(error.code(), SqlForbidden);
        world.execute("DROP VIEW v");
    }
    // A full-text table over ours would read them by itself.
    let over = "CREATE VIRTUAL TABLE f USING fts5 (tenure_id, content = 'leasehold_tenures', content_rowid = 'epoch')";
    let made = world.ledger.execute(&world.gate, &[Statement::new(over, vec![])], None);
    let read = world.ledger.query(&world.gate, "SELECT * FROM f", &[]);
    let error = made.map(drop).and(read.map(drop)).unwrap_err();
    assert_eq!(error.code(), SqlForbidden, "{error}");
    assert_eq!(world.kinds(), ["a"]);
}

/// A full-text or spatial index reads its own shadow tables without much doubt.
#[test]
fn nobody_writes_into_the_shadows_of_a_virtual_table() {
    let world = World::new();
    world.execute("CREATE VIRTUAL TABLE words USING fts5 (body)");
    world.execute("CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1)");
    for sql in [
        "UPDATE words_data SET block = x'00'",
        "DELETE FROM words_idx",
        "INSERT INTO words_config VALUES ('version', 9)",
        "UPDATE boxes_node SET data = x'ffffffff'",
        "DROP TABLE words_content",
    ] {
        let error = world.ledger.execute(&world.gate, &[Statement::new(sql, vec![])], None).unwrap_err();
        assert!(matches!(error.code(), SqlError | SqlForbidden), "{sql}: {error}");
    }
    world.execute("INSERT INTO words VALUES ('hello')");
    world.ledger.quick_check().unwrap();
}

#[test]
fn callers_have_tables_of_their_own() {
    let world = World::new();
    world.append(&["a", "b"]);
    for sql in [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT NOT NULL UNIQUE, seq REFERENCES events (seq))",
        "CREATE INDEX t_x ON t (x)",
        "CREATE TABLE log (x)",
        "CREATE TRIGGER t_log AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.x); END",
        "INSERT INTO t (x, seq) VALUES ('one', 1), ('two', 2)",
        "INSERT INTO t (x) VALUES ('one') ON CONFLICT DO UPDATE SET x = 'uno'",
        "CREATE VIEW v AS SELECT t.x, e.kind FROM t JOIN events AS e USING (seq)",
        "ALTER TABLE t ADD COLUMN y DEFAULT 7",
        "ALTER TABLE t RENAME COLUMN y TO z",
        "ALTER TABLE log RENAME TO journal",
        "UPDATE t SET z = 8 WHERE id = 1",
        "DELETE FROM journal WHERE x = 'two'",
        "CREATE VIRTUAL TABLE words USING fts5 (body)",
        "INSERT INTO words VALUES ('hello world')",
        "CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1)",
        "INSERT INTO boxes VALUES (1, 0, 1)",
        "ANALYZE",
        "REINDEX t_x",
        "CREATE TABLE s (x) STRICT, WITHOUT ROWID",
    ] {
        let answer = world.ledger.execute(&world.gate, &[Statement::new(sql, vec![])], None);
        match answer {
            Ok(_) => {}
            // Not valid SQL at all: the list above must not refuse by accident.
            Err(error) => {
                assert!(sql.ends_with("WITHOUT ROWID") && error.code() == SqlError, "{sql}: {error}");
            }
        }
    }
    let query = |sql: &str| {
        world.ledger.query(&world.gate, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    assert_eq!(query("SELECT x, kind FROM v ORDER BY x").rows.len(), 2);
    assert_eq!(query("SELECT count(*) FROM words WHERE words MATCH 'hello'").rows[0][0], Value::Integer(1));
    assert_eq!(query("SELECT count(*) FROM journal").rows[0][0], Value::Integer(1));
    for sql in [
        "PRAGMA table_list",
        "PRAGMA table_info(t)",
        "PRAGMA table_info(events)",
        "SELECT name FROM pragma_table_info('t')",
        "PRAGMA index_list(t)",
        "PRAGMA foreign_key_list(t)",
        "PRAGMA user_version",
        "PRAGMA page_count",
        "SELECT value FROM json_each('[1,2]')",
        "EXPLAIN QUERY PLAN SELECT * FROM t",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9) SELECT x FROM n",
        "SELECT name FROM sqlite_schema",
        "VALUES (1), (2)",
    ] {
        assert!(!query(sql).columns.is_empty(), "{sql}");
    }
    world.append(&["c"]);
    assert_eq!(world.kinds(), ["a", "b", "c"]);
}

#[test]
fn writing_sql_in_a_query_is_refused_as_such() {
    let world = World::new();
    world.execute("CREATE TABLE t (x)");
    for sql in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET x = 1",
        "DELETE FROM t RETURNING x",
        "CREATE TABLE u (x)",
        "DROP TABLE t",
    ] {
        let error = world.ledger.query(&world.gate, sql, &[]).unwrap_err();
        assert_eq!(error.code(), ReadOnly, "{sql}: {error}");
        let error = world.ledger.run(&world.gate, |view| view.query(sql, &[])).unwrap_err().into_ledger();
        assert_eq!(error.code(), ReadOnly, "{sql}: {error}");
    }
    assert!(!world.ledger.prepare(&world.gate, "DELETE FROM t").unwrap().is_read_only());
    let prepared = world.ledger.prepare(&world.gate, "SELECT x AS y FROM t WHERE x = ?1").unwrap();
    assert_eq!(
        (prepared.columns(), prepared.params(), prepared.is_read_only()),
        (&["y".to_owned()][..], 1, true)
    );
    assert!(world.ledger.query(&world.gate, prepared.sql(), &[Value::Null]).is_ok());
}

#[test]
fn a_text_is_exactly_one_statement() {
    let world = World::new();
    for sql in [
        "",
        " ",
        ";",
        "-- nothing",
        "/* nothing",
        "SELECT 1; SELECT 2",
        "SELECT 1\0",
        "SELEC 1",
        "SELECT \"no_such_column\"",
    ] {
        let error = world.ledger.query(&world.gate, sql, &[]).unwrap_err();
        assert_eq!(error.code(), SqlError, "{sql:?}: {error}");
        assert!(world.ledger.execute(&world.gate, &[Statement::new(sql, vec![])], None).is_err());
    }
    assert!(matches!(world.ledger.query(&world.gate, "SELECT 1;  -- done", &[]), Ok(Rows { .. })));
    let error = world.ledger.query(&world.gate, "SELECT ?2", &[Value::Null]).unwrap_err();
    assert!(matches!(error, LedgerError::Sql { message } if message.contains("2 parameters, 1")));
}
