//! V and T: what callers hold is gated at every call, and leads to nothing that is not.

use std::any::Any;

use leasehold_ledger::{LedgerError, Value, View};
use leasehold_tenure::{EventQuery, Handle, LedgerRef, RunError, Statement};
use leasehold_testkit::{
    Fleet, PATIENCE, Pair, Replica, TTL, by_code, compile_fail, event, insert, insert_through_view, keys_of,
    read_through_view, tenant, touch_nothing, try_insert, try_keys_of, within,
};
use leasehold_types::{ErrorCode, FencedReason};

pub(crate) async fn v1_nothing_obtained_through_the_view_outlives_the_deadline<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("v1")).await.expect("a opens");

    // Everything that a caller can get hold of while the lease is good.
    let view = handle.ledger();
    let chained = view.clone();
    let schema = statement("CREATE TABLE IF NOT EXISTS probe (a INTEGER)");
    view.execute(vec![schema], None).await.expect("a table of the tenant's own");
    let select = view.prepare("SELECT a FROM probe").await.expect("a statement that reads");
    let store = chained.prepare("INSERT INTO probe (a) VALUES (1)").await.expect("a statement that writes");
    let again = store.clone();
    store.execute(Vec::new()).await.expect("the statement writes before the deadline");
    within_a_run_that_passes_the_deadline(&a, &handle);

    // The replica's own clock alone is past the ttl; the row is still valid, since the store's time did not move.
    let fenced = Err(ErrorCode::Fenced);
    for view in [&view, &chained, &handle.ledger()] {
        assert_eq!(read_through_view(view).await, fenced);
        assert_eq!(insert_through_view(view, "late").await, fenced);
        assert_eq!(by_code(view.execute(vec![statement("DELETE FROM probe")], None).await).map(drop), fenced);
        assert_eq!(by_code(view.events(EventQuery::default()).await).map(drop), fenced);
        assert_eq!(by_code(view.prepare("SELECT 1").await).map(drop), fenced);
        let to = fleet.scratch().join("export.db");
        assert_eq!(by_code(view.export(to).await).map(drop), fenced);
        let transaction = view.transaction(|_view: &mut View<'_>| Ok::<_, LedgerError>(())).await;
        assert_eq!(run_code(transaction), fenced);
    }
    assert_eq!(by_code(select.query(Vec::new()).await).map(drop), fenced);
    for prepared in [&store, &again] {
        assert_eq!(by_code(prepared.execute(Vec::new()).await).map(drop), fenced);
    }
    assert_eq!(touch_nothing(&handle), fenced);
    assert_eq!(try_insert(&handle, "late"), fenced);
    assert_eq!(by_code(handle.append(vec![event("late")]).await).map(drop), fenced);
    assert_eq!(by_code(handle.run_async(|_ledger| async {}).await), fenced);
}

/// A view and a statement that were obtained inside a `run` are refused too, once the deadline passed while it ran, and
/// what the run had written is not there.
fn within_a_run_that_passes_the_deadline(replica: &Replica, handle: &Handle) {
    let outcome = handle.run(|view: &mut View<'_>| {
        view.execute("INSERT INTO probe (a) VALUES (2)", &[])?;
        replica.clock.advance(TTL);
        let read = view.query("SELECT 1", &[]).map(drop).map_err(|error| error.code());
        assert_eq!(read, Err(ErrorCode::Fenced));
        let written = view.append(&[event("late")]).map(drop).map_err(|error| error.code());
        assert_eq!(written, Err(ErrorCode::Fenced));
        assert_eq!(view.prepare("SELECT 1").map(drop).map_err(|error| error.code()), Err(ErrorCode::Fenced));
        Ok::<_, LedgerError>(())
    });
    assert_eq!(run_code(outcome), Err(ErrorCode::Fenced));
}

pub(crate) async fn v2_closing_the_view_leaves_the_routers_connection_open<P: Pair>() {
    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("v2")).await.expect("a opens");
    let kept = handle.ledger();

    handle.ledger().close();
    drop(handle.ledger());
    let prepared = handle.ledger().prepare("SELECT 1").await.expect("a statement");
    drop(prepared);
    handle
        .run_async(|ledger: LedgerRef| async move { ledger.close() })
        .await
        .expect("work that closes its view");
    for spelling in ["DETACH main", "DETACH DATABASE main", "PRAGMA locking_mode = EXCLUSIVE", "ROLLBACK"] {
        let outcome = kept.execute(vec![statement(spelling)], None).await;
        assert!(by_code(outcome).is_err(), "{spelling} is refused");
    }

    insert(&handle, "k-1");
    assert_eq!(insert_through_view(&kept, "k-2").await, Ok(()), "a view that is still held is open too");
    assert_eq!(keys_of(&handle), ["k-1", "k-2"]);
}

pub(crate) async fn v3_no_route_inside_yields_a_connection<P: Pair>() {
    // What the compiler proves: no Deref, AsRef, Into or field leads to a connection, no view leaves its closure or is
    // swapped for another.
    compile_fail::check(env!("CARGO_MANIFEST_DIR"), "tests/compile-fail/v3");

    let fleet = Fleet::<P>::manual().await;
    let a = fleet.replica("a");
    let handle = a.router.open(&tenant("v3-1")).await.expect("a opens");
    let other = a.router.open(&tenant("v3-2")).await.expect("a opens another tenant");
    insert(&handle, "k-1");
    insert(&other, "other-1");

    // What it does not: by type, nothing that a caller holds is a connection.
    for held in [&handle as &dyn Any, &handle.ledger() as &dyn Any] {
        assert!(!held.is::<rusqlite::Connection>());
        assert!(held.downcast_ref::<std::sync::Mutex<rusqlite::Connection>>().is_none());
    }
    // Views that are exchanged carry their tenant and its gate along.
    let (mut one, mut two) = (handle.ledger(), other.ledger());
    std::mem::swap(&mut one, &mut two);
    assert_eq!(subjects(&one).await, Ok(vec!["other-1".to_owned()]));
    let taken = std::mem::replace(&mut two, other.ledger());
    // One that was moved out of its work stays gated, and counts as no work.
    let escaped = handle.run_async(|ledger: LedgerRef| async move { ledger }).await.expect("work");
    within(PATIENCE, "the handoff of the other tenant", other.handoff()).await.expect("handed off");
    assert_eq!(read_through_view(&one).await, Err(ErrorCode::Fenced), "the other tenant's gate shut");
    assert_eq!(read_through_view(&taken).await, Ok(()), "this tenant's did not");
    a.clock.advance(TTL);
    for view in [&taken, &escaped] {
        assert_eq!(read_through_view(view).await, Err(ErrorCode::Fenced));
        assert_eq!(insert_through_view(view, "late").await, Err(ErrorCode::Fenced));
    }
    // Showing them shows no path either.
    let shown = format!("{handle:?} {escaped:?}");
    assert!(!shown.contains("Connection") && !shown.contains("ledger.db"), "{shown}");
}

pub(crate) async fn t1_run_takes_a_synchronous_callback<P: Pair>() {
    compile_fail::check(env!("CARGO_MANIFEST_DIR"), "tests/compile-fail/t1");

    // What is left to say at run time: a future that a callback returns as its value is the caller's own. The router
    // does not run it, and no work is counted for it.
    let fleet = Fleet::<P>::manual().await;
    let (a, b) = (fleet.replica("a"), fleet.replica("b"));
    let key = tenant("t1");
    let handle = a.router.open(&key).await.expect("a opens");
    let ledger = handle.ledger();
    let returned = handle.run(|view: &mut View<'_>| {
        view.append(&[event("k-1")])?;
        Ok::<_, LedgerError>(async move { insert_through_view(&ledger, "floating").await })
    });
    let floating =
        returned.unwrap_or_else(|error| panic!("the callback succeeds: {}", run_error_code(&error)));
    within(PATIENCE, "the handoff", handle.handoff()).await.expect("nothing is in flight");
    assert_eq!(floating.await, Err(ErrorCode::Fenced), "begun too late, by whoever awaits it");
    let next = b.router.open(&key).await.expect("b opens");
    assert_eq!(keys_of(&next), ["k-1"]);
    assert_eq!(try_keys_of(&handle), Err(ErrorCode::Fenced));
    let reason = handle.run(|_view: &mut View<'_>| Ok::<_, LedgerError>(()));
    assert!(
        matches!(
            reason,
            Err(RunError::Tenure(leasehold_tenure::TenureError::Fenced {
                reason: FencedReason::Released,
                outcome_unknown: false,
                ..
            }))
        ),
        "{reason:?}"
    );
}

fn statement(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), params: Vec::new() }
}

async fn subjects(view: &LedgerRef) -> Result<Vec<String>, ErrorCode> {
    let rows = by_code(view.query("SELECT subject_id FROM events ORDER BY seq", Vec::new()).await)?;
    Ok(rows
        .rows
        .into_iter()
        .flatten()
        .filter_map(|value| if let Value::Text(text) = value { Some(text) } else { None })
        .collect())
}

fn run_error_code(error: &RunError<LedgerError>) -> ErrorCode {
    match error {
        RunError::Tenure(error) => error.code(),
        RunError::Work(error) => error.code(),
    }
}

fn run_code<T>(outcome: Result<T, RunError<LedgerError>>) -> Result<(), ErrorCode> {
    outcome.map(drop).map_err(|error| run_error_code(&error))
}
