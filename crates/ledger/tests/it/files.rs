//! Files on their path: installed, replaced, removed, verified.

use std::{fs, io::Write as _, os::unix::fs::MetadataExt as _, sync::Arc};

use leasehold_ledger::{Ledger, LedgerError, LedgerOptions, install, ledger_path, remove_files, verify_file};
use leasehold_types::ErrorCode;

use crate::fixture::{HandClock, World, at, epoch, event, kinds, open, tenure};

fn reopen(path: &std::path::Path) -> Result<Ledger, LedgerError> {
    Ledger::open(path, epoch(9), tenure(9), Arc::new(HandClock::default()), LedgerOptions::default())
}

#[test]
fn p3_an_installed_file_unlinks_the_one_that_is_open() {
    let world = World::new();
    world.append(&["k-1"]);
    world.kinds();
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    world.append(&["k-2"]);
    let old = fs::File::open(world.ledger.path()).unwrap();
    install(&image.path, world.ledger.path()).unwrap();
    assert_eq!(old.metadata().unwrap().nlink(), 0);
    let next = open(world.ledger.path(), 2);
    assert_eq!(kinds(&next, &world.gate), ["k-1"]);
    next.append(&world.gate, &[event("b-1")]).unwrap();

    // The old one still has its own file, and never looks at the other.
    assert_eq!(world.kinds(), ["k-1", "k-2"], "through a reader that was open");
    world.append(&["k-3"]);
    world.ledger.close_idle_readers();
    let error = world.ledger.query(&world.gate, "SELECT 1", &[]).unwrap_err();
    assert!(matches!(error, LedgerError::Replaced { .. }));
    assert_eq!(error.code(), ErrorCode::Fenced);
    assert!(matches!(world.ledger.checkpoint(), Err(LedgerError::Replaced { .. })));
    assert!(matches!(world.ledger.take_image(&world.path("late.db")), Err(LedgerError::Replaced { .. })));
    world.ledger.close();
    drop(world.ledger);
    assert_eq!(kinds(&next, &world.gate), ["k-1", "b-1"], "and its end takes nothing from its successor");
    assert!(ledger_path(world.dir.path()).with_extension("db-wal").exists());
}

#[test]
fn a_file_that_is_open_is_not_opened_twice() {
    let world = World::new();
    let error = reopen(world.ledger.path()).unwrap_err();
    assert!(matches!(error, LedgerError::InUse { .. }), "{error}");
    world.append(&["a"]);
    let path = world.ledger.path().to_owned();
    drop(world.ledger);
    reopen(&path).unwrap();
}

#[test]
fn l1_removing_takes_the_log_and_its_index_along() {
    let world = World::new();
    world.append(&["a"]);
    world.ledger.close();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(world.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["ledger.db", "ledger.db-shm", "ledger.db-wal"], "closing keeps everything");
    remove_files(world.ledger.path()).unwrap();
    assert_eq!(names(), [""; 0]);
    remove_files(world.ledger.path()).unwrap();
}

#[test]
fn what_was_committed_outlives_a_close_without_a_checkpoint() {
    let world = World::new();
    world.append(&["a", "b"]);
    world.ledger.close();
    let again = reopen(world.ledger.path()).unwrap();
    assert_eq!((again.position(), kinds(&again, &world.gate)), (at(1, 2), vec!["a".into(), "b".into()]));
}

#[test]
fn a_file_that_is_no_whole_ledger_is_told_by_what_is_wrong() {
    let world = World::new();
    for kind in ["a", "b", "c"] {
        let payload = crate::fixture::json(&format!("\"{}\"", "x".repeat(9_000)));
        world.ledger.append(&world.gate, &[event(kind).with_payload(payload)]).unwrap();
    }
    let good = world.ledger.take_image(&world.path("good.db")).unwrap();
    let bytes = fs::read(&good.path).unwrap();
    let sql = |change: &str| {
        let path = world.path("changed.db");
        fs::copy(&good.path, &path).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(change).unwrap();
        connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
        drop(connection);
        fs::read(&path).unwrap()
    };
    let zeroed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at..at + 200].fill(0);
        bytes
    };
    for (what, content, code) in [
        ("empty", vec![], ErrorCode::Damaged),
        ("no SQLite file", b"not a database at all".repeat(50), ErrorCode::Damaged),
        ("cut in a page", bytes[..bytes.len() - 100].to_vec(), ErrorCode::Damaged),
        ("cut by a page", bytes[..bytes.len() - 4096].to_vec(), ErrorCode::Damaged),
        ("more than its pages", [bytes.clone(), vec![0; 4096]].concat(), ErrorCode::Damaged),
        ("a page of zeros", zeroed(4096), ErrorCode::Damaged),
        ("another application's", sql("DROP TABLE leasehold_meta"), ErrorCode::Damaged),
        (
            "a trigger on events",
            sql("CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END"),
            ErrorCode::Damaged,
        ),
        ("a table too few", sql("DROP TABLE leasehold_answers"), ErrorCode::Damaged),
        ("a name too many", sql("CREATE TABLE leasehold_x (y)"), ErrorCode::Damaged),
        ("a newer format", sql("UPDATE leasehold_meta SET value = 2"), ErrorCode::FormatTooNew),
    ] {
        let path = world.path("bad.db");
        remove_files(&path).unwrap();
        fs::File::create(&path).unwrap().write_all(&content).unwrap();
        let error = verify_file(&path).unwrap_err();
        assert_eq!(error.code(), code, "{what}: {error}");
        assert!(error.to_string().contains("bad.db"), "{error}");
        // What is wrong with the schema or the format is seen at open; the pages are not all read then.
        if !content.is_empty() && !what.starts_with("cut") && !what.contains("page") {
            assert_eq!(reopen(&path).unwrap_err().code(), code, "{what}");
        }
    }
    assert_eq!(verify_file(&good.path).unwrap().position, Some(at(1, 3)));
    assert_eq!(verify_file(&world.path("none.db")).unwrap_err().code(), ErrorCode::LocalIo);
}

#[test]
fn a_path_is_taken_as_it_is_written() {
    let world = World::new();
    world.append(&["a"]);
    let odd = world.path("odd ?#%41 name.db");
    world.ledger.take_image(&odd).unwrap();
    assert_eq!(verify_file(&odd).unwrap().position, Some(at(1, 1)));
    let ledger = open(&odd, 2);
    assert_eq!(kinds(&ledger, &world.gate), ["a"]);
}
