//! What the database or the way to it said, as the lease store's failures. Never by a message's text.

use std::{error::Error as _, fmt::Write as _, time::Duration};

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::{
    Error,
    error::{Severity, SqlState},
};

use crate::LeaseError;

/// `limit` is what the statement was given where it ran out of time.
pub(super) fn of_statement(action: &str, error: &Error, limit: Duration) -> LeaseError {
    let action = action.to_owned();
    let detail = shown(error);
    match error.code() {
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED => {
            LeaseError::Timeout { action, limit }
        }
        Some(code) if *code == SqlState::DISK_FULL => LeaseError::Full { action },
        Some(code) if is_denied(code) => LeaseError::Denied { action, detail },
        _ => LeaseError::Unavailable { action, detail },
    }
}

/// `connect` and `wait` are what a connection was given to be made, and a call to be lent one.
pub(super) fn of_pool(action: &str, error: &PoolError, connect: Duration, wait: Duration) -> LeaseError {
    match error {
        PoolError::Backend(error) => of_statement(action, error, connect),
        PoolError::Timeout(TimeoutType::Wait) => LeaseError::Timeout { action: action.into(), limit: wait },
        PoolError::Timeout(_) => LeaseError::Timeout { action: action.into(), limit: connect },
        other => LeaseError::Unavailable { action: action.into(), detail: other.to_string() },
    }
}

/// Whether an operator has to change something before it can work.
fn is_denied(code: &SqlState) -> bool {
    [
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
    ]
    .contains(code)
}

/// Whether the connection can be used on after this failure: the server answered, and stays. A server that only reads was demoted:
/// another connection may find its successor.
pub(super) fn leaves_connection_usable(error: &Error) -> bool {
    error.as_db_error().is_some_and(|said| {
        let ends = matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
        !ends && *said.code() != SqlState::READ_ONLY_SQL_TRANSACTION
    })
}

/// The error and what it came from, in one line. The client library's errors carry no part of the connection string.
fn shown(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{}: {} ({})", said.severity(), said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
