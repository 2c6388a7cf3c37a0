//! A tenant's tables: read by `query`, written by `execute`.

use std::sync::Arc;

use axum::extract::State;
use futures::FutureExt as _;
use leasehold_ledger::{
    ExecuteAnswer, Gate, IdempotencyKey as LedgerKey, Ledger, OpenGate, Rows, Statement, Value,
};
use leasehold_tenure::{Handle, TenureError};
use leasehold_types::{Epoch, ErrorCode, LeaseKey};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    params::{IdempotencyHeader, TenantPath, TimeoutHeader},
    schemas::{ExecuteAnswerBody, RowsBody},
};
use crate::{
    answer::LargeAnswer,
    app::{App, AppState, Opening},
    extract::{IdempotencyKey, Json, Tenant},
    patience::Patience,
    problem::{Problem, ProblemBody},
};

/// A statement and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct QueryBody {
    /// One statement of SQL that only reads.
    #[schema(example = "select count(*) from events where kind = ?")]
    sql: String,
    /// Its parameters by position. A blob is `{"base64": "…"}`.
    #[serde(default, deserialize_with = "leasehold_ledger::read_params")]
    #[schema(value_type = Vec<Value>)]
    params: Vec<Value>,
}
leasehold_types::only_as_object!(QueryBody);

/// Reads by SQL: the tenant's own tables, and `events`.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/query",
    operation_id = "query",
    tag = "sql",
    params(TenantPath, TimeoutHeader),
    request_body = QueryBody,
    responses(
        (status = 200, description = "The result", body = RowsBody),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn query(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
    Json(body): Json<QueryBody>,
) -> Result<LargeAnswer<Rows>, Problem> {
    app.serve(&tenant.key, Opening::Existing, patience, |handle| {
        let (sql, params) = (body.sql.clone(), body.params.clone());
        handle.run_async(move |ledger| async move { ledger.query(sql, params).await }).map(flat)
    })
    .await
    .map(|mut rows| {
        let held = rows.held.take();
        LargeAnswer(rows, held)
    })
}

/// Statements of one transaction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct ExecuteBody {
    /// The statements, executed in order, all or none of them.
    #[serde(deserialize_with = "leasehold_ledger::read_statements")]
    #[schema(value_type = Vec<QueryBody>, min_items = 1, max_items = 100)]
    statements: Vec<Statement>,
}
leasehold_types::only_as_object!(ExecuteBody);

/// Writes by SQL, in one transaction: the tenant's own tables, never `events`. Creates an unknown tenant, where that succeeds.
#[utoipa::path(
    post,
    path = "/v1/orgs/{org}/tenants/{tenant}/execute",
    operation_id = "execute",
    tag = "sql",
    params(TenantPath, IdempotencyHeader, TimeoutHeader),
    request_body = ExecuteBody,
    responses(
        (status = 200, description = "Committed", body = ExecuteAnswerBody),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn execute(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
    IdempotencyKey(key): IdempotencyKey,
    Json(body): Json<ExecuteBody>,
) -> Result<LargeAnswer<ExecuteAnswer>, Problem> {
    let key = key.map(|key| LedgerKey::of(key, &body.statements));
    let execute = |handle: Handle| {
        let (statements, key) = (body.statements.clone(), key.clone());
        handle.run_async(move |ledger| async move { ledger.execute(statements, key).await }).map(flat)
    };
    match app.serve(&tenant.key, Opening::Existing, patience, &execute).await {
        Err(problem) if problem.code() == ErrorCode::TenantUnknown => {}
        answered => return answered.map(large),
    }
    // What cannot be executed creates nothing.
    rehearse(&app, &tenant.key, body.statements.clone()).await?;
    app.serve(&tenant.key, Opening::CreateUnlessForgotten, patience, &execute).await.map(large)
}

fn large(mut answer: ExecuteAnswer) -> LargeAnswer<ExecuteAnswer> {
    let held = answer.held.take();
    LargeAnswer(answer, held)
}

/// Executes the statements in an empty ledger that nobody keeps: what an unknown tenant would answer.
async fn rehearse(app: &App, key: &LeaseKey, statements: Vec<Statement>) -> Result<(), Problem> {
    let scratch = app.scratch.join(app.entropy.uuid().to_string());
    let path = scratch.join("ledger.db");
    let (clock, options) = (Arc::clone(&app.clock), app.router.options().ledger.clone());
    let tenure = app.entropy.tenure_id();
    let rehearsed = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&scratch).map_err(|error| Problem::internal(error.to_string()))?;
        let gate: Arc<dyn Gate> = Arc::new(OpenGate);
        let executed = Ledger::open(&path, Epoch::FIRST, tenure, clock, options)
            .and_then(|ledger| ledger.execute(&gate, &statements, None));
        // Emptied at each start, so that what cannot be removed now goes then.
        let _ = std::fs::remove_dir_all(&scratch);
        executed.map(drop).map_err(Problem::from)
    });
    let outcome = rehearsed.await.map_err(|_| Problem::internal("a rehearsal ended unexpectedly"))?;
    outcome.map_err(|problem| problem.of(key))
}

/// Work that was let in and what it answered are one answer.
fn flat<T>(outcome: Result<Result<T, TenureError>, TenureError>) -> Result<T, TenureError> {
    outcome.and_then(std::convert::identity)
}
