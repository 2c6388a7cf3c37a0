//! Past a bound a call gets a typed error, and the ledger goes on.

use std::sync::Arc;

use leasehold_ledger::{
    EventQuery, Gate, IdempotencyKey, LedgerError, LedgerOptions, Limits, OpenGate, Statement, Value,
    ledger_path,
};
use leasehold_testkit::SmallDisk;
use leasehold_types::ErrorCode::{self, SqlError, TenantFull, TooLarge};

use crate::fixture::{self, World, event, json};

const COUNT: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000) ";

fn small() -> World {
    let limits = Limits {
        rows_max: 100,
        result_bytes_max: 50_000,
        value_bytes_max: 20_000,
        sql_bytes_max: 2_000,
        params_max: 20,
        statements_max: 3,
        kept_answer_bytes_max: 500,
        event_bytes_max: 10_000,
        ..Limits::default()
    };
    World::with(LedgerOptions { limits, ..LedgerOptions::default() })
}

#[test]
fn results_and_texts_are_bounded() {
    let world = small();
    let nested = format!("SELECT {}1{}", "abs(".repeat(250), ")".repeat(250));
    let terms = format!("SELECT {}1", "1 + ".repeat(250));
    let compound = vec!["SELECT 1"; 101].join(" UNION ALL ");
    let columns = format!("SELECT {}1", "1, ".repeat(600));
    for (sql, code) in [
        (format!("{COUNT}SELECT x FROM n"), TooLarge),
        // One row too many, and far from as many bytes.
        (format!("{COUNT}SELECT x FROM n LIMIT 101"), TooLarge),
        (format!("{COUNT}SELECT hex(zeroblob(2000)) FROM n LIMIT 50"), TooLarge),
        ("SELECT zeroblob(30000)".to_owned(), TooLarge),
        ("SELECT randomblob(2000000000)".to_owned(), TooLarge),
        (format!("SELECT '{}'", "x".repeat(2_000)), TooLarge),
        (format!("SELECT {}", (1..=21).map(|n| format!("?{n}")).collect::<Vec<_>>().join(",")), SqlError),
        (nested, SqlError),
        (terms, SqlError),
        (compound, SqlError),
        (columns, SqlError),
        ("SELECT 'a' LIKE replace(hex(zeroblob(600)), '0', '%')".to_owned(), SqlError),
    ] {
        let error = world.ledger.query(&world.gate, &sql, &[]).unwrap_err();
        assert_eq!(error.code(), code, "{}: {error}", &sql[..sql.len().min(80)]);
    }
    let many = vec![Value::Null; 21];
    assert_eq!(world.ledger.query(&world.gate, "SELECT 1", &many).unwrap_err().code(), TooLarge);
    let rows = world.ledger.query(&world.gate, &format!("{COUNT}SELECT x FROM n LIMIT 100"), &[]).unwrap();
    assert_eq!(rows.rows.len(), 100, "the bound itself is within");
}

#[test]
fn an_execute_is_bounded_as_a_whole_and_leaves_nothing_when_it_is_too_much() {
    let world = small();
    world.execute("CREATE TABLE t (x)");
    let returning = format!("INSERT INTO t {COUNT}SELECT x FROM n LIMIT 60");
    let statement = Statement::new(format!("{returning} RETURNING x"), vec![]);
    let error = world.ledger.execute(&world.gate, &[statement.clone(), statement], None).unwrap_err();
    assert_eq!(error.code(), TooLarge, "60 rows twice");
    let four = vec![Statement::new("SELECT 1", vec![]); 4];
    assert_eq!(world.ledger.execute(&world.gate, &four, None).unwrap_err().code(), TooLarge);
    assert_eq!(world.ledger.execute(&world.gate, &[], None).unwrap_err().code(), ErrorCode::InvalidArgument);
    let count = world.ledger.query(&world.gate, "SELECT count(*) FROM t", &[]).unwrap();
    assert_eq!(count.rows[0][0], Value::Integer(0));
}

/// Within one step of SQLite's machine nothing stops a function, so what would take long there does not begin (decision 0046).
#[test]
fn functions_whose_work_is_a_product_are_refused_before_they_begin() {
    let world = World::new();
    let long = "printf('%.*c', 4000000, 'a')";
    let set = "printf('%.*c', 2000000, 'b')";
    let keys = "printf('{%.*c', 100000, ' ') || '}'";
    for sql in [
        format!("SELECT trim({long}, {set})"),
        format!("SELECT ltrim({long}, {set})"),
        format!("SELECT rtrim({long}, {set})"),
        format!("SELECT unhex({long}, {set})"),
        format!("SELECT replace({long}, {set} || 'c', '')"),
        format!("SELECT instr({long}, {set} || 'c')"),
        format!("SELECT json_patch({keys}, {keys})"),
        format!("SELECT jsonb_patch({keys}, {keys})"),
        // By whatever name, and wherever it stands.
        format!("SELECT \"TRIM\"({long}, {set})"),
        format!("WITH t(x) AS (SELECT {long}) SELECT max(x) FROM t WHERE instr(x, {set} || 'c') > 0"),
    ] {
        let error = world.ledger.query(&world.gate, &sql, &[]).unwrap_err();
        assert_eq!(error.code(), SqlError, "{sql}: {error}");
        assert!(error.to_string().contains("more work than"), "{sql}: {error}");
    }
    for sql in [
        format!("SELECT length(trim({long}, 'ab'))"),
        format!("SELECT length(replace({long}, 'a', 'b'))"),
        format!("SELECT instr({long}, 'aab')"),
    ] {
        world.ledger.query(&world.gate, &sql, &[]).unwrap();
    }
    let too_long = format!("SELECT replace({long}, 'a', 'bb')");
    assert_eq!(world.ledger.query(&world.gate, &too_long, &[]).unwrap_err().code(), TooLarge);
}

fn bounded(bytes: u64) -> LedgerOptions {
    let limits = Limits { file_bytes_max: Some(bytes), ..Limits::default() };
    LedgerOptions { limits, ..LedgerOptions::default() }
}

/// Does something until it is refused, and answers how often it was done.
fn until_full(mut act: impl FnMut(usize) -> Result<(), LedgerError>) -> usize {
    for done in 0..1_000 {
        if let Err(error) = act(done) {
            assert_eq!(error.code(), TenantFull, "{error}");
            return done;
        }
    }
    panic!("it is never full");
}

#[test]
fn a_file_that_is_full_refuses_what_does_not_fit_and_keeps_the_rest() {
    let world = World::with(bounded(256 * 1024));
    let big = event("a").with_payload(json(&format!("\"{}\"", "x".repeat(20_000))));
    let appended = until_full(|_| world.ledger.append(&world.gate, std::slice::from_ref(&big)).map(drop));
    assert_eq!((world.kinds().len(), world.ledger.position().seq), (appended, appended as u64));
    world.ledger.append(&world.gate, &[event("small")]).unwrap();
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    assert!(image.pages * image.page_size <= 256 * 1024, "{} pages", image.pages);
    leasehold_ledger::verify_file(&image.path).unwrap();
    world.ledger.export(&world.gate, &world.path("export.db")).unwrap();
}

#[test]
fn deleting_rows_makes_room_in_a_full_file_under_a_key_too() {
    let world = World::with(bounded(512 * 1024));
    world.execute("CREATE TABLE t (x)");
    let insert = Statement::new("INSERT INTO t VALUES (zeroblob(30000))", vec![]);
    let run = |statement: &Statement, key: Option<&IdempotencyKey>| {
        world.ledger.execute(&world.gate, std::slice::from_ref(statement), key)
    };
    let rows = until_full(|_| run(&insert, None).map(drop));
    assert!(rows > 5, "{rows}");
    let grows = Statement::new("UPDATE t SET x = zeroblob(60000)", vec![]);
    assert_eq!(run(&grows, None).unwrap_err().code(), TenantFull);
    let delete = Statement::new("DELETE FROM t WHERE rowid <= 3", vec![]);
    run(&delete, Some(&IdempotencyKey { key: "k".into(), digest: [7; 32] })).unwrap();
    let again = until_full(|_| run(&insert, None).map(drop));
    assert!((3..=4).contains(&again), "what was freed, and no more: {again}");
    world.ledger.quick_check().unwrap();
}

#[test]
fn a_file_above_a_lowered_bound_is_opened_and_full() {
    let world = World::new();
    world.execute("CREATE TABLE t (x)");
    for _ in 0..20 {
        world.execute("INSERT INTO t VALUES (zeroblob(100000))");
    }
    world.append(&["a"]);
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    let path = ledger_path(&world.path("lowered"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    leasehold_ledger::install(&image.path, &path).unwrap();
    let ledger = fixture::open_with(&path, 2, bounded(1024 * 1024));
    let gate: Arc<dyn Gate> = Arc::new(OpenGate);
    let insert = Statement::new("INSERT INTO t VALUES (zeroblob(100000))", vec![]);
    let run = |sql: &Statement| ledger.execute(&gate, std::slice::from_ref(sql), None);
    assert_eq!(run(&insert).unwrap_err().code(), TenantFull);
    let big = event("b").with_payload(json(&format!("\"{}\"", "x".repeat(100_000))));
    assert_eq!(ledger.append(&gate, &[big]).unwrap_err().code(), TenantFull);
    assert_eq!(fixture::kinds(&ledger, &gate), ["a"]);
    let image = ledger.take_image(&path.with_extension("again")).unwrap();
    assert!(image.pages * image.page_size > 1024 * 1024, "{} pages", image.pages);
    run(&Statement::new("DELETE FROM t WHERE rowid <= 2", vec![])).unwrap();
    run(&insert).unwrap();
}

/// The bound is the process's and would be felt by every other test, so the test runs itself again in a process of
/// its own.
#[test]
fn memory_is_bounded_for_all_ledgers_together() {
    const ALONE: &str = "LEASEHOLD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        assert_eq!(leasehold_ledger::memory_limit(), None);
        page_caches_leave_room_for_work();
        what_is_sorted_goes_into_files();
        return the_values_of_a_statement_are_bounded_together();
    }
    let own = std::env::current_exe().unwrap();
    let this = ["--exact", "bounds::memory_is_bounded_for_all_ledgers_together"];
    let output = std::process::Command::new(own).args(this).env(ALONE, "1").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

/// What these ledgers have in their caches would be more than there is.
fn page_caches_leave_room_for_work() {
    const LEDGERS: usize = 24;
    leasehold_ledger::limit_memory(64 * 1024 * 1024).unwrap();
    let big = event("a").with_payload(json(&format!("\"{}\"", "x".repeat(200_000))));
    let worlds: Vec<World> = (0..LEDGERS)
        .map(|_| {
            let world = World::new();
            for _ in 0..12 {
                world.ledger.append(&world.gate, std::slice::from_ref(&big)).unwrap();
            }
            let read = "SELECT sum(length(payload)) FROM events";
            world.ledger.query(&world.gate, read, &[]).unwrap();
            world
        })
        .collect();
    for world in &worlds {
        world.append(&["b"]);
        assert_eq!(world.kinds().len(), 13);
    }
}

/// A sort of four hundred megabytes in so many rows: eight times the memory that there is.
fn gathers(rows: u64) -> String {
    let blob = format!("randomblob({})", 400_000_000 / rows);
    format!(
        "WITH RECURSIVE n(x, y) AS (SELECT 1, {blob} UNION ALL SELECT x + 1, {blob} FROM n WHERE x < {rows}) \
         SELECT max(at) FROM (SELECT row_number() OVER (ORDER BY y) AS at FROM n)"
    )
}

fn what_is_sorted_goes_into_files() {
    leasehold_ledger::limit_memory(48 * 1024 * 1024).unwrap();
    assert_eq!(leasehold_ledger::memory_limit(), Some(48 * 1024 * 1024));
    let world = World::new();
    world.append(&["a"]);
    let sort = |rows: u64| world.ledger.query(&world.gate, &gathers(rows), &[]);
    assert_eq!(sort(20_000).unwrap().rows, [[Value::Integer(20_000)]]);
    // A merge has a row of each piece at hand: what is too much of the longest ones is refused, and nothing else is.
    let error = sort(400).unwrap_err();
    assert!(matches!(error, LedgerError::MemoryShort), "{error}");
    world.append(&["b"]);
    assert_eq!(world.kinds(), ["a", "b"]);
}

/// Values that are each within their bound.
fn the_values_of_a_statement_are_bounded_together() {
    let world = World::new();
    world.append(&["a"]);
    let gathered = vec!["length(group_concat(y))"; 150].join(" + ");
    let gathers = format!(
        "WITH RECURSIVE n(x, y) AS (SELECT 1, hex(zeroblob(500)) UNION ALL SELECT x + 1, y FROM n WHERE x < 300) \
         SELECT {gathered} FROM n"
    );
    // 300 KB each, and as much together as there is for all.
    let error = world.ledger.query(&world.gate, &gathers, &[]).unwrap_err();
    assert!(matches!(error, LedgerError::TooLarge { what: "bytes of a value", .. }), "{error}");
    let few = gathers.replace(&gathered, "length(group_concat(y))");
    assert_eq!(world.ledger.query(&world.gate, &few, &[]).unwrap().rows[0], [Value::Integer(300_299)]);
    // As a view of which the statement names one column.
    world.execute(&format!("CREATE VIEW v AS {gathers}"));
    let error = world.ledger.query(&world.gate, "SELECT * FROM v", &[]).unwrap_err();
    assert!(matches!(error, LedgerError::TooLarge { .. }), "{error}");
    world.append(&["b"]);
    assert_eq!(world.kinds(), ["a", "b"]);
}

#[test]
fn temporary_files_are_bounded() {
    let limits = Limits { temp_bytes_max: 8 * 1024 * 1024, ..Limits::default() };
    let world = World::with(LedgerOptions { limits, ..LedgerOptions::default() });
    let sorts = |rows: u64| {
        let sql = format!(
            "WITH RECURSIVE n(x, y) AS (SELECT 1, hex(randomblob(500)) UNION ALL \
             SELECT x + 1, hex(randomblob(500)) FROM n WHERE x < {rows}) \
             SELECT max(at) FROM (SELECT row_number() OVER (ORDER BY y) AS at FROM n)"
        );
        world.ledger.query(&world.gate, &sql, &[])
    };
    assert_eq!(sorts(1_000).unwrap().rows[0], [Value::Integer(1_000)]);
    let error = sorts(1_000_000).unwrap_err();
    let what = "bytes of temporary files";
    assert!(matches!(error, LedgerError::TooLarge { what: found, .. } if found == what), "{error}");
    world.append(&["a"]);
}

#[test]
fn columns_and_functions_of_a_statement_are_bounded() {
    let limits = Limits { terms_max: 50, ..Limits::default() };
    let world = World::with(LedgerOptions { limits, ..LedgerOptions::default() });
    world.execute("CREATE TABLE t (x)");
    let query = |terms: usize| {
        let sql = format!("SELECT {} FROM t", vec!["abs(x)"; terms / 2].join(" + "));
        world.ledger.query(&world.gate, &sql, &[])
    };
    query(50).unwrap();
    let error = query(52).unwrap_err();
    assert!(matches!(error, LedgerError::TooLarge { limit: 50, .. }), "{error}");
    // One that is kept compiled, and compiled again by itself once the view has grown.
    world.execute("CREATE VIEW v AS SELECT x FROM t");
    world.execute("INSERT INTO t VALUES (1)");
    world.ledger.query(&world.gate, "SELECT * FROM v", &[]).unwrap();
    world.execute("DROP VIEW v");
    world.execute(&format!("CREATE VIEW v AS SELECT {} AS x FROM t", vec!["abs(x)"; 24].join(" + ")));
    world.ledger.query(&world.gate, "SELECT * FROM v", &[]).unwrap();
}

#[derive(Debug)]
struct Room(std::sync::atomic::AtomicU64);

impl leasehold_ledger::Memory for Room {
    fn take(&self, bytes: u64) -> bool {
        use std::sync::atomic::Ordering::SeqCst;
        self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn answers_ask_before_they_hold_and_give_back_when_they_are_gone() {
    const ROOM: u64 = 1024 * 1024;
    let room = Arc::new(Room(ROOM.into()));
    let left = || room.0.load(std::sync::atomic::Ordering::SeqCst);
    let memory = leasehold_ledger::SharedMemory::new(room.clone());
    let limits = Limits { memory, ..Limits::default() };
    let world = World::with(LedgerOptions { limits, ..LedgerOptions::default() });
    world.execute("CREATE TABLE t (x)");
    assert_eq!(left(), ROOM);
    let rows = |count: u64| {
        let sql = format!("{COUNT}SELECT hex(zeroblob(5000)) FROM n LIMIT {count}");
        world.ledger.query(&world.gate, &sql, &[])
    };
    let held = rows(30).unwrap();
    assert!(left() < ROOM - 500_000, "as they are and as JSON: {}", left());
    let error = rows(30).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Overloaded, "{error}");
    let insert = Statement::new(
        format!("{COUNT}INSERT INTO t SELECT hex(zeroblob(5000)) FROM n LIMIT 30 RETURNING x"),
        vec![],
    );
    let error = world.ledger.execute(&world.gate, std::slice::from_ref(&insert), None).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Overloaded, "{error}");
    let count = |expected: i64| {
        let counted = world.ledger.query(&world.gate, "SELECT count(*) FROM t", &[]).unwrap();
        assert_eq!(counted.rows, [[Value::Integer(expected)]]);
    };
    count(0);
    drop(held);
    assert_eq!(left(), ROOM);
    let answer = world.ledger.execute(&world.gate, &[insert], None).unwrap();
    assert!(left() < ROOM - 500_000);
    drop(answer);
    count(30);
    assert_eq!(left(), ROOM);

    // A page of events is shorter where there is less room, and none is passed over.
    let big = event("a").with_payload(json(&format!("\"{}\"", "x".repeat(100_000))));
    for _ in 0..8 {
        world.ledger.append(&world.gate, std::slice::from_ref(&big)).unwrap();
    }
    let (mut after, mut seen, mut pages) = (None, 0, 0);
    loop {
        let page = world.ledger.events(&world.gate, &EventQuery { after, ..EventQuery::default() }).unwrap();
        (seen, pages) = (seen + page.events.len(), pages + 1);
        after = page.next;
        if !page.has_more {
            break;
        }
    }
    assert!(seen == 8 && pages > 1, "{seen} events, {pages} pages");
    assert_eq!(left(), ROOM);
}

#[test]
fn a_full_disk_acknowledges_nothing_and_the_ledger_goes_on_when_there_is_room() {
    let disk = match SmallDisk::mount(4 * 1024 * 1024) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk here: {reason}"),
    };
    let ledger = fixture::open(&ledger_path(disk.path()), 1);
    let gate: Arc<dyn Gate> = Arc::new(OpenGate);
    let big = event("a").with_payload(json(&format!("\"{}\"", "x".repeat(20_000))));
    ledger.append(&gate, std::slice::from_ref(&big)).unwrap();
    let filler = disk.path().join("filler");
    assert!(std::fs::write(&filler, vec![0; 8 * 1024 * 1024]).is_err(), "the disk is full");
    let mut appended = 1;
    let error = loop {
        match ledger.append(&gate, std::slice::from_ref(&big)) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
        assert!(appended < 1_000, "the disk never fills");
    };
    assert_eq!(error.code(), ErrorCode::DiskFull, "{error}");
    let image = disk.path().join("image.db");
    assert_eq!(ledger.take_image(&image).unwrap_err().code(), ErrorCode::DiskFull);
    assert_eq!(fixture::kinds(&ledger, &gate).len(), appended);

    std::fs::remove_file(&filler).unwrap();
    ledger.append(&gate, &[big]).unwrap();
    assert_eq!(fixture::kinds(&ledger, &gate).len(), appended + 1);
    ledger.quick_check().unwrap();
    let taken = ledger.take_image(&image).unwrap();
    leasehold_ledger::verify_file(&taken.path).unwrap();
}
