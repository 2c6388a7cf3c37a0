//! `run`: the order of gate, work and commit, and what ends a transaction.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use leasehold_ledger::{EventQuery, Gate, LedgerError, LedgerOptions, Limits, RunError, Statement, Value};
use leasehold_types::{ErrorCode, FencedReason, Refusal};

use crate::fixture::{LAPSED, Switch, World, at, event, kinds};

/// A statement that only its limits end.
const ENDLESS: &str =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";

#[test]
fn what_the_work_did_is_there_and_what_it_answered_comes_back() {
    let world = World::new();
    let answer = world.ledger.run(&world.gate, |view| {
        view.append(&[event("a")])?;
        view.execute("CREATE TABLE t (x)", &[])?;
        let mut insert = view.prepare("INSERT INTO t VALUES (?1)")?;
        for x in 0..3 {
            assert_eq!(insert.execute(&[Value::Integer(x)])?.rows_affected, 1);
            view.append(&[event("b")])?;
        }
        assert_eq!(view.position(), at(1, 4));
        Ok::<_, LedgerError>(view.query("SELECT sum(x) FROM t", &[])?.rows)
    });
    assert_eq!(answer.unwrap(), [[Value::Integer(3)]]);
    assert_eq!((world.ledger.position(), world.kinds().len()), (at(1, 4), 4));
}

#[test]
fn an_error_of_the_work_rolls_back() {
    let world = World::new();
    let error = world.ledger.run(&world.gate, |view| {
        view.append(&[event("lost")]).unwrap();
        Err::<(), _>("no")
    });
    assert!(matches!(error, Err(RunError::Work("no"))));
    assert_eq!((world.ledger.position(), world.ledger.is_dirty()), (at(1, 0), false));
    world.append(&["a"]);
    assert_eq!(world.kinds(), ["a"]);
}

#[test]
fn a_panic_of_the_work_rolls_back_and_the_ledger_goes_on() {
    let world = World::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        world.ledger.run(&world.gate, |view| -> Result<(), LedgerError> {
            view.append(&[event("lost")])?;
            let _statement = view.prepare("SELECT 1")?;
            panic!("by the test");
        })
    }));
    assert!(panicked.is_err());
    world.append(&["a"]);
    assert_eq!((world.kinds(), world.ledger.position()), (vec!["a".to_owned()], at(1, 1)));
}

#[test]
fn a_closed_gate_refuses_before_the_work() {
    let world = World::new();
    for refusal in [Refusal::Draining, LAPSED, Refusal::Fenced(FencedReason::Released)] {
        world.switch.close(refusal);
        let error = world.ledger.run(&world.gate, |_| -> Result<(), LedgerError> { panic!("not run") });
        assert_eq!(error.unwrap_err().into_ledger().refusal(), Some(refusal));
        let error = world.ledger.query(&world.gate, "SELECT 1", &[]).unwrap_err();
        assert_eq!((error.refusal(), error.outcome_unknown()), (Some(refusal), false));
    }
}

#[test]
fn every_question_of_an_append_can_be_the_one_that_refuses() {
    let world = World::new();
    let before = world.switch.asked();
    world.append(&["a"]);
    let questions = world.switch.asked() - before;
    for passes in 0..questions {
        world.switch.close_after(passes, LAPSED);
        let error = world.ledger.append(&world.gate, &[event("b")]).unwrap_err();
        assert_eq!(error.refusal(), Some(LAPSED));
        // Only the last one comes after the commit, and then it is never called a success.
        assert_eq!(error.outcome_unknown(), passes == questions - 1, "after {passes}");
        world.switch.open();
        assert_eq!(world.kinds().len(), 1 + usize::from(passes == questions - 1));
    }
    assert_eq!(world.ledger.position(), at(1, 2));
    world.append(&["c"]);
    assert_eq!(
        (world.kinds(), world.ledger.position()),
        (vec!["a".into(), "b".into(), "c".into()], at(1, 3))
    );
}

#[test]
fn a_run_that_wrote_nothing_has_no_unknown_outcome() {
    let world = World::new();
    let error = world.ledger.run(&world.gate, |view| {
        view.query("SELECT 1", &[])?;
        // One question before the commit, one after it.
        world.switch.close_after(1, LAPSED);
        Ok::<_, LedgerError>(())
    });
    assert!(!error.unwrap_err().into_ledger().outcome_unknown());
    assert!(!world.ledger.is_dirty());
}

#[test]
fn v1_what_was_obtained_through_the_view_is_refused_once_the_gate_closes() {
    let world = World::new();
    let answer = world.ledger.run(&world.gate, |view| {
        view.execute("CREATE TABLE t (x)", &[])?;
        let mut insert = view.prepare("INSERT INTO t VALUES (1)")?;
        let mut select = view.prepare("SELECT x FROM t")?;
        insert.execute(&[])?;
        world.switch.close(LAPSED);
        let refused = [
            insert.execute(&[]).unwrap_err(),
            select.query(&[]).unwrap_err(),
            view.prepare("SELECT 1").unwrap_err(),
            view.query("SELECT 1", &[]).unwrap_err(),
            view.execute("INSERT INTO t VALUES (1)", &[]).unwrap_err(),
            view.append(&[event("a")]).unwrap_err(),
            view.events(&EventQuery::default()).unwrap_err(),
        ];
        assert!(refused.iter().all(|error| error.refusal() == Some(LAPSED)));
        Ok::<_, LedgerError>(())
    });
    assert_eq!(answer.unwrap_err().into_ledger().code(), ErrorCode::Fenced, "swallowing it does not help");
    world.switch.open();
    let error = world.ledger.query(&world.gate, "SELECT x FROM t", &[]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SqlError, "the table was rolled back");
}

#[test]
fn a_running_statement_is_stopped_when_the_gate_closes() {
    let world = World::new();
    world.switch.close_after(10, LAPSED);
    let error = world.ledger.query(&world.gate, ENDLESS, &[]).unwrap_err();
    assert_eq!(error.refusal(), Some(LAPSED));
    world.switch.open();
    world.execute("CREATE TABLE t (x)");
    world.switch.close_after(10, Refusal::Draining);
    let error = world.ledger.run(&world.gate, |view| {
        view.append(&[event("lost")])?;
        view.execute(&format!("INSERT INTO t {ENDLESS}"), &[]).map(drop)
    });
    assert_eq!(error.unwrap_err().into_ledger().refusal(), Some(Refusal::Draining));
    world.switch.open();
    assert_eq!(world.kinds(), [""; 0]);
}

#[test]
fn a_statement_that_runs_over_its_time_is_stopped() {
    let world = World::new();
    world.clock.step_by(Duration::from_millis(500));
    let error = world.ledger.query(&world.gate, ENDLESS, &[]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StatementTimeout);
    let endless = Statement::new(format!("CREATE TABLE t AS {ENDLESS}"), vec![]);
    let error = world.ledger.execute(&world.gate, &[endless], None).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StatementTimeout);
    world.clock.step_by(Duration::ZERO);
    world.append(&["a"]);
    assert_eq!(world.kinds(), ["a"]);
}

#[test]
fn nothing_follows_a_transaction_that_sql_ended_by_itself() {
    let world = World::new();
    world.execute("CREATE TABLE t (x UNIQUE)");
    let error = world.ledger.run(&world.gate, |view| {
        view.append(&[event("lost")])?;
        view.execute("INSERT INTO t VALUES (1)", &[])?;
        let broken = view.execute("INSERT OR ROLLBACK INTO t VALUES (1)", &[]).unwrap_err();
        assert_eq!(broken.code(), ErrorCode::SqlError);
        for after in [
            view.execute("INSERT INTO t VALUES (2)", &[]).unwrap_err(),
            view.append(&[event("lost")]).unwrap_err(),
        ] {
            assert!(matches!(after, LedgerError::RolledBack { .. }), "{after}");
        }
        Ok::<_, LedgerError>(())
    });
    assert!(matches!(error.unwrap_err(), RunError::Ledger(LedgerError::RolledBack { .. })));
    let both =
        ["INSERT INTO t VALUES (1)", "INSERT OR ROLLBACK INTO t VALUES (1)", "INSERT INTO t VALUES (3)"]
            .map(|sql| Statement::new(sql, vec![]));
    world.ledger.execute(&world.gate, &both, None).unwrap_err();
    assert_eq!(
        world.ledger.query(&world.gate, "SELECT count(*) FROM t", &[]).unwrap().rows[0][0],
        Value::Integer(0)
    );
    assert_eq!(world.kinds(), [""; 0]);
}

#[test]
fn a_statement_that_fails_leaves_the_transaction_to_the_work() {
    let world = World::new();
    world.execute("CREATE TABLE t (x UNIQUE)");
    let answer = world.ledger.run(&world.gate, |view| {
        view.execute("INSERT INTO t VALUES (1)", &[])?;
        assert!(view.execute("INSERT INTO t VALUES (1)", &[]).is_err());
        assert!(view.append(&[event("a"), event("")]).is_err());
        view.append(&[event("b")])
    });
    answer.unwrap();
    assert_eq!(world.kinds(), ["b"]);
}

#[test]
fn a_commit_that_fails_is_rolled_back() {
    let world = World::new();
    world.execute("CREATE TABLE p (x PRIMARY KEY)");
    world.execute("CREATE TABLE c (x REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    let error = world.ledger.run(&world.gate, |view| {
        view.append(&[event("lost")])?;
        view.execute("INSERT INTO c VALUES (1)", &[])
    });
    assert_eq!(error.unwrap_err().into_ledger().code(), ErrorCode::SqlError);
    assert_eq!((world.kinds(), world.ledger.position()), (vec![], at(1, 0)));
    world.append(&["a"]);
    assert_eq!(world.ledger.position(), at(1, 1));
}

#[test]
fn the_ledger_is_not_to_be_called_from_inside_its_own_run() {
    let world = World::new();
    let inner = world
        .ledger
        .run(&world.gate, |_| Ok::<_, LedgerError>(world.ledger.append(&world.gate, &[event("a")])));
    assert!(matches!(inner.unwrap(), Err(LedgerError::Reentrant)));
    let image = world.ledger.run(&world.gate, |_| world.ledger.take_image(&world.path("image.db")).map(drop));
    assert!(matches!(image.unwrap_err().into_ledger(), LedgerError::Reentrant));
    assert!(!world.path("image.db").exists(), "what was begun of it is gone");
    world.append(&["b"]);
}

#[test]
fn whoever_waits_for_work_that_does_not_end_is_refused_with_the_gate_or_given_up() {
    let limits = Limits { wait: Duration::from_secs(1), ..Limits::default() };
    let world = Arc::new(World::with(LedgerOptions { limits, ..LedgerOptions::default() }));
    let (begun, has_begun) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let stuck = thread::spawn({
        let world = Arc::clone(&world);
        move || {
            world.ledger.run(&world.gate, |view| {
                view.append(&[event("stuck")])?;
                begun.send(()).unwrap();
                ends.recv().unwrap();
                Ok::<_, LedgerError>(())
            })
        }
    });
    has_begun.recv().unwrap();
    assert_eq!(world.kinds(), [""; 0], "readers do not wait for it, and see nothing of it");
    world.switch.close_after(2, Refusal::Draining);
    let error = world.ledger.append(&world.gate, &[event("a")]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Draining);
    world.switch.open();
    world.clock.step_by(Duration::from_millis(600));
    let error = world.ledger.append(&world.gate, &[event("a")]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Overloaded);
    world.clock.step_by(Duration::ZERO);
    world.ledger.take_image(&world.path("image.db")).unwrap();
    end.send(()).unwrap();
    stuck.join().unwrap().unwrap();
    assert_eq!(world.kinds(), ["stuck"]);
}

#[test]
fn v2_closing_is_the_owners_and_ends_calls_with_a_typed_error() {
    let world = World::new();
    world.append(&["a"]);
    assert_eq!(world.kinds(), ["a"]);
    world.ledger.close();
    world.ledger.close();
    let errors = [
        world.ledger.append(&world.gate, &[event("b")]).unwrap_err(),
        world.ledger.query(&world.gate, "SELECT 1", &[]).unwrap_err(),
        world.ledger.take_image(&world.path("image.db")).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| matches!(error, LedgerError::Closed { .. })), "{errors:?}");
    let again = crate::fixture::open(world.ledger.path(), 2);
    again.append(&world.gate, &[event("b")]).unwrap();
}

#[test]
fn work_cannot_keep_what_a_refused_statement_did() {
    let world = World::new();
    world.execute("CREATE TABLE free (x)");
    let keeps = |sql: &str, code: ErrorCode| {
        let error = world.ledger.run(&world.gate, |view| {
            assert_eq!(view.execute(sql, &[]).unwrap_err().code(), code);
            assert!(matches!(view.query("SELECT 1", &[]), Err(LedgerError::RolledBack { .. })));
            Ok::<_, LedgerError>(())
        });
        assert!(matches!(error.unwrap_err(), RunError::Ledger(LedgerError::RolledBack { detail: Some(_) })));
    };
    keeps("ALTER TABLE free RENAME TO leasehold_free", ErrorCode::SqlForbidden);
    keeps(
        "INSERT INTO free WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10001) \
         SELECT x FROM n RETURNING x",
        ErrorCode::TooLarge,
    );
    let count = world.ledger.query(&world.gate, "SELECT count(*) FROM free", &[]).unwrap();
    assert_eq!(count.rows[0][0], Value::Integer(0));
    world.append(&["a"]);
}

#[test]
fn readers_are_bounded_and_whoever_waits_for_one_is_refused_with_its_gate() {
    let world = Arc::new(World::with(LedgerOptions { readers_max: 1, ..LedgerOptions::default() }));
    let endless = thread::spawn({
        let world = Arc::clone(&world);
        move || world.ledger.query(&world.gate, ENDLESS, &[])
    });
    // Two questions before it runs; the others are asked while it does.
    while world.switch.asked() < 5 {
        thread::yield_now();
    }
    let other = Arc::new(Switch::default());
    other.close_after(3, Refusal::Draining);
    let gate: Arc<dyn Gate> = Arc::clone(&other) as _;
    let error = world.ledger.query(&gate, "SELECT 1", &[]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Draining);
    other.open();
    world.ledger.append(&gate, &[event("a")]).unwrap();
    world.switch.close(LAPSED);
    assert_eq!(endless.join().unwrap().unwrap_err().refusal(), Some(LAPSED));
    assert_eq!(kinds(&world.ledger, &gate), ["a"]);
    assert_eq!(world.ledger.sizes().unwrap().readers_open, 1);
}
