//! What a caller says about the storage account.

use std::{path::PathBuf, sync::Arc, time::Duration};

use leasehold_types::{Clock, Entropy, Timer};

use super::secret::Secret;
use crate::BlobPrefix;

/// How the store proves who it is.
#[derive(Clone, Debug)]
pub enum AzureCredential {
    /// A connection string, which names the account, the endpoint and the key or SAS by itself.
    ConnectionString(Secret),
    /// One of the account's two keys, as the portal shows it (base64).
    AccountKey(Secret),
    /// A shared access signature: a query string, with or without its `?`.
    Sas(Secret),
    /// A federated token that the platform (AKS) keeps fresh in a file. The file is read at every refresh.
    WorkloadIdentity {
        /// The directory (Entra tenant) id.
        tenant_id: String,
        /// The application's client id.
        client_id: String,
        /// Where the platform puts the token.
        token_file: PathBuf,
        /// Who exchanges it; the public cloud's where there is none.
        authority: Option<String>,
    },
    /// The machine's identity, by its metadata service.
    ManagedIdentity {
        /// The user-assigned identity's client id; none means the system-assigned one.
        client_id: Option<String>,
        /// The metadata service; the platform's own address where there is none.
        endpoint: Option<String>,
    },
}

/// How long what may take, and how often it is tried.
#[derive(Clone, Copy, Debug)]
pub struct AzureLimits {
    /// To connect.
    pub connect: Duration,
    /// Without a byte from the other side.
    pub silence: Duration,
    /// One attempt of one request, its body (8 MiB at the most) included.
    pub request: Duration,
    /// All attempts of one request and the waits between them.
    pub patience: Duration,
    /// Attempts of one request.
    pub attempts: u32,
    /// The first wait between two attempts; each later one is twice as long, up to [`wait_max`](Self::wait_max).
    pub wait_first: Duration,
    /// The longest wait between two attempts. Where the service asks for a longer one, the caller is told so at once.
    pub wait_max: Duration,
}

impl Default for AzureLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(20),
            request: Duration::from_secs(30),
            patience: Duration::from_secs(60),
            attempts: 6,
            wait_first: Duration::from_millis(200),
            wait_max: Duration::from_secs(10),
        }
    }
}

/// A container, and the way to it.
#[derive(Clone, Debug)]
pub struct AzureOptions {
    /// How the store proves who it is.
    pub credential: AzureCredential,
    /// The storage account's name. Not needed beside a connection string.
    pub account: Option<String>,
    /// The blob service's address, such as `https://account.blob.core.windows.net`: of the account in the public cloud where there is
    /// none. Before a connection string's.
    pub endpoint: Option<String>,
    /// The container, which must exist.
    pub container: String,
    /// Before every name, for a container that is shared.
    pub prefix: Option<BlobPrefix>,
    /// Limits.
    pub limits: AzureLimits,
    /// For limits and waits.
    pub timer: Arc<dyn Timer>,
    /// For the age of tokens.
    pub clock: Arc<dyn Clock>,
    /// For attempt ids and jitter.
    pub entropy: Arc<Entropy>,
}

impl AzureOptions {
    /// `container` by `credential`, with nothing else said.
    #[must_use]
    pub fn new(
        credential: AzureCredential,
        container: impl Into<String>,
        timer: Arc<dyn Timer>,
        clock: Arc<dyn Clock>,
        entropy: Arc<Entropy>,
    ) -> Self {
        Self {
            credential,
            account: None,
            endpoint: None,
            container: container.into(),
            prefix: None,
            limits: AzureLimits::default(),
            timer,
            clock,
            entropy,
        }
    }
}
