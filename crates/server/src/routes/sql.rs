//! A tenant's tables: read by `query`, written by `execute`.

use axum::extract::State;
use futures::FutureExt as _;
use leasehold_ledger::{ExecuteAnswer, IdempotencyKey as LedgerKey, Rows, Statement, Value};
use leasehold_tenure::TenureError;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    params::{IdempotencyHeader, TenantPath, TimeoutHeader},
    schemas::{ExecuteAnswerBody, RowsBody},
};
use crate::{
    answer::Answer,
    app::{AppState, Opening},
    extract::{IdempotencyKey, Json, Tenant},
    patience::Patience,
    problem::{Problem, ProblemBody},
};

/// A statement and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryBody {
    /// One statement of SQL that only reads.
    #[schema(example = "select count(*) from events where kind = ?")]
    sql: String,
    /// Its parameters by position. A blob is `{"base64": "…"}`.
    #[serde(default)]
    #[schema(value_type = Vec<Value>)]
    params: Vec<Value>,
}

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
) -> Result<Answer<Rows>, Problem> {
    app.serve(&tenant.key, Opening::Existing, patience, |handle| {
        let (sql, params) = (body.sql.clone(), body.params.clone());
        handle.run_async(move |ledger| async move { ledger.query(sql, params).await }).map(flat)
    })
    .await
    .map(Answer)
}

/// Statements of one transaction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteBody {
    /// The statements, executed in order, all or none of them.
    #[schema(value_type = Vec<QueryBody>)]
    statements: Vec<Statement>,
}

/// Writes by SQL, in one transaction: the tenant's own tables, never `events`. Creates an unknown tenant.
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
) -> Result<Answer<ExecuteAnswer>, Problem> {
    let key = key.map(|key| LedgerKey::of(key, &body.statements));
    app.serve(&tenant.key, Opening::CreateUnlessForgotten, patience, |handle| {
        let (statements, key) = (body.statements.clone(), key.clone());
        handle.run_async(move |ledger| async move { ledger.execute(statements, key).await }).map(flat)
    })
    .await
    .map(Answer)
}

/// Work that was let in and what it answered are one answer.
fn flat<T>(outcome: Result<Result<T, TenureError>, TenureError>) -> Result<T, TenureError> {
    outcome.and_then(std::convert::identity)
}
