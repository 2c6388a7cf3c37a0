//! Images beside a writer, checkpoints, and what is dirty.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use leasehold_ledger::{LedgerError, Value, verify_file};
use leasehold_types::ErrorCode;

use crate::fixture::{LAPSED, World, at, event, json, kinds, open};

/// A transaction of somebody's who began to read now: checkpoints cannot pass what comes after.
fn pin(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    // Its close must not take the log away.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    connection.execute_batch("BEGIN; SELECT * FROM events").unwrap();
    connection
}

#[test]
fn an_image_is_whole_by_itself() {
    let world = World::new();
    world.append(&["a", "b"]);
    world.execute("CREATE TABLE t (x)");
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    assert_eq!((image.position, image.commits), (at(1, 2), 3));
    assert_eq!(image.bytes, image.pages * image.page_size);
    let facts = verify_file(&image.path).unwrap();
    assert_eq!((facts.page_size, facts.pages, facts.bytes), (image.page_size, image.pages, image.bytes));
    assert_eq!((facts.position, facts.format), (Some(at(1, 2)), 1));
    world.append(&["c"]);
    let copy = open(&image.path, 2);
    assert_eq!(kinds(&copy, &world.gate), ["a", "b"]);
    assert_eq!(copy.query(&world.gate, "SELECT count(*) FROM t", &[]).unwrap().rows[0][0], Value::Integer(0));
}

#[test]
fn an_image_of_a_new_ledger_is_an_empty_ledger() {
    let world = World::new();
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    assert_eq!((image.position, image.commits), (at(1, 0), 0));
    assert_eq!(verify_file(&image.path).unwrap().position, None);
}

#[test]
fn a_reader_in_the_way_costs_time_and_no_event() {
    let world = World::new();
    world.append(&["a"]);
    let pinned = pin(world.ledger.path());
    world.append(&["b", "c"]);
    let outcome = world.ledger.checkpoint().unwrap();
    assert!(!outcome.complete && outcome.moved < outcome.frames, "{outcome:?}");
    let image = world.ledger.take_image(&world.path("image.db")).unwrap();
    assert_eq!((image.position, image.commits), (at(1, 3), 3));
    assert_eq!(verify_file(&image.path).unwrap().position, Some(at(1, 3)));
    let left: Vec<_> =
        std::fs::read_dir(world.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("image.db-")), "{left:?}");
    drop(pinned);
    assert!(world.ledger.checkpoint().unwrap().complete);
    assert_eq!(world.ledger.wal_bytes(), 0);
}

#[test]
fn dirty_is_what_no_published_image_has() {
    let world = World::new();
    assert_eq!((world.ledger.is_dirty(), world.ledger.unflushed_bytes()), (false, 0));
    world.kinds();
    world.ledger.run(&world.gate, |view| view.query("SELECT 1", &[])).unwrap();
    assert!(!world.ledger.is_dirty(), "reading is not writing");
    world.execute("CREATE TABLE t (x)");
    assert!(world.ledger.is_dirty() && world.ledger.unflushed_bytes() > 0, "SQL is, without an event");
    let first = world.ledger.take_image(&world.path("first.db")).unwrap();
    assert!(world.ledger.is_dirty(), "an image that nobody published counts for nothing");
    world.append(&["a"]);
    let second = world.ledger.take_image(&world.path("second.db")).unwrap();
    world.ledger.mark_published(&first);
    assert!(world.ledger.is_dirty(), "what came after the image");
    world.ledger.mark_published(&second);
    assert_eq!((world.ledger.is_dirty(), world.ledger.unflushed_bytes()), (false, 0));
    world.ledger.mark_published(&first);
    assert!(!world.ledger.is_dirty(), "an older one takes nothing back");
}

#[test]
fn a_checkpoint_empties_the_log_and_the_log_is_used_again() {
    let world = World::new();
    let big = event("a").with_payload(json(&format!("\"{}\"", "x".repeat(100_000))));
    world.ledger.append(&world.gate, std::slice::from_ref(&big)).unwrap();
    assert!(world.ledger.wal_bytes() > 100_000);
    let outcome = world.ledger.checkpoint().unwrap();
    assert!(outcome.complete && outcome.frames == outcome.moved && outcome.frames > 20);
    assert_eq!(world.ledger.wal_bytes(), 0);
    world.append(&["b"]);
    let sizes = world.ledger.sizes().unwrap();
    assert!(sizes.wal_bytes < 50_000 && sizes.file_bytes > 100_000, "{sizes:?}");
    let log = std::fs::metadata(world.path("ledger.db-wal")).unwrap().len();
    world.ledger.checkpoint().unwrap();
    world.ledger.append(&world.gate, &[big]).unwrap();
    assert!(
        std::fs::metadata(world.path("ledger.db-wal")).unwrap().len() <= log + 20_000,
        "it does not grow for ever"
    );
    assert_eq!(world.kinds(), ["a", "b", "a"]);
}

#[test]
fn an_image_never_takes_the_place_of_a_file() {
    let world = World::new();
    world.append(&["a"]);
    let taken = world.path("taken.db");
    std::fs::write(&taken, "mine").unwrap();
    assert_eq!(world.ledger.take_image(&taken).unwrap_err().code(), ErrorCode::LocalIo);
    assert_eq!(std::fs::read(&taken).unwrap(), b"mine");
    assert_eq!(
        world.ledger.take_image(&world.path("no/such/dir.db")).unwrap_err().code(),
        ErrorCode::LocalIo
    );
}

#[test]
fn an_export_is_gated_before_and_after() {
    let world = World::new();
    world.append(&["a"]);
    for passes in 0..2 {
        world.switch.close_after(passes, LAPSED);
        let error = world.ledger.export(&world.gate, &world.path("export.db")).unwrap_err();
        assert_eq!(error.refusal(), Some(LAPSED));
        assert!(!world.path("export.db").exists());
    }
    world.ledger.take_image(&world.path("image.db")).unwrap();
    world.switch.open();
    let export = world.ledger.export(&world.gate, &world.path("export.db")).unwrap();
    assert_eq!(verify_file(&export.path).unwrap().position, Some(at(1, 1)));
}

#[test]
fn idle_readers_are_closed_and_opened_again() {
    let world = World::new();
    world.append(&["a"]);
    assert_eq!(world.ledger.sizes().unwrap().readers_open, 0, "opened when needed");
    world.kinds();
    assert_eq!(world.ledger.sizes().unwrap().readers_open, 1);
    assert_eq!(world.ledger.close_idle_readers(), 1);
    assert_eq!(world.ledger.sizes().unwrap().readers_open, 0);
    assert_eq!(world.kinds(), ["a"]);
}

/// A writer that does not pause, readers, checkpoints, and images all the while: each image is sound, has every event
/// that was acknowledged before it was begun and none that it does not say.
#[test]
fn images_beside_a_hot_writer_have_what_was_acknowledged() {
    const IMAGES: u64 = 12;
    let world = Arc::new(World::new());
    world.execute("CREATE TABLE sums (n INTEGER, total INTEGER)");
    world.execute("INSERT INTO sums VALUES (0, 0)");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (world, acknowledged, done) = (Arc::clone(&world), Arc::clone(&acknowledged), Arc::clone(&done));
        move || {
            let pad = json(&format!("\"{}\"", "x".repeat(300)));
            let mut seq = 0_u64;
            while !done.load(SeqCst) {
                seq += 1;
                let event = event("w")
                    .with_payload(pad.clone())
                    .with_idem_key(format!("{:x}", seq.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
                world
                    .ledger
                    .run(&world.gate, |view| {
                        view.append(&[event])?;
                        view.execute(
                            "UPDATE sums SET n = n + 1, total = total + ?1",
                            &[Value::Integer(i64::try_from(seq).unwrap())],
                        )
                    })
                    .unwrap();
                acknowledged.store(seq, SeqCst);
            }
            seq
        }
    });
    let reader = thread::spawn({
        let (world, done) = (Arc::clone(&world), Arc::clone(&done));
        move || {
            while !done.load(SeqCst) {
                let sql = "SELECT (SELECT count(*) FROM events) - (SELECT n FROM sums)";
                let row = world.ledger.query(&world.gate, sql, &[]).unwrap();
                assert_eq!(row.rows[0][0], Value::Integer(0), "a snapshot is of one moment");
                world.ledger.checkpoint().unwrap();
            }
        }
    });
    for number in 0..IMAGES {
        // From here on there is something new in each.
        while acknowledged.load(SeqCst) < (number + 1) * 20 {
            thread::yield_now();
        }
        let before = acknowledged.load(SeqCst);
        let image = world.ledger.take_image(&world.path(&format!("image-{number}.db"))).unwrap();
        let facts = verify_file(&image.path).unwrap();
        assert!(image.position.seq >= before, "{image:?} lacks what was acknowledged: {before}");
        assert_eq!(facts.position, Some(image.position));
        let copy = rusqlite::Connection::open(&image.path).unwrap();
        let whole: (i64, i64, i64, String) = copy
            .query_row(
                "SELECT (SELECT count(*) FROM events), n, total, (SELECT integrity_check FROM pragma_integrity_check) FROM sums",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )
            .unwrap();
        let count = i64::try_from(image.position.seq).unwrap();
        assert_eq!(whole, (count, count, count * (count + 1) / 2, "ok".to_owned()));
    }
    done.store(true, SeqCst);
    let written = writer.join().unwrap();
    reader.join().unwrap();
    assert_eq!(world.ledger.position().seq, written);
    assert!(matches!(world.ledger.quick_check(), Ok::<(), LedgerError>(())));
}
