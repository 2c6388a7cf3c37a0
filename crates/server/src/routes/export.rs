//! A tenant's ledger as a file.

use std::path::Path;

use axum::{
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use super::params::{TenantPath, TimeoutHeader};
use crate::{
    app::{AppState, Opening},
    extract::Tenant,
    patience::Patience,
    problem::{Problem, ProblemBody},
    scratch::Scratch,
};

/// What a SQLite file is called.
pub(crate) const SQLITE_TYPE: &str = "application/vnd.sqlite3";
/// How much of a file is in memory at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// The tenant's ledger as one SQLite file, as of now, with its digest (`Content-Digest`, RFC 9530). The tenant is served
/// meanwhile.
#[utoipa::path(
    get,
    path = "/v1/orgs/{org}/tenants/{tenant}/export",
    operation_id = "exportTenant",
    tag = "transfer",
    params(TenantPath, TimeoutHeader),
    responses(
        (status = 200, description = "The file", content_type = "application/vnd.sqlite3", body = Vec<u8>, headers(
            ("Content-Digest" = String, description = "`sha-256=:<base64>:`"),
        )),
        (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn export(
    State(app): State<AppState>,
    tenant: Tenant,
    patience: Patience,
) -> Result<Response, Problem> {
    let handle = app.open(&tenant.key, Opening::Existing, patience).await?;
    let scratch = Scratch::new(&app);
    let path = scratch.path().to_owned();
    handle.run_async(move |ledger| async move { ledger.export(path).await }).await??;
    let (file, len, digest) = digested(scratch.path()).await?;
    let name = format!("attachment; filename=\"{}-{}.db\"", tenant.key.org(), tenant.key.tenant());
    // The request's place, and the file, stay until the last byte has gone.
    let kept = (tenant.place, scratch);
    let pieces = ReaderStream::with_capacity(file, CHUNK_BYTES).map(move |piece| {
        let _kept = &kept;
        piece
    });
    let headers = [
        (header::CONTENT_TYPE, SQLITE_TYPE.to_owned()),
        (header::CONTENT_LENGTH, len.to_string()),
        (header::CONTENT_DISPOSITION, name),
    ];
    let digest = [("content-digest", format!("sha-256=:{}:", STANDARD.encode(digest)))];
    Ok((headers, digest, Body::from_stream(pieces)).into_response())
}

/// The file, opened at its beginning, with its length and SHA-256.
async fn digested(path: &Path) -> Result<(tokio::fs::File, u64, [u8; 32]), Problem> {
    let failed = |error: std::io::Error| Problem::local("read the exported ledger", &error);
    let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut len = 0_u64;
    loop {
        let read = file.read(&mut chunk).await.map_err(failed)?;
        if read == 0 {
            break;
        }
        digest.update(&chunk[..read]);
        len += read as u64;
    }
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    Ok((file, len, digest.finalize().into()))
}
