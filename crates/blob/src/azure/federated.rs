//! Workload identity: the platform's token file, read at every refresh, against a token of the storage service.
//!
//! The client's own credential reads the file once and is stale for ever after the first rotation.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use azure_core::{
    Error, HttpClient, Url,
    auth::Secret,
    error::{ErrorKind, ResultExt as _},
};
use azure_identity::federated_credentials_flow;
use tokio::io::AsyncReadExt as _;

use super::token::{Grant, TokenSource};

const SCOPE: &str = "https://storage.azure.com/.default";
/// A federated token is a few KiB.
const TOKEN_FILE_LEN_MAX: u64 = 64 * 1024;

#[derive(Debug)]
pub(super) struct Federated {
    pub(super) http: Arc<dyn HttpClient>,
    pub(super) authority: Url,
    pub(super) tenant_id: String,
    pub(super) client_id: String,
    pub(super) token_file: PathBuf,
}

#[async_trait]
impl TokenSource for Federated {
    async fn fetch(&self) -> azure_core::Result<Grant> {
        let mut assertion = String::new();
        tokio::fs::File::open(&self.token_file)
            .await
            .context(ErrorKind::Io, "failed to open the federated token's file")?
            .take(TOKEN_FILE_LEN_MAX)
            .read_to_string(&mut assertion)
            .await
            .context(ErrorKind::Io, "failed to read the federated token's file")?;
        let answer = federated_credentials_flow::perform(
            Arc::clone(&self.http),
            &self.client_id,
            assertion.trim(),
            &[SCOPE],
            &self.tenant_id,
            &self.authority,
        )
        .await?;
        if answer.expires_in == 0 {
            return Err(Error::message(ErrorKind::Credential, "a token that has ended already"));
        }
        Ok(Grant {
            token: Secret::new(answer.access_token().secret().to_owned()),
            lives: Duration::from_secs(answer.expires_in),
        })
    }
}
