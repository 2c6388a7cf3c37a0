//! SQL functions whose work grows with the product of their arguments' lengths, bounded before they begin.
//!
//! A progress handler is asked between two steps of SQLite's machine, and a function is one step: `trim(x, y)` with two values of a
//! few megabytes was measured to need hours, in which no time limit and no gate stops it. So on the connections that run callers' SQL
//! the functions of that kind are ours by name (decision 0046): they look at the lengths, refuse what would take too long, and have
//! SQLite's own do the rest on a connection that has nothing, so that what they answer is what SQLite answers.

use std::cell::RefCell;

use rusqlite::{
    Connection, Error,
    functions::{Context, FunctionFlags},
    limits::Limit,
    params_from_iter,
    types::{ToSql, ToSqlOutput, ValueRef},
};

/// A function that is bounded.
struct Bounded {
    name: &'static str,
    args: i32,
    /// What SQLite's own is called by.
    sql: &'static str,
    /// The most that the first two lengths in bytes may be, multiplied.
    work_max: u64,
    /// Whether its text is JSON for the function around it.
    is_json: bool,
}

/// About 0.2 s of a search of one list of characters for each character of the other.
const CHARACTERS: u64 = 100_000_000;
/// About 0.4 s of comparing runs of bytes.
const RUNS: u64 = 4_000_000_000;
/// About 0.2 s of looking through one object for each key of the other.
const KEYS: u64 = 4_000_000_000;

static BOUNDED: [Bounded; 8] = [
    Bounded { name: "trim", args: 2, sql: "SELECT trim(?1, ?2)", work_max: CHARACTERS, is_json: false },
    Bounded { name: "ltrim", args: 2, sql: "SELECT ltrim(?1, ?2)", work_max: CHARACTERS, is_json: false },
    Bounded { name: "rtrim", args: 2, sql: "SELECT rtrim(?1, ?2)", work_max: CHARACTERS, is_json: false },
    Bounded { name: "unhex", args: 2, sql: "SELECT unhex(?1, ?2)", work_max: CHARACTERS, is_json: false },
    Bounded { name: "replace", args: 3, sql: "SELECT replace(?1, ?2, ?3)", work_max: RUNS, is_json: false },
    Bounded { name: "instr", args: 2, sql: "SELECT instr(?1, ?2)", work_max: RUNS, is_json: false },
    Bounded { name: "json_patch", args: 2, sql: "SELECT json_patch(?1, ?2)", work_max: KEYS, is_json: true },
    Bounded {
        name: "jsonb_patch",
        args: 2,
        sql: "SELECT jsonb_patch(?1, ?2)",
        work_max: KEYS,
        is_json: false,
    },
];

/// By which SQLite knows that a text is JSON (`json1`, "subtype").
const JSON_SUBTYPE: u32 = b'J' as u32;

thread_local! {
    /// Where SQLite's own functions are called: one for each thread that may block, made when it is first needed.
    static PLAIN: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// Puts them in the place of SQLite's own. `value_bytes_max`: the longest value that one may answer.
pub(crate) fn bound(connection: &Connection, value_bytes_max: i32) -> rusqlite::Result<()> {
    // As SQLite says of its own: the same for the same arguments, and of no effect, so that a schema may use them.
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for function in &BOUNDED {
        let flags = if function.is_json { flags | FunctionFlags::SQLITE_RESULT_SUBTYPE } else { flags };
        connection.create_scalar_function(function.name, function.args, flags, move |context| {
            let answer = call(function, context, value_bytes_max)?;
            let is_json = function.is_json && matches!(answer, Answer::Text(_));
            Ok((answer, is_json.then_some(JSON_SUBTYPE)))
        })?;
    }
    Ok(())
}

/// What SQLite's own function answered. A text is whatever bytes SQLite takes for one.
enum Answer {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Answer {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => Self::Text(bytes.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for Answer {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn call(function: &Bounded, context: &Context<'_>, value_bytes_max: i32) -> rusqlite::Result<Answer> {
    let (one, other) = (len(context.get_raw(0)), len(context.get_raw(1)));
    if one.saturating_mul(other) > function.work_max {
        return Err(Error::UserFunctionError(
            format!(
                "{}() of {one} bytes and {other} bytes is more work than a statement can be stopped in",
                function.name
            )
            .into(),
        ));
    }
    PLAIN.with_borrow_mut(|plain| {
        let plain = match plain {
            Some(plain) => plain,
            None => plain.insert(Connection::open_in_memory()?),
        };
        plain.set_limit(Limit::SQLITE_LIMIT_LENGTH, value_bytes_max)?;
        let arguments = (0..context.len()).map(|at| ToSqlOutput::Borrowed(context.get_raw(at)));
        plain
            .prepare_cached(function.sql)?
            .query_row(params_from_iter(arguments), |row| row.get_ref(0).map(Answer::from))
            // With its message a code would be lost on the way (sqlite3_result_error).
            .map_err(|error| match error {
                Error::SqliteFailure(code, _) if code.extended_code != rusqlite::ffi::SQLITE_ERROR => {
                    Error::SqliteFailure(code, None)
                }
                other => other,
            })
    })
}

/// What a value counts: a number has as many bytes as its text, which is short.
fn len(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 32,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::config::DbConfig;

    use super::*;

    #[test]
    fn they_answer_what_sqlites_own_answer() {
        let plain = Connection::open_in_memory().unwrap();
        let bounded = Connection::open_in_memory().unwrap();
        bound(&bounded, 1_000).unwrap();
        let values = [
            "NULL",
            "0",
            "-12",
            "1.50",
            "''",
            "'a'",
            "'xxaxxbxx'",
            "'x'",
            "'éxé'",
            "x''",
            "x'616278ff'",
            "cast(x'ff78ff' AS text)",
            "'41-42'",
            "'-'",
            "char(120, 0, 120)",
            "'{\"a\":1}'",
            "'{\"a\":null,\"b\":[1]}'",
            "'{a:1,}'",
            "jsonb('{\"x\":2}')",
        ];
        let answer = |connection: &Connection, sql: &str| {
            connection.query_row(sql, [], |row| row.get::<_, String>(0)).map_err(|error| error.to_string())
        };
        for function in &BOUNDED {
            for one in values {
                for other in values {
                    let rest = if function.args == 3 { ", 'y'" } else { "" };
                    let call = format!("{}({one}, {other}{rest})", function.name);
                    for sql in [
                        format!("SELECT typeof({call}) || hex({call})"),
                        // Whether a text is JSON for who gets it.
                        format!("SELECT hex(json_array(iif(typeof({call}) = 'blob', 1, {call})))"),
                    ] {
                        assert_eq!(answer(&bounded, &sql).ok(), answer(&plain, &sql).ok(), "{sql}");
                    }
                }
            }
        }
        let malformed = answer(&bounded, "SELECT json_patch('{', '{}')").unwrap_err();
        assert!(malformed.contains("malformed JSON"), "{malformed}");
    }

    #[test]
    fn a_schema_may_use_them_where_it_is_not_trusted() {
        let connection = Connection::open_in_memory().unwrap();
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).unwrap();
        bound(&connection, 1_000).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (x, y AS (replace(x, 'a', 'b')) STORED CHECK (instr(x, 'z') = 0));
                 CREATE INDEX t_x ON t (trim(x, '.'));
                 CREATE VIEW v AS SELECT ltrim(x, '.') AS z FROM t;
                 INSERT INTO t VALUES ('.a.');",
            )
            .unwrap();
        let row = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(row("SELECT y FROM t WHERE trim(x, '.') = 'a'"), ".b.");
        assert_eq!(row("SELECT z FROM v"), "a.");
    }
}
