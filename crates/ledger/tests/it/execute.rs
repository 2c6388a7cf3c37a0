//! `execute`: what it answers, and once per key.

use leasehold_ledger::{Executed, IdempotencyKey, LedgerError, LedgerOptions, Limits, Statement, Value};
use leasehold_types::ErrorCode;

use crate::fixture::{World, open};

fn statement(sql: &str) -> Statement {
    Statement::new(sql, vec![])
}

#[test]
fn each_statement_says_what_it_did() {
    let world = World::new();
    let answer = world
        .ledger
        .execute(
            &world.gate,
            &[
                statement("CREATE TABLE t (id INTEGER PRIMARY KEY, x)"),
                Statement::new(
                    "INSERT INTO t (x) VALUES (?1), (?2)",
                    vec![Value::Blob(vec![1, 2]), Value::Real(0.5)],
                ),
                statement("UPDATE t SET x = 7 WHERE id = 9"),
                statement("INSERT INTO t (x) VALUES ('z') RETURNING id, x"),
                statement("SELECT count(*) AS n FROM t"),
                statement("DELETE FROM t"),
            ],
            None,
        )
        .unwrap();
    let plain = |rows_affected, last_insert_rowid| Executed {
        rows_affected,
        last_insert_rowid,
        ..Executed::default()
    };
    assert_eq!(
        answer.results,
        [
            plain(0, None),
            plain(2, Some(2)),
            plain(0, None),
            Executed {
                columns: vec!["id".into(), "x".into()],
                rows: vec![vec![Value::Integer(3), Value::Text("z".into())]],
                ..plain(1, Some(3))
            },
            Executed { columns: vec!["n".into()], rows: vec![vec![Value::Integer(3)]], ..plain(0, None) },
            plain(3, None),
        ]
    );
    assert!(!answer.duplicate);
}

#[test]
fn all_statements_take_effect_or_none() {
    let world = World::new();
    world.execute("CREATE TABLE t (x UNIQUE)");
    let error = world
        .ledger
        .execute(
            &world.gate,
            &[
                statement("INSERT INTO t VALUES (1)"),
                statement("CREATE TABLE u (x)"),
                statement("INSERT INTO t VALUES (1)"),
            ],
            None,
        )
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::SqlError);
    let rows = world.ledger.query(
        &world.gate,
        "SELECT name FROM sqlite_schema WHERE name = 'u' UNION SELECT x FROM t",
        &[],
    );
    assert_eq!(rows.unwrap().rows.len(), 0);
}

#[test]
fn a_key_takes_effect_once_and_answers_the_same_again() {
    let world = World::new();
    world.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
    let insert = |x: &str| [Statement::new("INSERT INTO t (x) VALUES (?1) RETURNING id, x", vec![x.into()])];
    let once =
        |x: &str| world.ledger.execute(&world.gate, &insert(x), Some(&IdempotencyKey::of("k", &insert(x))));
    let first = once("a").unwrap();
    let again = once("a").unwrap();
    assert_eq!((first.duplicate, again.duplicate), (false, true));
    assert_eq!(first.results, again.results);
    let error = once("b").unwrap_err();
    assert!(matches!(&error, LedgerError::IdempotencyMismatch { key, first: None } if key == "k"));

    let path = world.ledger.path().to_owned();
    let count = |ledger: &leasehold_ledger::Ledger| {
        ledger.query(&world.gate, "SELECT count(*) FROM t", &[]).unwrap().rows[0][0].clone()
    };
    assert_eq!(count(&world.ledger), Value::Integer(1));
    world.ledger.close();
    let next = open(&path, 2);
    let later =
        next.execute(&world.gate, &insert("a"), Some(&IdempotencyKey::of("k", &insert("a")))).unwrap();
    assert_eq!((later.duplicate, later.results), (true, first.results));
    assert_eq!(count(&next), Value::Integer(1));
}

#[test]
fn a_call_that_failed_does_not_use_its_key_up() {
    let world = World::new();
    let key = IdempotencyKey { key: "k".into(), digest: [1; 32] };
    world.ledger.execute(&world.gate, &[statement("INSERT INTO t VALUES (1)")], Some(&key)).unwrap_err();
    world.execute("CREATE TABLE t (x)");
    let answer =
        world.ledger.execute(&world.gate, &[statement("INSERT INTO t VALUES (1)")], Some(&key)).unwrap();
    assert!(!answer.duplicate);
    for key in [String::new(), "x".repeat(257)] {
        let key = IdempotencyKey { key, digest: [1; 32] };
        let error = world.ledger.execute(&world.gate, &[statement("SELECT 1")], Some(&key)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
    }
}

#[test]
fn an_answer_that_is_too_long_to_keep_is_not_given() {
    let limits = Limits { kept_answer_bytes_max: 100, ..Limits::default() };
    let world = World::with(LedgerOptions { limits, ..LedgerOptions::default() });
    world.execute("CREATE TABLE t (x)");
    let key = IdempotencyKey { key: "k".into(), digest: [1; 32] };
    let long = statement("INSERT INTO t VALUES (hex(zeroblob(100))) RETURNING x");
    let error = world.ledger.execute(&world.gate, std::slice::from_ref(&long), Some(&key)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    let count = world.ledger.query(&world.gate, "SELECT count(*) FROM t", &[]).unwrap();
    assert_eq!(count.rows[0][0], Value::Integer(0), "nothing was executed");
    world.ledger.execute(&world.gate, &[long], None).unwrap();
}
