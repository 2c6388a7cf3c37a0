//! An exported ledger, put into a tenant that has nothing yet.

use std::{path::Path, sync::Arc};

use axum::{
    extract::{Request, State},
    http::header,
};
use leasehold_ledger::{Ledger, LedgerError, LedgerOptions, SharedMemory, verify_file};
use leasehold_tenure::{LedgerRef, RunError};
use leasehold_types::{Clock, Entropy, Epoch, ErrorCode, LeaseKey, Position};
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use utoipa::ToSchema;

use super::{
    export::SQLITE_TYPE,
    params::{TenantPath, TimeoutHeader},
};
use crate::{
    answer::Answer,
    app::{App, AppState, Opening},
    copying::{CopyError, copy},
    extract::{Tenant, content_length, read_bounded, too_long},
    patience::Patience,
    problem::{Problem, ProblemBody, chain_of},
    scratch::Scratch,
};

/// What was imported.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Imported {
    /// `org/tenant`.
    #[schema(value_type = String, example = "acme/user-1")]
    key: LeaseKey,
    /// How many events.
    events: u64,
    /// The tenant's own tables, by name.
    tables: Vec<String>,
    /// The tenant's newest position now. Numbers are as they were, the epoch is this tenant's.
    #[schema(value_type = String, example = "1-42")]
    position: Position,
}

/// Puts an exported ledger (the body: the SQLite file of `export`) into a tenant that has nothing, creating it where it is unknown.
/// All of it is taken, in one transaction, or nothing. The events keep their numbers, times and idempotency keys and get
/// this tenant's epoch; the tenant's own tables come with their rows, indexes, views and triggers. A file with virtual tables is
/// refused.
#[utoipa::path(
    put,
    path = "/v1/orgs/{org}/tenants/{tenant}/import",
    operation_id = "importTenant",
    tag = "transfer",
    params(TenantPath, TimeoutHeader),
    request_body(content = Vec<u8>, content_type = "application/vnd.sqlite3"),
    responses(
        (status = 201, description = "Imported", body = Imported),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn import(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
    request: Request,
) -> Result<(axum::http::StatusCode, Answer<Imported>), Problem> {
    let key = tenant.key.clone();
    let scratch = Scratch::new(&app);
    receive(&app, request, scratch.path()).await?;
    let source = source_of(&app, scratch.path()).await?;
    let handle = app.open(&key, Opening::CreateUnlessForgotten, patience).await?;
    let reading = Arc::clone(&source);
    let work =
        move |ledger: LedgerRef| async move { ledger.transaction(move |view| copy(&reading, view)).await };
    let copied = handle
        .run_async(work)
        .await?
        .map_err(|error| match error {
            RunError::Work(error) => refusal_of(error),
            RunError::Tenure(error) => error.into(),
        })
        .map_err(|problem| problem.of(&key))?;
    source.close();
    let position = copied.position;
    let imported = Imported { key, events: copied.events, tables: copied.tables, position };
    Ok((axum::http::StatusCode::CREATED, Answer(imported)))
}

/// Writes the body into a file, within its bound.
async fn receive(app: &App, request: Request, path: &Path) -> Result<(), Problem> {
    let (parts, body) = request.into_parts();
    let kind =
        parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !matches!(kind.split(';').next().unwrap_or_default().trim(), SQLITE_TYPE | "application/octet-stream")
    {
        return Err(Problem::malformed(format!(
            "the body has to be a SQLite file: send `content-type: {SQLITE_TYPE}`"
        )));
    }
    let len_max = app.config.limits.import_bytes_max;
    if content_length(&parts.headers).is_some_and(|len| len > len_max) {
        return Err(too_long(len_max));
    }
    let failed = |error: std::io::Error| Problem::local("keep the body", &error);
    let file = tokio::fs::File::create_new(path).await.map_err(failed)?;
    let file = Arc::new(tokio::sync::Mutex::new(file));
    let writing = read_bounded(body, len_max, |piece| {
        let file = Arc::clone(&file);
        async move { file.lock().await.write_all(&piece).await.map_err(failed) }
    });
    tokio::select! {
        written = writing => written?,
        () = app.timer.sleep(app.config.limits.timeout_max) => {
            return Err(Problem::new(ErrorCode::Timeout, "the body did not arrive in time"));
        }
    };
    let mut file = file.lock().await;
    file.flush().await.map_err(failed)
}

/// The received file, once it is known to be a whole ledger.
async fn source_of(app: &App, path: &Path) -> Result<Arc<Ledger>, Problem> {
    let (path, clock, entropy) = (path.to_owned(), Arc::clone(&app.clock), Arc::clone(&app.entropy));
    let memory = app.router.options().ledger.limits.memory.clone();
    tokio::task::spawn_blocking(move || open_source(&path, clock, &entropy, memory))
        .await
        .map_err(|_| Problem::internal("the check of the file ended unexpectedly"))?
        .map(Arc::new)
        .map_err(|error| match error.code() {
            code @ (ErrorCode::DiskFull | ErrorCode::LocalIo | ErrorCode::Overloaded) => {
                Problem::new(code, chain_of(&error))
            }
            // The file's path is this replica's business.
            _ => Problem::malformed(format!("the body is not an exported ledger: {}", detail_of(&error))),
        })
}

fn open_source(
    path: &Path,
    clock: Arc<dyn Clock>,
    entropy: &Entropy,
    memory: SharedMemory,
) -> Result<Ledger, LedgerError> {
    verify_file(path)?;
    let mut options = LedgerOptions::default();
    options.limits.memory = memory;
    Ledger::open(path, Epoch::MAX, entropy.tenure_id(), clock, options)
}

fn detail_of(error: &LedgerError) -> String {
    match error {
        LedgerError::Damaged { detail, .. } => detail.clone(),
        LedgerError::FormatTooNew { found, supported, .. } => {
            format!("its format is {found}, this build reads up to {supported}")
        }
        other => chain_of(other),
    }
}

fn refusal_of(error: CopyError) -> Problem {
    match error {
        CopyError::NotEmpty => {
            Problem::new(ErrorCode::NotEmpty, "only a tenant that has nothing can be imported into")
        }
        CopyError::VirtualTable { .. } => Problem::invalid(error.to_string()),
        CopyError::Ledger(error) => error.into(),
    }
}
