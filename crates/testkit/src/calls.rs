//! The writes and reads that the suites make, in one shape: an event whose idempotency key is also its subject.

use leasehold_ledger::{LedgerError, NewEvent, Value, View};
use leasehold_tenure::{Handle, LedgerRef, RunError, TenureError};
use leasehold_types::ErrorCode;

/// What is selected by [`keys_of`].
const KEYS: &str = "SELECT subject_id FROM events WHERE kind = 'test.write' ORDER BY seq";

/// The event of `key`.
#[must_use]
pub fn event(key: &str) -> NewEvent {
    let text = serde_json::json!({
        "kind": "test.write",
        "actor": "test",
        "subject_id": key,
        "payload": { "key": key },
        "idem_key": key,
    });
    serde_json::from_value(text).expect("an event in the form in which callers send it")
}

/// Writes `key` by [`Handle::run`]; a refusal is told by its code, whoever refused.
pub fn try_insert(handle: &Handle, key: &str) -> Result<(), ErrorCode> {
    code_of(handle.run(|view: &mut View<'_>| view.append(&[event(key)]).map(drop)))
}

/// Writes `key` by [`Handle::run`].
///
/// # Panics
/// If it is refused.
#[track_caller]
pub fn insert(handle: &Handle, key: &str) {
    if let Err(code) = try_insert(handle, key) {
        panic!("the write of {key} was refused: {code}");
    }
}

/// Writes `key` through a view that is held on its own, outside any `run`.
pub async fn insert_through_view(view: &LedgerRef, key: &str) -> Result<(), ErrorCode> {
    view.append(vec![event(key)]).await.map(drop).map_err(|error| error.code())
}

/// Reads something through a view that is held on its own.
pub async fn read_through_view(view: &LedgerRef) -> Result<(), ErrorCode> {
    view.query("SELECT 1", Vec::new()).await.map(drop).map_err(|error| error.code())
}

/// The keys that a tenant's ledger holds, in the order of their writing.
pub fn try_keys_of(handle: &Handle) -> Result<Vec<String>, ErrorCode> {
    let rows = code_of(handle.run(|view: &mut View<'_>| view.query(KEYS, &[])))?;
    let keys = rows.rows.into_iter().flatten().map(|value| match value {
        Value::Text(key) => key,
        other => format!("{other:?}"),
    });
    Ok(keys.collect())
}

/// The keys that a tenant's ledger holds, in the order of their writing.
///
/// # Panics
/// If the read is refused.
#[must_use]
#[track_caller]
pub fn keys_of(handle: &Handle) -> Vec<String> {
    match try_keys_of(handle) {
        Ok(keys) => keys,
        Err(code) => panic!("reading the keys was refused: {code}"),
    }
}

/// A call through the handle whose work touches nothing.
pub fn touch_nothing(handle: &Handle) -> Result<(), ErrorCode> {
    code_of(handle.run(|_view: &mut View<'_>| Ok::<_, LedgerError>(())))
}

fn code_of<T>(outcome: Result<T, RunError<LedgerError>>) -> Result<T, ErrorCode> {
    outcome.map_err(|error| match error {
        RunError::Tenure(error) => error.code(),
        RunError::Work(error) => error.code(),
    })
}

/// How a call ended, by its code: what callers decide by.
pub fn by_code<T>(outcome: Result<T, TenureError>) -> Result<T, ErrorCode> {
    outcome.map_err(|error| error.code())
}
